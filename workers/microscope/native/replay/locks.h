/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The holder of each lock and its waiters, in the order in which the kernel serves them. */
#ifndef KPERFLAB_REPLAY_LOCKS_H
#define KPERFLAB_REPLAY_LOCKS_H

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "evidence.h"

class Locks {
public:
	struct Waiter {
		unsigned int cpu;
		bool shared;
		uint32_t node;
		double since;
	};
	struct Granted {
		Waiter waiter;
		uint32_t lock; /* its number in the evidence */
		bool slept;
	};

	explicit Locks(Evidence &evidence) : evidence_(evidence) {}

	/* False: the CPU waits. Throws Refused where there are too many locks. */
	bool acquire(uint64_t address, LockKind kind, const Waiter &waiter);
	std::vector<Granted> release(uint64_t address, unsigned int cpu);
	std::vector<Granted> downgrade(uint64_t address, unsigned int cpu);
	/* Lets a CPU have the lock it waits for, regardless of its holder. */
	Granted force(uint64_t address, unsigned int cpu);

private:
	struct Lock {
		uint32_t number;
		LockKind kind;
		uint64_t holders = 0;
		bool exclusive = false;
		std::deque<Waiter> queue;
	};
	void give(Lock &lock, const Waiter &waiter);
	std::vector<Granted> serve(Lock &lock);
	Granted grant(Lock &lock, std::deque<Waiter>::iterator waiter);

	Evidence &evidence_;
	std::unordered_map<uint64_t, Lock> locks_;
};

#endif
