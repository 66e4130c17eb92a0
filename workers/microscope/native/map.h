/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values by a 64-bit key, for virtual CPUs that read and write at once, each its own keys. Nothing is ever removed. */
#ifndef KPERFLAB_MAP_H
#define KPERFLAB_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	char *entries; /* of a key and its value each */
	size_t entry_size;
	uint32_t mask;
	_Atomic uint32_t used;
	_Atomic bool full; /* something did not fit */
};

/* Empties a map, which starts as zeros. places: a power of two. */
void map_begin(struct map *map, uint32_t places, size_t value_size);
/* The value of a key, NULL if it has none. Key 0 never has one. */
void *map_find(struct map *map, uint64_t key);
/* The same, made and zeroed where there is none; NULL once three quarters of the places are taken. */
void *map_make(struct map *map, uint64_t key);

#endif
