// SPDX-License-Identifier: GPL-2.0-or-later
#include "evidence.h"

#include <algorithm>

namespace {
constexpr size_t MOST_WATCHED = 1 << 16;
constexpr size_t MOST_SHARES = 1 << 20;
/* A line that moved fewer times says nothing about how it is shared. */
constexpr uint64_t FEW_TRANSFERS = 4;
} // namespace

void Shares::add(uint32_t of, uint32_t node, double cycles)
{
	uint64_t key = static_cast<uint64_t>(of) << 32 | node;
	auto at = rows_.find(key);

	if (at == rows_.end()) {
		if (rows_.size() == MOST_SHARES)
			return;
		at = rows_.emplace(key, Share{}).first;
	}
	at->second.cycles += cycles;
	at->second.count++;
}

void Shares::sort()
{
	for (const auto &[key, share] : rows_)
		sorted_.push_back({ static_cast<uint32_t>(key >> 32), { static_cast<uint32_t>(key), share } });
	std::sort(sorted_.begin(), sorted_.end(), [](const Sorted &a, const Sorted &b) {
		if (a.of != b.of)
			return a.of < b.of;
		return a.row.share.cycles != b.row.share.cycles ? a.row.share.cycles > b.row.share.cycles :
								  a.row.node < b.row.node;
	});
}

std::vector<Shares::Row> Shares::largest(uint32_t of, size_t most)
{
	std::vector<Row> rows;

	if (sorted_.size() != rows_.size())
		sort();
	auto at = std::lower_bound(sorted_.begin(), sorted_.end(), of,
				   [](const Sorted &row, uint32_t number) { return row.of < number; });
	for (; at != sorted_.end() && at->of == of && rows.size() < most; ++at)
		rows.push_back(at->row);
	return rows;
}

Evidence::Evidence(uint32_t node_count, unsigned int cpus) : nodes(node_count), lines(1), cpus_(cpus), bytes_(cpus)
{
}

uint32_t Evidence::watch(uint64_t line)
{
	if (lines.size() > MOST_WATCHED)
		return 0;
	lines.push_back({ line, {}, 0, {} });
	bytes_.resize(bytes_.size() + cpus_);
	return static_cast<uint32_t>(lines.size() - 1);
}

void Evidence::touch(uint32_t watched, unsigned int cpu, uint64_t used, bool writes)
{
	if (writes)
		bytes(watched, cpu).written |= used;
	else
		bytes(watched, cpu).read |= used;
}

bool Evidence::conflicts(uint32_t watched, unsigned int cpu, uint64_t used, bool writes) const
{
	for (unsigned int other = 0; other < cpus_; other++) {
		const Bytes &theirs = bytes(watched, other);

		if (other != cpu && used & (theirs.written | (writes ? theirs.read : 0)))
			return true;
	}
	return false;
}

void Evidence::transferred(uint32_t watched, uint32_t node, double cycles, uint64_t used, bool shares_bytes)
{
	WatchedLine &line = lines[watched];

	line.waits.cycles += cycles;
	line.waits.count++;
	line.false_transfers += !shares_bytes;
	line.cycles[__builtin_ctzll(used)] += static_cast<float>(cycles);
	by_line.add(watched, node, cycles);
	nodes[node].transfers.cycles += cycles;
	nodes[node].transfers.count++;
}

void Evidence::waited_for_lock(uint32_t lock, uint32_t node, double cycles)
{
	locks[lock].waits.cycles += cycles;
	locks[lock].waits.count++;
	by_lock.add(lock, node, cycles);
	nodes[node].locks.cycles += cycles;
	nodes[node].locks.count++;
}

bool Evidence::is_false_sharing(uint32_t watched) const
{
	const WatchedLine &line = lines[watched];

	/* The first transfer of each CPU comes before anybody knows what the others use. */
	return line.waits.count >= FEW_TRANSFERS && 2 * line.false_transfers > line.waits.count + cpus_;
}

uint64_t Evidence::written(uint32_t watched) const
{
	uint64_t used = 0;

	for (unsigned int cpu = 0; cpu < cpus_; cpu++)
		used |= bytes(watched, cpu).written;
	return used;
}

uint64_t Evidence::users(uint32_t watched, bool writers) const
{
	uint64_t users = 0;

	for (unsigned int cpu = 0; cpu < cpus_; cpu++) {
		const Bytes &theirs = bytes(watched, cpu);

		if (theirs.written || (!writers && theirs.read))
			users |= 1ull << cpu;
	}
	return users;
}
