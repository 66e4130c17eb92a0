// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"

#include <algorithm>
#include <cinttypes>

namespace {

constexpr size_t MOST_NODES = 5000, MOST_LINES = 200, MOST_LOCKS = 200, MOST_SHARES = 8;

/* Positions of a table's rows that have any cycles, the largest first. */
template <typename Rows, typename Cycles> std::vector<uint32_t> largest(const Rows &rows, size_t most, Cycles cycles)
{
	std::vector<uint32_t> order;

	for (uint32_t at = 0; at < rows.size(); at++)
		if (cycles(rows[at]) > 0)
			order.push_back(at);
	std::stable_sort(order.begin(), order.end(),
			 [&](uint32_t a, uint32_t b) { return cycles(rows[a]) > cycles(rows[b]); });
	if (order.size() > most)
		order.resize(most);
	return order;
}

class Report {
public:
	Report(FILE *out, Replay &replay) : out_(out), replay_(replay), evidence_(replay.evidence()) {}
	void print();

private:
	void totals(const Totals &totals);
	void cpus();
	void windows();
	void nodes();
	void lines();
	void locks();
	void shares(const std::vector<Shares::Row> &rows);
	void bytes(uint32_t watched);

	FILE *out_;
	Replay &replay_;
	Evidence &evidence_;
};

void Report::totals(const Totals &totals)
{
	fprintf(out_,
		"\"instructions\":%" PRIu64 ",\"accesses\":%" PRIu64
		",\"work\":%.0f,\"cache\":%.0f,\"transfer\":%.0f,\"lock\":%.0f",
		totals.instructions, totals.accesses, totals.work, totals.cache, totals.transfer, totals.lock);
}

void Report::cpus()
{
	const char *between = "";

	fputs("\"cpus\":[", out_);
	for (const Totals &cpu : replay_.cpus()) {
		fprintf(out_, "%s{", between);
		totals(cpu);
		fputs("}", out_);
		between = ",";
	}
	fputs("]", out_);
}

void Report::windows()
{
	const char *between = "";

	fputs(",\"windows\":[", out_);
	for (const Window &window : replay_.windows()) {
		fprintf(out_, "%s{\"longest\":%.0f,", between, window.longest);
		totals(window.totals);
		fputs("}", out_);
		between = ",";
	}
	fputs("]", out_);
}

void Report::nodes()
{
	auto cycles = [](const NodeWaits &node) { return node.transfers.cycles + node.locks.cycles; };
	const char *between = "";

	fputs(",\n\"nodes\":[", out_);
	for (uint32_t at : largest(evidence_.nodes, MOST_NODES, cycles)) {
		const NodeWaits &node = evidence_.nodes[at];

		fprintf(out_, "%s[%u,%.0f,%" PRIu64 ",%.0f,%" PRIu64 "]", between, at, node.transfers.cycles,
			node.transfers.count, node.locks.cycles, node.locks.count);
		between = ",";
	}
	fputs("]", out_);
}

void Report::shares(const std::vector<Shares::Row> &rows)
{
	const char *between = "";

	fputs(",\"nodes\":[", out_);
	for (const auto &[node, share] : rows) {
		fprintf(out_, "%s[%u,%.0f,%" PRIu64 "]", between, node, share.cycles, share.count);
		between = ",";
	}
	fputs("]}", out_);
}

/* What was waited for within a line, in the order of its bytes. */
void Report::bytes(uint32_t watched)
{
	const auto &cycles = evidence_.lines[watched].cycles;
	const char *between = "";

	fprintf(out_, ",\"written\":\"%" PRIx64 "\",\"bytes\":[", evidence_.written(watched));
	for (size_t at = 0; at < cycles.size(); at++) {
		if (cycles[at] < 0.5)
			continue;
		fprintf(out_, "%s[%zu,%.0f]", between, at, static_cast<double>(cycles[at]));
		between = ",";
	}
	fputs("]", out_);
}

void Report::lines()
{
	auto cycles = [](const WatchedLine &line) { return line.waits.cycles; };
	const char *between = "";

	fputs(",\n\"lines\":[", out_);
	for (uint32_t at : largest(evidence_.lines, MOST_LINES, cycles)) {
		const WatchedLine &line = evidence_.lines[at];

		if (!at) /* what did not fit */
			continue;
		fprintf(out_,
			"%s{\"address\":\"%" PRIx64 "\",\"cycles\":%.0f,\"transfers\":%" PRIu64 ",\"apart\":%" PRIu64
			",\"cpus\":%d,\"writers\":%d,\"false_sharing\":%s",
			between, line.line * 64, line.waits.cycles, line.waits.count, line.false_transfers,
			__builtin_popcountll(evidence_.users(at, false)), __builtin_popcountll(evidence_.users(at, true)),
			evidence_.is_false_sharing(at) ? "true" : "false");
		bytes(at);
		shares(evidence_.by_line.largest(at, MOST_SHARES));
		between = ",";
	}
	fputs("]", out_);
}

void Report::locks()
{
	static const char *const names[] = { "", "spinlock", "bit lock", "rwlock", "mutex", "rwsem" };
	auto cycles = [](const LockWaits &lock) { return lock.waits.cycles; };
	const char *between = "";

	fputs(",\n\"locks\":[", out_);
	for (uint32_t at : largest(evidence_.locks, MOST_LOCKS, cycles)) {
		const LockWaits &lock = evidence_.locks[at];

		fprintf(out_,
			"%s{\"address\":\"%" PRIx64 "\",\"kind\":\"%s\",\"cycles\":%.0f,\"acquisitions\":%" PRIu64
			",\"contended\":%" PRIu64,
			between, lock.address, names[static_cast<int>(lock.kind)], lock.waits.cycles, lock.acquisitions,
			lock.waits.count);
		shares(evidence_.by_lock.largest(at, MOST_SHARES));
		between = ",";
	}
	fputs("]", out_);
}

void Report::print()
{
	Totals all;

	for (const Totals &cpu : replay_.cpus())
		all.add(cpu);
	fputs("{\"version\":1,\"total\":{", out_);
	totals(all);
	fprintf(out_, "},\"left_out\":%" PRIu64 ",\"lines_touched\":%" PRIu64 ",\"forced\":%" PRIu64 ",\n",
		replay_.left_out(), replay_.lines(), replay_.forced());
	cpus();
	windows();
	nodes();
	lines();
	locks();
	fputs("}\n", out_);
}

} // namespace

void print_report(FILE *out, Replay &replay)
{
	Report(out, replay).print();
}
