// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel counted so far, as it tells it in /proc, before and after a timed iteration. */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

static FILE *counts;

void counts_open(const char *file)
{
	if (*file == '\0')
		return;
	counts = fopen(file, "ae");
	if (!counts)
		fail_errno("counts=%s", file);
}

/* "= before /proc/vmstat" and its text; where there is none, a reason stands behind a colon. */
static void take(const char *when, const char *path)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		fprintf(counts, "= %s %s\n", when, path);
		while ((n = read(fd, text, sizeof(text))) > 0)
			fwrite(text, 1, (size_t)n, counts);
	}
	if (n < 0)
		fprintf(counts, "= %s %s: %s\n", when, path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void counts_take(const char *when)
{
	if (!counts)
		return;
	/* Each CPU keeps some of its counts to itself for up to a second; this adds them up. */
	int refresh = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (refresh >= 0) {
		if (write(refresh, "1", 1) != 1)
			fail_errno("/proc/sys/vm/stat_refresh");
		close(refresh);
	}
	take(when, "/proc/vmstat");
	take(when, "/proc/slabinfo");
	if (fflush(counts) != 0)
		fail_errno("cannot write what was counted");
}
