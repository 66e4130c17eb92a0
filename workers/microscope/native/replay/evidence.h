/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who waited, where and for what: by node of the call tree, by cache line and by lock. Of bounded size. */
#ifndef KPERFLAB_REPLAY_EVIDENCE_H
#define KPERFLAB_REPLAY_EVIDENCE_H

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "events.h"

struct Share {
	double cycles = 0;
	uint64_t count = 0;
};

struct NodeWaits {
	Share transfers, locks;
};

/* A line that moved from one CPU's cache to another's. */
struct WatchedLine {
	uint64_t line = 0;
	Share waits;
	uint64_t false_transfers = 0; /* for bytes that conflict with no other CPU's use */
	std::array<float, 64> cycles{}; /* waited, by the first byte of the access */
};

struct LockWaits {
	uint64_t address = 0;
	LockKind kind = LockKind::NONE;
	Share waits;
	uint64_t acquisitions = 0;
};

/* Shares by the nodes they fell to, of many lines or locks. */
class Shares {
public:
	struct Row {
		uint32_t node;
		Share share;
	};

	void add(uint32_t of, uint32_t node, double cycles);
	/* The largest of one line or lock; the first call puts all in order, after which nothing may be added. */
	std::vector<Row> largest(uint32_t of, size_t most);

private:
	struct Sorted {
		uint32_t of;
		Row row;
	};
	void sort();

	std::unordered_map<uint64_t, Share> rows_;
	std::vector<Sorted> sorted_;
};

class Evidence {
public:
	Evidence(uint32_t nodes, unsigned int cpus);

	/* The number of a line to watch, from 1; 0 where there are too many. */
	uint32_t watch(uint64_t line);
	/* Notes the bytes of a watched line that a CPU used. */
	void touch(uint32_t watched, unsigned int cpu, uint64_t bytes, bool writes);
	/* Whether this use of these bytes conflicts with another CPU's use of them. */
	bool conflicts(uint32_t watched, unsigned int cpu, uint64_t bytes, bool writes) const;
	void transferred(uint32_t watched, uint32_t node, double cycles, uint64_t bytes, bool shares_bytes);
	void waited_for_lock(uint32_t lock, uint32_t node, double cycles);

	/* False sharing: different CPUs use different bytes of the line, and at least some of them write. */
	bool is_false_sharing(uint32_t watched) const;
	uint64_t users(uint32_t watched, bool writers) const;
	/* The bytes that any CPU wrote. */
	uint64_t written(uint32_t watched) const;

	std::vector<NodeWaits> nodes;
	std::vector<WatchedLine> lines; /* the first is for those that are not watched */
	std::vector<LockWaits> locks;
	Shares by_line, by_lock;

private:
	struct Bytes {
		uint64_t read = 0, written = 0;
	};
	Bytes &bytes(uint32_t watched, unsigned int cpu) { return bytes_[watched * cpus_ + cpu]; }
	const Bytes &bytes(uint32_t watched, unsigned int cpu) const { return bytes_[watched * cpus_ + cpu]; }

	unsigned int cpus_;
	std::vector<Bytes> bytes_;
};

#endif
