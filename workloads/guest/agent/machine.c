// SPDX-License-Identifier: GPL-2.0-or-later
/* Time, small files, and the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void nap(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("kperflab-agent: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	power_off();
	abort();
}

/* Read at most size - 1 bytes of a file as one string without its last line feed; "" if it cannot be read. */
char *slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	while (fd >= 0 && used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += n;
	if (fd >= 0)
		close(fd);
	while (used && text[used - 1] == '\n')
		used--;
	text[used] = 0;
	return text;
}

/* The value of an option on the kernel's command line; "" if it is not there. */
const char *option(const char *name)
{
	static char cmdline[4096], value[256];
	char *found = slurp("/proc/cmdline", cmdline, sizeof(cmdline));
	size_t length = strlen(name);

	while ((found = strstr(found, name))) {
		if ((found == cmdline || found[-1] == ' ') && found[length] == '=') {
			snprintf(value, sizeof(value), "%s", found + length + 1);
			value[strcspn(value, " ")] = 0;
			return value;
		}
		found += length;
	}
	return "";
}

void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "kperflab-agent: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}
