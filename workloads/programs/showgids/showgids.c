// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens and closes the same kernfs files from many threads, as parallel runs of
 * the script showgids do: every open walks the same path, so that all threads
 * meet at the rwsem of kernfs_iop_permission and kernfs_dop_revalidate.
 *
 *   glob=PATTERN      the files; expanded once, before any timing
 *   fallback=PATTERN  used, and said, if the first matches nothing
 *   rounds=N          times each thread goes through all files in one iteration
 *   most=N            of the matched files, use the first N (0: all)
 *   reading=0|1       also read each file
 */
#include "harness.h"
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

static glob_t files;
static const char *pattern;
static unsigned long rounds, count;
static bool reading;

static void expand(void)
{
	const char *fallback = text("fallback", "");

	pattern = text("glob", NULL);
	if (glob(pattern, 0, NULL, &files) == GLOB_NOMATCH && *fallback != '\0') {
		pattern = fallback;
		(void)glob(pattern, 0, NULL, &files);	/* judged by what it found */
	}
	if (files.gl_pathc == 0)
		fail("no file matches %s", pattern);
}

static void setup(void)
{
	unsigned long most = number("most", 0);

	expand();
	rounds = number("rounds", 1);
	reading = number("reading", 0);
	count = most != 0 && most < files.gl_pathc ? most : files.gl_pathc;
}

static void read_through(int fd, const char *path)
{
	char page[4096];
	ssize_t got;

	while ((got = read(fd, page, sizeof(page))) > 0)
		;
	if (got < 0)
		fail_errno("cannot read %s", path);
}

static void thread(unsigned int index)
{
	(void)index;
	for (unsigned long round = 0; round < rounds; round++)
		for (unsigned long i = 0; i < count; i++) {
			int fd = open(files.gl_pathv[i], O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				fail_errno("cannot open %s", files.gl_pathv[i]);
			if (reading)
				read_through(fd, files.gl_pathv[i]);
			if (close(fd) != 0)
				fail_errno("cannot close %s", files.gl_pathv[i]);
		}
}

static void report(const struct interval *took)
{
	double opens = (double)harness_threads * (double)rounds * (double)count;

	value("ns_per_open", took->elapsed * 1e9 * harness_threads / opens);
	value("opens_per_second", opens / took->elapsed);
	operations(opens);
	extra("files", "%lu", count);
	extra("glob", "\"%s\"", pattern);
}

int main(int argc, char **argv)
{
	static const struct workload showgids = { .setup = setup, .thread = thread, .report = report };

	return harness_main(argc, argv, &showgids);
}
