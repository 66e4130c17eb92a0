// SPDX-License-Identifier: GPL-2.0-or-later
#include "map.h"

#include "memory.h"

void map_begin(struct map *map, uint32_t places, size_t value_size)
{
	size_t before = map->keys ? (size_t)map->mask + 1 : 0;

	map->keys = zeroed_again(map->keys, before * sizeof(*map->keys), places * sizeof(*map->keys));
	map->values = zeroed_again(map->values, before * map->value_size, places * value_size);
	map->value_size = value_size;
	map->mask = places - 1;
	map->used = 0;
	map->full = false;
}

static uint32_t first_place(const struct map *map, uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & map->mask;
}

void *map_find(struct map *map, uint64_t key)
{
	uint32_t place = first_place(map, key);
	uint64_t there;

	while ((there = atomic_load_explicit(&map->keys[place], memory_order_relaxed))) {
		if (there == key)
			return map->values + place * map->value_size;
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
		there = atomic_load_explicit(&map->keys[place], memory_order_relaxed);
		if (!there) {
			if (map->used > map->mask / 4 * 3) {
				map->full = true;
				return NULL;
			}
			if (atomic_compare_exchange_strong(&map->keys[place], &there, key)) {
				map->used++;
				return map->values + place * map->value_size;
			}
		}
		if (there == key)
			return map->values + place * map->value_size;
	}
}
