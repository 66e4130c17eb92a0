// SPDX-License-Identifier: GPL-2.0-or-later
/* A preload that sets a process's wall clock wrong by the nanoseconds which the file KPERFLAB_CLOCK_OFF holds, a
 * native int64_t. The file is mapped: who writes to it steps the clock of a process that runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off;

__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("KPERFLAB_CLOCK_OFF");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*off), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		off = at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long failed = syscall(SYS_clock_gettime, clock, now);

	if (!failed && off && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + *off;

		now->tv_sec = ns / 1000000000LL;
		now->tv_nsec = ns % 1000000000LL;
	}
	return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &precise))
		return -1;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
