// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The next kernel without the firmware (kperflab.then=kexec): once all records are taken, ask the lab under this boot's
 * own token what comes next, until it says what or that nothing will; fetch it, compare its sums, and let this kernel
 * start it. A return from here switches the machine off, and the lab boots it by power.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

#ifndef PLACE			/* tests have one each */
#define PLACE "/tmp/"
#endif
#define KERNEL PLACE "next-kernel"
#define INITRD PLACE "next-initrd"
#define SUMS PLACE "next-sums"
#define SAID PLACE "next-said"
#define ANSWER PLACE "next"
#define GIVE_UP_S 60.0		/* after so long without an answer nobody is there any more */
#define LONGEST_S 3600.0
#define PROGRAM_S 60		/* for sums and for loading */
#define ASK_AGAIN_S 1.0		/* after an answer that came at once, or none */

struct next {
	char kernel_sum[65], initrd_sum[65], kernel[256], initrd[256], report[256], cmdline[2049];
};

/* The body of an answer as a file; its status. */
static int get(const char *path, const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status;

	if (fd < 0)
		return 0;
	status = http_get(path, fd);
	if (close(fd))
		return 0;
	return status;
}

/* Run a program that ends by itself or is ended; its words are in SAID. True if it did well. */
static int run(char *const argv[])
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return 0;
	if (!child) {
		int said = open(SAID, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		sigset_t none;

		dup2(said, 1);
		dup2(said, 2);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		alarm(PROGRAM_S);
		execvp(argv[0], argv);
		dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return status == 0;
}

/* Tell the lab why its offer cannot be taken. */
static void refuse(const struct next *next, const char *format, ...)
{
	char path[300], why[600], said[300];
	int used;
	va_list args;

	va_start(args, format);
	used = vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (used < (int)sizeof(why))
		snprintf(why + used, sizeof(why) - used, "%s%s", *slurp(SAID, said, sizeof(said)) ? ": " : "", said);
	fprintf(stderr, "kperflab-agent: no kexec: %s\n", why);
	snprintf(path, sizeof(path), "%s/kexec/0", next->report);
	http_post(path, why, strlen(why));
}

/* What the lab answered, all of it or nothing. */
static int read_answer(struct next *next)
{
	static char text[4096];
	char *line;

	if (sscanf(slurp(ANSWER, text, sizeof(text)), "kernel %64[0-9a-f] %255s initrd %64[0-9a-f] %255s report %255s",
		   next->kernel_sum, next->kernel, next->initrd_sum, next->initrd, next->report) != 5)
		return 0;
	line = strstr(text, "\ncmdline ");
	if (!line)
		return 0;
	line += strlen("\ncmdline ");
	size_t length = strlen(line), end = strlen(next->report);

	/* It ends with where to report, or the answer was cut. */
	if (length >= sizeof(next->cmdline) || length < end || strcmp(line + length - end, next->report))
		return 0;
	strcpy(next->cmdline, line);
	return 1;
}

/* Until the lab has something: true if it has. */
static int ask(struct next *next, const char *path)
{
	double start = now(), heard = start;

	while (now() < heard + GIVE_UP_S && now() < start + LONGEST_S) {
		double asked = now();
		int status = get(path, ANSWER);

		if (status == 200)
			return read_answer(next);
		if (!http_again(status))
			return 0;
		if (status == 204)
			heard = now();
		if (now() < asked + ASK_AGAIN_S)
			nap(ASK_AGAIN_S);
	}
	return 0;
}

/* True once this kernel has it; else the lab knows why not. */
static int load(const struct next *next)
{
	static char cmdline[2100];
	char *const compare[] = { "sha256sum", "-c", SUMS, NULL };
	char *const program[] = { "kexec", "-a", "-l", KERNEL, "--initrd=" INITRD, cmdline, NULL };
	char sums[sizeof(next->kernel_sum) + sizeof(next->initrd_sum) + sizeof(KERNEL INITRD) + 8];
	int kernel = get(next->kernel, KERNEL), initrd = kernel == 200 ? get(next->initrd, INITRD) : 0, fd;

	unlink(SAID);
	if (kernel != 200 || initrd != 200) {
		refuse(next, "kernel and initrd could not be fetched: status %d and %d", kernel, initrd);
		return 0;
	}
	snprintf(sums, sizeof(sums), "%s  %s\n%s  %s\n", next->kernel_sum, KERNEL, next->initrd_sum, INITRD);
	fd = open(SUMS, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, sums, strlen(sums)) != (ssize_t)strlen(sums) || close(fd) || !run(compare)) {
		refuse(next, "kernel or initrd is not what the lab has");
		return 0;
	}
	snprintf(cmdline, sizeof(cmdline), "--command-line=%s", next->cmdline);
	if (!run(program)) {
		refuse(next, "this kernel cannot load another");
		return 0;
	}
	return 1;
}

void next_boot(void)
{
	static struct next next;
	static char url[4096], path[600];
	char *found;

	if (strcmp(option("kperflab.then"), "kexec"))
		return;
	found = strstr(slurp("/proc/cmdline", url, sizeof(url)), "kperflab.report=");
	if (!found)
		return;
	found += strlen("kperflab.report=");
	found[strcspn(found, " ")] = 0;
	snprintf(path, sizeof(path), "%s/next", http_lab(found));
	if (!ask(&next, path) || !load(&next))
		return;
	unlink(SAID);
	sync();
	reboot(RB_KEXEC);
	refuse(&next, "this kernel does not start what it has loaded: %s", strerror(errno));
}
