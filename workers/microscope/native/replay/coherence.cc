// SPDX-License-Identifier: GPL-2.0-or-later
#include "coherence.h"

#include <algorithm>

Coherence::Coherence(const Machine &machine, unsigned int cpus, Evidence &evidence)
	: machine_(machine), evidence_(evidence), caches_(cpus, Caches(machine)), same_socket_(cpus)
{
	auto socket = [&](unsigned int cpu) -> uint64_t {
		if (machine.cpus_per_socket)
			return std::min(cpu / machine.cpus_per_socket, machine.sockets - 1);
		return static_cast<uint64_t>(cpu) * machine.sockets / cpus;
	};

	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		for (unsigned int other = 0; other < cpus; other++)
			if (socket(cpu) == socket(other))
				same_socket_[cpu] |= bit(other);
}

/* From memory the first time, later from the cache that all CPUs of a socket share. */
Coherence::Cost Coherence::from_below(const Access &access, LineState &state, bool is_new) const
{
	Cost cost;

	cost.queue = std::max(0.0, state.busy - access.now);
	cost.latency = is_new ? machine_.memory_cycles : machine_.shared_cycles;
	if (state.holders && !(state.holders & same_socket_[access.cpu]))
		cost.latency = machine_.far_transfer_cycles;
	cost.transfer = cost.queue > 0 || state.lost & bit(access.cpu);
	return cost;
}

Coherence::Cost Coherence::moves(const Access &access, LineState &state, uint64_t others)
{
	Cost cost;
	double start = std::max(access.now, state.busy);

	cost.latency = is_far(access.cpu, others) ? machine_.far_transfer_cycles : machine_.transfer_cycles;
	cost.queue = start - access.now;
	cost.transfer = true;
	state.busy = start + cost.latency;
	return cost;
}

Coherence::Cost Coherence::load(const Access &access, LineState &state, bool is_new)
{
	Cost cost = state.dirty ? moves(access, state, state.holders) : from_below(access, state, is_new);

	if (state.exclusive)
		for (unsigned int cpu = 0; cpu < caches_.size(); cpu++)
			if (state.holders & bit(cpu))
				caches_[cpu].weaken(state.line, SHARED);
	state.dirty = false;
	state.exclusive = !state.holders;
	state.holders |= bit(access.cpu);
	return cost;
}

Coherence::Cost Coherence::store(const Access &access, LineState &state, bool is_new)
{
	uint64_t others = state.holders & ~bit(access.cpu);
	Cost cost;

	if (others)
		cost = moves(access, state, others);
	else if (!state.holders)
		cost = from_below(access, state, is_new);
	for (unsigned int cpu = 0; cpu < caches_.size() && others >> cpu; cpu++)
		if (others & bit(cpu))
			caches_[cpu].weaken(state.line, INVALID);
	state.lost |= others;
	state.holders = bit(access.cpu);
	state.dirty = state.exclusive = true;
	return cost;
}

void Coherence::put(unsigned int cpu, const LineState &state, State as)
{
	uint64_t gone;

	if (!caches_[cpu].put(state.line, as, state.watched, gone))
		return;
	if (LineState *left = directory_.find(gone)) {
		left->holders &= ~bit(cpu);
		if (!left->holders)
			left->dirty = left->exclusive = false;
	}
}

Delay Coherence::miss(const Access &access, uint64_t line, uint64_t bytes)
{
	bool is_new, writes = access.kind != Kind::LOAD;
	LineState &state = directory_.at(line, is_new);
	Cost cost = writes ? store(access, state, is_new) : load(access, state, is_new);
	double waits = cost.queue + cost.latency * (access.kind == Kind::ATOMIC ? 1 : 1 - machine_.overlap);

	state.lost &= ~bit(access.cpu);
	if (cost.transfer && !state.watched)
		state.watched = evidence_.watch(line);
	if (cost.transfer)
		evidence_.transferred(state.watched, access.node, waits, bytes,
				      evidence_.conflicts(state.watched, access.cpu, bytes, writes));
	if (state.watched)
		evidence_.touch(state.watched, access.cpu, bytes, writes);
	put(access.cpu, state, writes ? MODIFIED : state.exclusive ? EXCLUSIVE : SHARED);
	return cost.transfer ? Delay{ 0, waits } : Delay{ waits, 0 };
}

Delay Coherence::access(const Access &access, uint64_t line, uint64_t bytes)
{
	uint32_t watched = 0;
	bool writes = access.kind != Kind::LOAD;
	Caches::Place place = caches_[access.cpu].look_up(line, writes ? MODIFIED : SHARED, watched);

	if (place == Caches::Place::NOWHERE)
		return miss(access, line, bytes);
	if (watched)
		evidence_.touch(watched, access.cpu, bytes, writes);
	if (place == Caches::Place::FIRST)
		return {};
	return { machine_.l2_cycles * (access.kind == Kind::ATOMIC ? 1 : 1 - machine_.overlap), 0 };
}
