// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay CALLS ROLES MACHINE ACCESSES...
 *
 * Replays the accesses that virtual CPUs recorded as if all had run at once on a machine, and prints what each waited for
 * (docs/contention.md). Ends with 1 and a line that begins with "replay: " if a file is not what it should be.
 */
#include <algorithm>
#include <cstdio>
#include <new>

#include "refused.h"
#include "report.h"

namespace {

std::vector<std::unique_ptr<TraceFile>> open_all(int count, char **paths)
{
	std::vector<std::unique_ptr<TraceFile>> files;

	if (count > static_cast<int>(MOST_CPUS))
		throw Refused("more than " + std::to_string(MOST_CPUS) + " CPUs");
	for (int at = 0; at < count; at++)
		files.push_back(std::make_unique<TraceFile>(paths[at]));
	std::sort(files.begin(), files.end(), [](const auto &a, const auto &b) { return a->cpu() < b->cpu(); });
	for (size_t at = 1; at < files.size(); at++)
		if (files[at - 1]->cpu() == files[at]->cpu())
			throw Refused(files[at]->name() + " is of the same CPU as " + files[at - 1]->name());
	return files;
}

int replay_files(int argc, char **argv)
{
	CallTree tree(argv[1], argv[2]);
	Machine machine = read_machine(argv[3]);
	auto files = open_all(argc - 4, argv + 4);
	Replay replay(files, tree, machine);

	replay.run();
	print_report(stdout, replay);
	return fflush(stdout) || ferror(stdout);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 5) {
		fputs("usage: replay CALLS ROLES MACHINE ACCESSES...\n", stderr);
		return 2;
	}
	try {
		return replay_files(argc, argv);
	} catch (const Refused &refused) {
		fprintf(stderr, "replay: %s\n", refused.what());
	} catch (const std::bad_alloc &) {
		fputs("replay: out of memory\n", stderr);
	}
	return 1;
}
