// SPDX-License-Identifier: GPL-2.0-or-later
#include "cache.h"

namespace {
constexpr uint32_t LINE = 64;
}

Level::Level(uint32_t bytes, uint32_t ways) : entries_(bytes / LINE), mask_(bytes / LINE / ways - 1), ways_(ways)
{
}

Level::Entry *Level::find(uint64_t line)
{
	Entry *entries = set(line);

	for (uint32_t way = 0; way < ways_; way++)
		if (entries[way].line == line && entries[way].state != INVALID)
			return &entries[way];
	return nullptr;
}

Level::Entry &Level::victim(uint64_t line)
{
	Entry *entries = set(line), *oldest = entries;

	for (uint32_t way = 0; way < ways_; way++) {
		if (entries[way].state == INVALID)
			return entries[way];
		/* The clock may wrap round; what counts is how long ago. */
		if (clock_ - entries[way].used > clock_ - oldest->used)
			oldest = &entries[way];
	}
	return *oldest;
}

Caches::Caches(const Machine &machine)
	: first_(machine.l1_bytes, machine.l1_ways), second_(machine.l2_bytes, machine.l2_ways)
{
}

void Caches::put_first(uint64_t line, State state, uint32_t watched)
{
	Level::Entry *entry = first_.find(line);

	if (!entry) {
		entry = &first_.victim(line);
		entry->line = line;
	}
	entry->state = state;
	entry->watched = watched;
	first_.use(*entry);
}

Caches::Place Caches::look_up(uint64_t line, State least, uint32_t &watched)
{
	Level::Entry *entry = first_.find(line);

	if (entry) {
		if (entry->state < least)
			return Place::NOWHERE;
		watched = entry->watched;
		first_.use(*entry);
		return Place::FIRST;
	}
	entry = second_.find(line);
	if (!entry || entry->state < least)
		return Place::NOWHERE;
	watched = entry->watched;
	second_.use(*entry);
	put_first(line, entry->state, watched);
	return Place::SECOND;
}

bool Caches::put(uint64_t line, State state, uint32_t watched, uint64_t &gone)
{
	Level::Entry *entry = second_.find(line);
	bool replaces = false;

	if (!entry) {
		entry = &second_.victim(line);
		replaces = entry->state != INVALID;
		if (replaces) {
			gone = entry->line;
			if (Level::Entry *copy = first_.find(gone))
				copy->state = INVALID;
		}
		entry->line = line;
	}
	entry->state = state;
	entry->watched = watched;
	second_.use(*entry);
	put_first(line, state, watched);
	return replaces;
}

void Caches::weaken(uint64_t line, State state)
{
	if (Level::Entry *entry = first_.find(line))
		entry->state = state;
	if (Level::Entry *entry = second_.find(line))
		entry->state = state;
}
