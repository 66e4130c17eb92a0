// SPDX-License-Identifier: GPL-2.0-or-later
#include "locks.h"

#include <algorithm>

#include "refused.h"

namespace {
constexpr size_t MOST_LOCKS = 1 << 19;
}

void Locks::give(Lock &lock, const Waiter &waiter)
{
	lock.holders |= 1ull << waiter.cpu;
	lock.exclusive = !waiter.shared;
	evidence_.locks[lock.number].acquisitions++;
}

bool Locks::acquire(uint64_t address, LockKind kind, const Waiter &waiter)
{
	auto at = locks_.find(address);

	if (at == locks_.end()) {
		if (locks_.size() == MOST_LOCKS)
			throw Refused("the trace takes more locks than can be replayed at once; measure fewer iterations");
		at = locks_.emplace(address, Lock{ static_cast<uint32_t>(evidence_.locks.size()), kind, 0, false, {} }).first;
		evidence_.locks.push_back({ address, kind, {}, 0 });
	}
	Lock &lock = at->second;
	bool is_free = !lock.holders || (waiter.shared && !lock.exclusive && lock.queue.empty());

	/* A lock that one CPU takes twice is no lock, or its release was not recognised. */
	if (is_free || lock.holders >> waiter.cpu & 1) {
		give(lock, waiter);
		return true;
	}
	lock.queue.push_back(waiter);
	return false;
}

Locks::Granted Locks::grant(Lock &lock, std::deque<Waiter>::iterator waiter)
{
	Granted granted = { *waiter, lock.number, lock.kind == LockKind::RWSEM && waiter->shared };

	give(lock, granted.waiter);
	lock.queue.erase(waiter);
	return granted;
}

/* An rwsem lets all waiting readers in once it is a reader's turn (rwsem_mark_wake); the others serve strictly in order. */
std::vector<Locks::Granted> Locks::serve(Lock &lock)
{
	std::vector<Granted> granted;

	if (lock.queue.empty() || lock.exclusive || (lock.holders && !lock.queue.front().shared))
		return granted;
	bool readers = lock.queue.front().shared;

	granted.push_back(grant(lock, lock.queue.begin()));
	for (size_t at = 0; readers && at < lock.queue.size();) {
		if (lock.queue[at].shared)
			granted.push_back(grant(lock, lock.queue.begin() + static_cast<std::ptrdiff_t>(at)));
		else if (lock.kind == LockKind::RWSEM)
			at++;
		else
			break;
	}
	return granted;
}

std::vector<Locks::Granted> Locks::release(uint64_t address, unsigned int cpu)
{
	auto at = locks_.find(address);

	if (at == locks_.end() || !(at->second.holders >> cpu & 1))
		return {};
	at->second.holders &= ~(1ull << cpu);
	if (!at->second.holders)
		at->second.exclusive = false;
	return serve(at->second);
}

std::vector<Locks::Granted> Locks::downgrade(uint64_t address, unsigned int cpu)
{
	auto at = locks_.find(address);

	if (at == locks_.end() || !(at->second.holders >> cpu & 1))
		return {};
	at->second.exclusive = false;
	return serve(at->second);
}

Locks::Granted Locks::force(uint64_t address, unsigned int cpu)
{
	Lock &lock = locks_.at(address);
	auto waiter = std::find_if(lock.queue.begin(), lock.queue.end(), [&](const Waiter &w) { return w.cpu == cpu; });

	lock.holders = 0;
	return grant(lock, waiter);
}
