// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads walk trees of their own and stat(2) every file: ROOT/t<thread>/d<dir>/f<file>.
 * Names are made, not read: no readdir fills the cache ahead of the stat.
 *
 *   root=PATH dirs=D files=F
 *   cache=cold    before each iteration nothing of the tree is cached
 *   cache=warm    everything is: the trees are walked once before
 *   cache=thrash  three quarters fit, as in the mail: of 20 million inodes its
 *                 machine could hold 15; ballast takes the rest of the memory
 *   drop=inodes|all  what cold drops: dentries and inodes, or the page cache
 *                 with the inode tables too (then disk reads are timed as well)
 */
#include "harness.h"
#include "cache.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *root, *cache, *drop;
static unsigned long dirs, files;

static void walk(unsigned int thread)
{
	char path[256];
	struct stat found;

	for (unsigned long dir = 0; dir < dirs; dir++) {
		int stem = snprintf(path, sizeof(path), "%s/t%u/d%lu/f", root, thread, dir);

		if (stem < 0 || (size_t)stem > sizeof(path) - 24)
			fail("root=%s: path too long", root);
		for (unsigned long file = 0; file < files; file++) {
			sprintf(path + stem, "%lu", file);
			if (stat(path, &found) != 0)
				fail_errno("cannot stat %s", path);
		}
	}
}

static void setup(void)
{
	root = text("root", NULL);
	dirs = number("dirs", 1);
	files = number("files", 1);
	cache = text("cache", "cold");
	drop = text("drop", "inodes");
	if (strcmp(cache, "thrash") == 0)
		take_ballast(harness_threads * dirs * (files + 1));
	else if (strcmp(cache, "warm") != 0 && strcmp(cache, "cold") != 0)
		fail("cache=%s: cold, warm or thrash", cache);
	if (strcmp(cache, "cold") != 0)
		for (unsigned int thread = 0; thread < harness_threads; thread++)
			walk(thread);
}

static void prepare(void)
{
	if (strcmp(cache, "cold") == 0)
		drop_caches(strcmp(drop, "all") == 0);
}

static void report(const struct interval *took)
{
	double stats = (double)harness_threads * (double)dirs * (double)files;

	value("ns_per_stat", took->elapsed * 1e9 * harness_threads / stats);
	value("files_per_second", stats / took->elapsed);
	operations(stats);
	extra("cache", "\"%s\"", cache);
	extra("stats", "%.0f", stats);
	report_cached();
}

int main(int argc, char **argv)
{
	static const struct workload stat_walk = {
		.setup = setup, .prepare = prepare, .thread = walk, .report = report
	};

	return harness_main(argc, argv, &stat_walk);
}
