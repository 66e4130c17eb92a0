// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <unordered_map>

#include "events.h"
#include "refused.h"

namespace {

/* 8 bytes each, for all virtual CPUs together far below what the machine has. */
constexpr size_t MOST_MARKS = 16 << 20;
/* Addresses that one virtual CPU did an atomic on. */
constexpr size_t MOST_ADDRESSES = 1 << 20;
/*
 * A bit lock is inlined: taken and given back in one function, a few instructions apart. A plain store elsewhere, or much
 * later, does not release a lock but sets a counter.
 */
constexpr uint64_t LONGEST_BIT_LOCK = 20000;
/* An atomic that failed stands right before the slow path that it leads to. */
constexpr uint64_t BEFORE_SLOW_PATH = 200;

/* An atomic that may have taken a lock: nobody knows before it is given back. */
struct Taken {
	uint64_t number, last_try, clock;
	uint32_t node;
	LockKind kind = LockKind::NONE;
	bool shared = false, left_out = false;
	size_t downgrade = 0; /* position of the mark of a downgrade, from 1: it is held since then */
};

/* Tells quickly that an address never had an atomic; nearly all stores go to such addresses. */
class Seldom {
public:
	void add(uint64_t address) { bits_[place(address)] = true; }
	bool may_have(uint64_t address) const { return bits_[place(address)]; }

private:
	static size_t place(uint64_t address) { return address * 0x9e3779b97f4a7c15ull >> 48; }
	std::vector<bool> bits_ = std::vector<bool>(1 << 16);
};

class Finder {
public:
	Finder(const TraceFile &file, const CallTree &tree) : records_(file, tree.size()), tree_(tree) {}

	std::vector<Mark> find();

private:
	void step(const Record &record);
	void atomic(const Record &record);
	void store(const Record &record);
	void take(const Record &record, LockKind kind, bool shared);
	bool give_back(const Record &record, LockKind kind, LockStep how);
	void downgrade(const Record &record);
	void mark(uint64_t number, LockStep step, LockKind kind);
	Taken *taken(uint64_t address, LockKind kind);

