// SPDX-License-Identifier: GPL-2.0-or-later
// Makes the system calls of its arguments, each "name:number:argument:…" (numbers in C's notation, "@" for the address of zeroed
// memory), in a child of its own, and prints "name errno" for each; 0 where it went well. A number of 0x80 before makes the
// call by the 32-bit entry.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long old_entry(long number, long first)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(0), "d"(0), "S"(0), "D"(0) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static int make(char *call)
{
	char *zeroes = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long values[7] = {0};
	int count = 0;

	for (char *word = strtok(call, ":"); word && count < 7; word = strtok(NULL, ":"))
		values[count++] = *word == '@' ? (long)zeroes : (long)strtoul(word, NULL, 0);
	if (values[0] >= 0x800000 && values[0] < 0x900000) {
		long result = old_entry(values[0] - 0x800000, values[1]);

		return result < 0 ? -result : 0;
	}
	errno = 0;
	return syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]) == -1 ? errno : 0;
}

int main(int count, char **arguments)
{
	for (int i = 1; i < count; i++) {
		char *numbers = strchr(arguments[i], ':') + 1;
		int status = 0;
		int ends[2];

		numbers[-1] = 0;
		if (pipe(ends))
			return 1;
		pid_t child = fork();
		if (child == 0) {
			pid_t self = getpid();
			int answer = make(numbers);

			// A call that made a second process comes back in both.
			if (getpid() == self)
				dprintf(ends[1], "%d", answer);
			_exit(0);
		}
		char answer[16] = "";

		close(ends[1]);
		if (read(ends[0], answer, sizeof(answer) - 1) < 1)
			strcpy(answer, "nothing");
		close(ends[0]);
		waitpid(child, &status, 0);
		printf("%s %s %d\n", arguments[i], answer, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		fflush(stdout);
	}
	return 0;
}
