// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent's way to the next kernel as a program of its own: what it would do to the machine it says instead. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent.h"

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* A lab is as patient as its tests are not. */
void nap(double seconds)
{
	struct timespec t = { 0, (long)(seconds * 1e7) };

	nanosleep(&t, NULL);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	exit(2);
}

char *slurp(const char *path, char *text, size_t size)
{
	FILE *file = fopen(strcmp(path, "/proc/cmdline") ? path : getenv("CMDLINE"), "r");
	size_t used = file ? fread(text, 1, size - 1, file) : 0;

	if (file)
		fclose(file);
	while (used && text[used - 1] == '\n')
		used--;
	text[used] = 0;
	return text;
}

const char *option(const char *name)
{
	(void)name;
	return getenv("THEN");
}

int reboot(int how)
{
	printf("reboot %x\n", how);
	return -1;
}

int main(void)
{
	next_boot();
	puts("off");
	return 0;
}
