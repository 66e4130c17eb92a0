// SPDX-License-Identifier: GPL-2.0-or-later
#include "coherence.h"
#include "refused.h"

namespace {
/* 384 MiB of lines, which take as much here while the table grows. */
constexpr uint64_t MOST_LINES = 6 << 20;
constexpr size_t FIRST_PLACES = 1 << 16;
} // namespace

Directory::Directory() : states_(FIRST_PLACES)
{
}

size_t Directory::place(uint64_t line) const
{
	size_t at = (line * 0x9e3779b97f4a7c15ull >> 32) & (states_.size() - 1);

	while (states_[at].exists && states_[at].line != line)
		at = (at + 1) & (states_.size() - 1);
	return at;
}

void Directory::grow()
{
	std::vector<LineState> old(2 * states_.size());

	old.swap(states_);
	for (const LineState &state : old)
		if (state.exists)
			states_[place(state.line)] = state;
}

LineState &Directory::at(uint64_t line, bool &is_new)
{
	size_t at = place(line);

	is_new = !states_[at].exists;
	if (!is_new)
		return states_[at];
	if (used_ == MOST_LINES)
		throw Refused("the trace touches more memory than can be replayed at once; measure fewer iterations");
	if (++used_ > states_.size() / 4 * 3) {
		grow();
		at = place(line);
	}
	states_[at].line = line;
	states_[at].exists = true;
	return states_[at];
}

LineState *Directory::find(uint64_t line)
{
	LineState &state = states_[place(line)];

	return state.exists ? &state : nullptr;
}
