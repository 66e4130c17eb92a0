/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the model replays of one virtual CPU: its own accesses, which of them take or give back a lock, and its work. */
#ifndef KPERFLAB_REPLAY_EVENTS_H
#define KPERFLAB_REPLAY_EVENTS_H

#include <cstdint>
#include <vector>

#include "call_tree.h"
#include "trace_file.h"

enum class LockKind : uint8_t { NONE, SPIN, BIT, RWLOCK, MUTEX, RWSEM };
enum class LockStep : uint8_t { NONE, ACQUIRE, ACQUIRE_SHARED, RELEASE, DOWNGRADE, LEAVE_OUT, LEAVE_OUT_ENDS };

/* What was found out about one record. */
struct Mark {
	uint64_t number : 56; /* of the record */
	uint64_t step : 4;
	uint64_t kind : 4;
};
static_assert(sizeof(Mark) == 8);

/*
 * Finds the locks that a virtual CPU took and gave back, by reading its records once. They hold no values of memory:
 * a lock is an atomic that is later undone at the same address, in the way of its kind (docs/contention.md). The marks
 * come in the order of the records.
 */
std::vector<Mark> find_locks(const TraceFile &file, const CallTree &tree);

struct Event {
	Kind kind; /* NODE never */
	uint8_t size;
	LockStep step;
	LockKind lock;
	uint32_t node;
	uint64_t address;
	uint64_t instructions; /* of the program's own work, since the event before */
};

class Events {
public:
	Events(const TraceFile &file, const CallTree &tree);
	/* False at the end of the file. */
	bool next(Event &event);
	/* Instructions so far that were spinning, sleeping, or no work of the program's. */
	uint64_t left_out() const { return left_out_; }

private:
	void take_marks(const Record &record, Event &event);
	bool is_replayed(const Record &record, const Event &event) const;

	Records records_;
	const CallTree *tree_;
	std::vector<Mark> marks_;
	size_t mark_ = 0;
	uint64_t left_out_ = 0, work_ = 0;
	uint32_t node_ = 0;
	bool skips_ = false;
};

#endif
