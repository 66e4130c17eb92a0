// SPDX-License-Identifier: GPL-2.0-or-later
/* Listing a directory again and again, each thread as often: what the load does, as a program of the harness. */
#include "harness.h"
#include "load.h"
#include <dirent.h>
#include <stddef.h>

static const char *directory;
static unsigned long listings;

static void setup(void)
{
	directory = text("directory", NULL);
	listings = number("listings", 1);
}

static void list(unsigned int index)
{
	DIR *open = opendir(directory);

	(void)index;
	if (!open)
		fail_errno("cannot open directory=%s", directory);
	for (unsigned long time = 0; time < listings; time++) {
		while (readdir(open))
			;
		rewinddir(open);
	}
	closedir(open);
}

static void report(const struct interval *took)
{
	(void)took;
	operations((double)listings * harness_threads);
	extra("listings", "%lu", listings);
}

int list_many(int argc, char **argv)
{
	static const struct workload listing = { .setup = setup, .thread = list, .report = report };

	return harness_main(argc, argv, &listing);
}
