/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which CPUs have each line, and what an access costs: MESI with a directory, a line moving to one CPU at a time. */
#ifndef KPERFLAB_REPLAY_COHERENCE_H
#define KPERFLAB_REPLAY_COHERENCE_H

#include <cstdint>
#include <vector>

#include "cache.h"
#include "evidence.h"
#include "machine.h"

constexpr unsigned int MOST_CPUS = 64;

/* Cycles that a CPU waits: for its own caches and memory, and because of other CPUs. */
struct Delay {
	double cache = 0, transfer = 0;
};

struct Access {
	unsigned int cpu;
	Kind kind;
	uint32_t node;
	double now;
};

/* What is known of a line. */
struct LineState {
	uint64_t line = 0;
	uint64_t holders = 0; /* CPUs that have it */
	uint64_t lost = 0;    /* CPUs that had it until another one wrote */
	double busy = 0;      /* until when it is on its way */
	uint32_t watched = 0;
	bool exists = false, dirty = false, exclusive = false;
};

/* Line states by number, open addressing. */
class Directory {
public:
	Directory();
	/* Throws Refused where there are too many. */
	LineState &at(uint64_t line, bool &is_new);
	LineState *find(uint64_t line);
	uint64_t size() const { return used_; }

private:
	size_t place(uint64_t line) const;
	void grow();

	std::vector<LineState> states_;
	uint64_t used_ = 0;
};

class Coherence {
public:
	Coherence(const Machine &machine, unsigned int cpus, Evidence &evidence);
	/* The delay of an access within one line. bytes: of the line, a bit each. */
	Delay access(const Access &access, uint64_t line, uint64_t bytes);
	uint64_t lines() const { return directory_.size(); }

private:
	struct Cost {
		double latency = 0, queue = 0; /* the core hides nothing of the queue */
		bool transfer = false;
	};
	Cost load(const Access &access, LineState &state, bool is_new);
	Cost store(const Access &access, LineState &state, bool is_new);
	Cost from_below(const Access &access, LineState &state, bool is_new) const;
	Cost moves(const Access &access, LineState &state, uint64_t others);
	Delay miss(const Access &access, uint64_t line, uint64_t bytes);
	void put(unsigned int cpu, const LineState &state, State as);
	bool is_far(unsigned int cpu, uint64_t others) const { return others & ~same_socket_[cpu]; }
	static uint64_t bit(unsigned int cpu) { return 1ull << cpu; }

	const Machine &machine_;
	Evidence &evidence_;
	Directory directory_;
	std::vector<Caches> caches_;
	std::vector<uint64_t> same_socket_;
};

#endif
