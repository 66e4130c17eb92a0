// SPDX-License-Identifier: GPL-2.0-or-later
#include "cache.h"
#include "harness.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What one cached file occupies: an ext4_inode_cache object (1,096 bytes on 6.1, three
 * to a page with what SLUB loses) and a dentry (192). The share is the mail's: of 20
 * million inodes its machine held 15. SLACK_KIB lets the kernel and the agent live.
 */
#define BYTES_PER_FILE 1400UL
#define SHARE_PERCENT 75UL
#define SLACK_KIB (24UL * 1024)
#define LEAST_KIB (32UL * 1024)

void drop_caches(bool pages_too)
{
	sync();
	/*
	 * Thrice: the first pass only takes the "referenced" mark from what was
	 * used twice, and a pass that frees nothing ends the kernel's own loop.
	 */
	for (int pass = 0; pass < 3; pass++) {
		FILE *file = fopen("/proc/sys/vm/drop_caches", "w");

		if (!file || fputs(pages_too ? "3\n" : "2\n", file) < 0 || fclose(file) != 0)
			fail_errno("cannot write /proc/sys/vm/drop_caches (cache=cold needs root)");
	}
}

static unsigned long available_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	if (!file)
		fail_errno("cannot read /proc/meminfo");
	while (fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %lu", &kib) != 1)
		;
	fclose(file);
	if (kib == 0)
		fail("/proc/meminfo has no MemAvailable");
	return kib;
}

void take_ballast(unsigned long inodes)
{
	unsigned long wanted = inodes * BYTES_PER_FILE / 1024;
	unsigned long left = wanted * SHARE_PERCENT / 100;

	if (left < LEAST_KIB)
		fail("cache=thrash: %lu inodes fill only %lu MiB; at least %lu inodes are needed", inodes,
		     wanted / 1024, LEAST_KIB * 1024 * 100 / SHARE_PERCENT / BYTES_PER_FILE + 1);
	drop_caches(true);
	unsigned long free = available_kib(), keep = left + SLACK_KIB;

	if (free <= keep)
		return;	/* memory is short enough as it is */
	size_t size = (free - keep) * 1024;
	void *ballast = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (ballast == MAP_FAILED || mlock(ballast, size) != 0)
		fail_errno("cannot lock %zu MiB of ballast", size >> 20);
}

/* As the mail does: the number of ext4_inode_cache objects. Absent where SLUB keeps no statistics. */
void report_cached(void)
{
	FILE *file = fopen("/proc/slabinfo", "r");
	unsigned long active;
	char line[512];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "ext4_inode_cache %lu", &active) == 1)
			extra("ext4_inode_cache", "%lu", active);
	fclose(file);
}
