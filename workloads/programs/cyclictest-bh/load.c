// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that fill the buffer head LRUs, and the one that has them invalidated. */
#define _GNU_SOURCE
#include "load.h"
#include "harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct load load;
static pthread_t threads[CPU_SETSIZE + 1];
static unsigned int started;
static atomic_bool stopping;
static atomic_ulong listings, flushes;

/*
 * ext4_readdir → ext4_bread → __find_get_block → bh_lru_install. Listing, because
 * lookups of ever new names would fill the memory with negative dentries.
 */
static void *fill(void *unused)
{
	DIR *directory = opendir(load.directory);

	(void)unused;
	if (!directory)
		fail_errno("cannot open directory=%s", load.directory);
	while (!stopping) {
		while (readdir(directory))
			;
		rewinddir(directory);
		listings++;
		usleep(load.fill_us);
	}
	closedir(directory);
	return NULL;
}

/*
 * invalidate_bdev → invalidate_bh_lrus → an IPI to each CPU that holds buffer heads.
 * The kernel does that only if the device has a page cached; each flush drops it.
 */
static void *flush(void *unused)
{
	char page[4096];
	int device = open(load.device, O_RDONLY | O_CLOEXEC);

	(void)unused;
	if (device < 0)
		fail_errno("cannot open device=%s", load.device);
	while (!stopping) {
		if (pread(device, page, sizeof(page), 0) != (ssize_t)sizeof(page))
			fail_errno("cannot read a page of %s", load.device);
		if (ioctl(device, BLKFLSBUF, 0) != 0)
			fail_errno("BLKFLSBUF of %s", load.device);
		flushes++;
		usleep(load.flush_us);
	}
	close(device);
	return NULL;
}

static void start(void *(*thread)(void *), int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_attr_init(&attributes) != 0 || pthread_attr_setaffinity_np(&attributes, sizeof(one), &one) != 0 ||
	    pthread_create(&threads[started++], &attributes, thread, NULL) != 0)
		fail("cannot start a thread on CPU %d", cpu);
	pthread_attr_destroy(&attributes);
}

void load_start(const struct load *which, const cpu_set_t *cpus)
{
	cpu_set_t allowed;
	int home = -1;

	load = *which;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		fail_errno("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, cpus))
			start(fill, cpu);
		if (CPU_ISSET(cpu, &allowed) && (home < 0 || (CPU_ISSET(home, cpus) && !CPU_ISSET(cpu, cpus))))
			home = cpu;
	}
	start(flush, home);
}

void load_stop(void)
{
	stopping = true;
	while (started > 0)
		pthread_join(threads[--started], NULL);
	extra("listings", "%lu", (unsigned long)listings);
	extra("flushes", "%lu", (unsigned long)flushes);
}
