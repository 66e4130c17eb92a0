// SPDX-License-Identifier: GPL-2.0-or-later
#include "events.h"

Events::Events(const TraceFile &file, const CallTree &tree)
	: records_(file, tree.size()), tree_(&tree), marks_(find_locks(file, tree))
{
}

void Events::take_marks(const Record &record, Event &event)
{
	event.step = LockStep::NONE;
	event.lock = LockKind::NONE;
	for (; mark_ < marks_.size() && marks_[mark_].number == record.number; mark_++) {
		auto step = static_cast<LockStep>(marks_[mark_].step);

		if (step == LockStep::LEAVE_OUT || step == LockStep::LEAVE_OUT_ENDS) {
			skips_ = step == LockStep::LEAVE_OUT;
		} else {
			event.step = step;
			event.lock = static_cast<LockKind>(marks_[mark_].kind);
		}
	}
}

bool Events::is_replayed(const Record &record, const Event &event) const
{
	if (record.kind == Kind::BEGIN || record.kind == Kind::END || event.step != LockStep::NONE)
		return true;
	return record.kind != Kind::NODE && !skips_ && !tree_->is_left_out(node_);
}

bool Events::next(Event &event)
{
	Record record;

	while (records_.next(record)) {
		take_marks(record, event);
		/* Instructions since the previous record were executed in the node where that record left the CPU. */
		(skips_ || tree_->is_left_out(node_) ? left_out_ : work_) += record.instructions;
		if (record.kind == Kind::NODE)
			node_ = static_cast<uint32_t>(record.value);
		if (!is_replayed(record, event))
			continue;
		event.kind = record.kind;
		event.size = record.size;
		event.node = node_;
		event.address = record.value;
		event.instructions = work_;
		work_ = 0;
		return true;
	}
	return false;
}
