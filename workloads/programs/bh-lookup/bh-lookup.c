// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads what bh-lookup-module.ko measures; one read is one iteration.
 * A block that was not found in every lookup ends the program: its times would be those of misses.
 */
#include "harness.h"
#include <stdio.h>

#define GI (1ULL << 30)
static const char source[] = "/proc/kperflab_bh_lookup";

struct row {
	unsigned long long block, loops, found, each_ns, whole_ns;
};
static struct row rows[16];
static unsigned int count;

static void thread(unsigned int index)
{
	FILE *file = fopen(source, "r");
	struct row row;

	(void)index;
	if (!file)
		fail_errno("cannot open %s (is bh-lookup-module.ko loaded?)", source);
	for (count = 0; count < 16 && fscanf(file, "%llu %llu %llu %llu %llu", &row.block, &row.loops, &row.found,
					     &row.each_ns, &row.whole_ns) == 5; count++)
		rows[count] = row;
	if (ferror(file))
		fail_errno("cannot read %s (a block beyond the device?)", source);
	fclose(file);
	if (count == 0)
		fail("%s is empty", source);
}

static void value_of_block(const char *stem, unsigned long long block, double ns)
{
	char name[64];

	if (block != 0 && block % GI == 0)
		snprintf(name, sizeof(name), "%s_%llug", stem, block / GI);
	else
		snprintf(name, sizeof(name), "%s_%llu", stem, block);
	value(name, ns);
}

static void report(const struct interval *took)
{
	(void)took;
	for (unsigned int i = 0; i < count; i++) {
		const struct row *row = &rows[i];

		if (row->found != 2 * row->loops)
			fail("block %llu was found in %llu of %llu lookups", row->block, row->found, 2 * row->loops);
		value_of_block("ns_per_lookup", row->block, (double)row->whole_ns / (double)row->loops);
		value_of_block("ns_per_timed_lookup", row->block, (double)row->each_ns / (double)row->loops);
	}
	operations(2.0 * (double)rows[0].loops * count * harness_threads);
	extra("suc", "%llu", rows[0].loops);
}

int main(int argc, char **argv)
{
	static const struct workload bh_lookup = { .thread = thread, .report = report };

	return harness_main(argc, argv, &bh_lookup);
}
