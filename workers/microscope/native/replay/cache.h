/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The caches that one CPU has for itself: two levels, the second holding all that the first does, least recently used out. */
#ifndef KPERFLAB_REPLAY_CACHE_H
#define KPERFLAB_REPLAY_CACHE_H

#include <cstdint>
#include <vector>

#include "machine.h"

/* May a CPU read the line, may it write it, has it. */
enum State : uint8_t { INVALID, SHARED, EXCLUSIVE, MODIFIED };

class Level {
public:
	struct Entry {
		uint64_t line = 0; /* its number; the state tells whether there is one */
		uint32_t used = 0;
		uint32_t watched = 0; /* see evidence.h */
		State state = INVALID;
	};

	Level(uint32_t bytes, uint32_t ways);
	Entry *find(uint64_t line);
	/* The entry of a line that is not there, in place of the one that was used longest ago, which is still in it. */
	Entry &victim(uint64_t line);
	void use(Entry &entry) { entry.used = ++clock_; }

private:
	Entry *set(uint64_t line) { return &entries_[(line & mask_) * ways_]; }

	std::vector<Entry> entries_;
	uint64_t mask_;
	uint32_t ways_, clock_ = 0;
};

class Caches {
public:
	enum class Place { FIRST, SECOND, NOWHERE };

	explicit Caches(const Machine &machine);
	/* Where a line is that may be used in this way; a line in the second level moves to the first. */
	Place look_up(uint64_t line, State least, uint32_t &watched);
	/* Puts a line there, or gives it another state. True: another line had to go, and which. */
	bool put(uint64_t line, State state, uint32_t watched, uint64_t &gone);
	void weaken(uint64_t line, State state);

private:
	void put_first(uint64_t line, State state, uint32_t watched);

	Level first_, second_;
};

#endif
