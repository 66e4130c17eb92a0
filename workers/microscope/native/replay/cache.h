/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private caches of one CPU: two levels, the second holding all lines of the first; the least recently used line goes. */
#ifndef KPERFLAB_REPLAY_CACHE_H
#define KPERFLAB_REPLAY_CACHE_H

#include <cstdint>
#include <vector>

#include "machine.h"

/* In rising order: no line; may be read; the only copy; written. */
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
	/* The entry for a line that is not there: a free one, or that of the least recently used line, which is still in it. */
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
	/* Where a line is that has this state at least; a line in the second level alone is copied to the first. */
	Place look_up(uint64_t line, State least, uint32_t &watched);
	/* Puts a line there, or gives it another state. True: another line had to go, named in `gone`. */
	bool put(uint64_t line, State state, uint32_t watched, uint64_t &gone);
	void weaken(uint64_t line, State state);

private:
	void put_first(uint64_t line, State state, uint32_t watched);

	Level first_, second_;
};

#endif
