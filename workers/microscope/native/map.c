// SPDX-License-Identifier: GPL-2.0-or-later
#include "map.h"

#include "memory.h"

/* Keys are addresses of words; those within one stretch of 2^NEAR_BITS bytes have adjacent places. */
#define NEAR_BITS 9

void map_begin(struct map *map, uint32_t places, size_t value_size)
{
	size_t before = map->entries ? ((size_t)map->mask + 1) * map->entry_size : 0;

	map->entry_size = sizeof(uint64_t) + (value_size + 7) / 8 * 8;
	map->entries = zeroed_again(map->entries, before, places * map->entry_size);
	map->mask = places - 1;
	map->used = 0;
	map->full = false;
}

/*
 * Keys near each other have places near each other: a thread's frames take a few lines of the host's cache instead of
 * one each.
 */
static uint32_t first_place(const struct map *map, uint64_t key)
{
	uint64_t far = (key >> NEAR_BITS) * 0x9e3779b97f4a7c15ull >> 32;

	return (uint32_t)(far << (NEAR_BITS - 3) | (key >> 3 & ((1u << (NEAR_BITS - 3)) - 1))) & map->mask;
}

static _Atomic uint64_t *key_at(const struct map *map, uint32_t place)
{
	return (_Atomic uint64_t *)(map->entries + place * map->entry_size);
}

void *map_find(struct map *map, uint64_t key)
{
	uint32_t place = first_place(map, key);
	uint64_t there;

	while ((there = atomic_load_explicit(key_at(map, place), memory_order_relaxed))) {
		if (there == key)
			return key_at(map, place) + 1;
		place = (place + 1) & map->mask;
	}
	return NULL;
}

void *map_make(struct map *map, uint64_t key)
{
	uint32_t place = first_place(map, key);
	uint64_t there;

	if (!key)
		return NULL;
	for (;; place = (place + 1) & map->mask) {
		there = atomic_load_explicit(key_at(map, place), memory_order_relaxed);
		if (!there) {
			if (map->used > map->mask / 4 * 3) {
				map->full = true;
				return NULL;
			}
			if (atomic_compare_exchange_strong(key_at(map, place), &there, key)) {
				map->used++;
				return key_at(map, place) + 1;
			}
		}
		if (there == key)
			return key_at(map, place) + 1;
	}
}