	Records records_;
	const CallTree &tree_;
	std::unordered_map<uint64_t, Taken> taken_;
	Seldom seldom_;
	std::vector<Mark> marks_;
	uint64_t clock_ = 0;	     /* instructions of the program's own work */
	uint64_t line_ = 0, since_ = 0; /* since which record there was no access but to this line */
	uint32_t node_ = 0;
};

void Finder::mark(uint64_t number, LockStep step, LockKind kind)
{
	if (marks_.size() == MOST_MARKS)
		throw Refused("the trace takes more locks than can be replayed at once; measure fewer iterations");
	marks_.push_back({ number, static_cast<uint64_t>(step) & 15, static_cast<uint64_t>(kind) & 15 });
}

Taken *Finder::taken(uint64_t address, LockKind kind)
{
	auto at = taken_.find(address);

	return at != taken_.end() && at->second.kind == kind ? &at->second : nullptr;
}

void Finder::take(const Record &record, LockKind kind, bool shared)
{
	bool left_out = tree_.is_left_out(node_);
	Taken *before = taken(record.value, kind);

	/* Atomics in the slow path are further tries of the atomic that led there; so is an atomic with no access in between. */
	if (before && left_out && clock_ - before->clock <= BEFORE_SLOW_PATH)
		return;
	if (before && !left_out && before->shared == shared && before->number >= since_) {
		before->last_try = record.number;
		return;
	}
	if (taken_.size() == MOST_ADDRESSES)
		throw Refused("the trace has atomics at more addresses than can be replayed at once; measure fewer iterations");
	seldom_.add(record.value);
	taken_[record.value] = { record.number, record.number, clock_, node_, kind, shared, left_out, 0 };
}

bool Finder::give_back(const Record &record, LockKind kind, LockStep how)
{
	Taken *lock = taken(record.value, kind);

	if (!lock)
		return false;
	if (lock->downgrade) {
		marks_[lock->downgrade - 1].step = static_cast<uint64_t>(LockStep::DOWNGRADE) & 15;
		mark(record.number, how, kind);
	} else if (!(lock->left_out && tree_.is_left_out(node_))) {
		mark(lock->number, lock->shared ? LockStep::ACQUIRE_SHARED : LockStep::ACQUIRE, kind);
		if (lock->last_try != lock->number) {
			mark(lock->number + 1, LockStep::LEAVE_OUT, kind);
			mark(lock->last_try + 1, LockStep::LEAVE_OUT_ENDS, kind);
		}
		mark(record.number, how, kind);
	}
	taken_.erase(record.value);
	return true;
}

/* Marked as a release, until a reader's release shows that the lock was kept. */
void Finder::downgrade(const Record &record)
{
	Taken *lock = taken(record.value, LockKind::RWSEM);

	if (!lock || lock->shared || lock->left_out)
		return;
	give_back(record, LockKind::RWSEM, LockStep::RELEASE);
	taken_[record.value] = { record.number, record.number, clock_, node_, LockKind::RWSEM, true, false, marks_.size() };
}

void Finder::atomic(const Record &record)
{
	Role role = tree_.role(node_);

	if (record.size == 8) {
		switch (role) {
		case Role::MUTEX_LOCK: return take(record, LockKind::MUTEX, false);
		case Role::MUTEX_UNLOCK: give_back(record, LockKind::MUTEX, LockStep::RELEASE); return;
		case Role::DOWN_READ: return take(record, LockKind::RWSEM, true);
		case Role::DOWN_WRITE: return take(record, LockKind::RWSEM, false);
		case Role::UP_READ: case Role::UP_WRITE: give_back(record, LockKind::RWSEM, LockStep::RELEASE); return;
		case Role::DOWNGRADE: return downgrade(record);
		default: break;
		}
		/* The slow paths of sleeping locks end with the lock taken, and the lock keeps its kind. */
		if (!tree_.is_left_out(node_) || !taken_.count(record.value))
			take(record, LockKind::BIT, false);
	} else if (record.size == 4) {
		if (role == Role::READ_LOCK)
			take(record, LockKind::RWLOCK, true);
		else if (role == Role::READ_UNLOCK || taken(record.value, LockKind::RWLOCK))
			give_back(record, LockKind::RWLOCK, LockStep::RELEASE);
		else
			take(record, LockKind::SPIN, false);
	}
}

void Finder::store(const Record &record)
{
	if ((record.size != 1 && record.size != 8) || !seldom_.may_have(record.value))
		return;
	if (record.size == 1) {
		give_back(record, LockKind::SPIN, LockStep::RELEASE);
	} else if (Taken *lock = taken(record.value, LockKind::BIT)) {
		if (lock->node == node_ && clock_ - lock->clock <= LONGEST_BIT_LOCK)
			give_back(record, LockKind::BIT, LockStep::RELEASE);
		else
			taken_.erase(record.value);
	}
}

void Finder::step(const Record &record)
{
	if (!tree_.is_left_out(node_))
		clock_ += record.instructions;
	if (record.kind == Kind::NODE) {
		node_ = static_cast<uint32_t>(record.value);
		since_ = record.number + 1;
	} else if (record.kind >= Kind::BEGIN) {
		/* All begin a measured interval together, with nothing held. */
		taken_.clear();
	} else {
		if (record.value >> 6 != line_)
			since_ = record.number;
		line_ = record.value >> 6;
		if (record.kind == Kind::ATOMIC)
			atomic(record);
		else if (record.kind == Kind::STORE)
			store(record);
	}
}

std::vector<Mark> Finder::find()
{
	Record record;

	while (records_.next(record))
		step(record);
	std::stable_sort(marks_.begin(), marks_.end(), [](const Mark &a, const Mark &b) { return a.number < b.number; });
	return std::move(marks_);
}

} // namespace

std::vector<Mark> find_locks(const TraceFile &file, const CallTree &tree)
{
	return Finder(file, tree).find();
}
