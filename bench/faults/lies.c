// SPDX-License-Identifier: GPL-2.0-or-later
/* A preload by which a host lies to a process. The file KPERFLAB_LIES holds two native int64_t: the nanoseconds by which
 * the wall clock is wrong, and the bytes that every disk is said to have free, -1 for the truth. The file is mapped: a
 * write to it takes effect in a running process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct lies {
	int64_t clock_off;
	int64_t disk_free;
};

static const volatile struct lies *lies;

__attribute__((constructor)) static void map_lies(void)
{
	const char *path = getenv("KPERFLAB_LIES");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*lies), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		lies = at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long failed = syscall(SYS_clock_gettime, clock, now);

	if (!failed && lies && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + lies->clock_off;

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

int statvfs64(const char *restrict path, struct statvfs64 *restrict room)
{
	static int (*truly)(const char *, struct statvfs64 *);
	int failed;

	if (!truly)
		truly = (int (*)(const char *, struct statvfs64 *))dlsym(RTLD_NEXT, "statvfs64");
	failed = truly(path, room);
	if (!failed && lies && lies->disk_free >= 0)
		room->f_bfree = room->f_bavail = (fsblkcnt64_t)lies->disk_free / room->f_frsize;
	return failed;
}

int statvfs(const char *restrict path, struct statvfs *restrict room)
{
	return statvfs64(path, (struct statvfs64 *)room);
}
