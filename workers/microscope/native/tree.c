// SPDX-License-Identifier: GPL-2.0-or-later
#include "tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "memory.h"

struct node *nodes;
/* One array a CPU, made when the CPU first counts; only the pages of nodes that it was in take memory. */
static _Atomic(struct counts *) counts_of[MOST_CPUS];

/* Node numbers by (parent, function), open addressing. Virtual CPUs look up without a lock and insert under one. */
static _Atomic uint32_t *slots;
static uint32_t mask, most_nodes, number;
static _Atomic uint32_t size;
static _Atomic bool full;
static pthread_mutex_t inserting = PTHREAD_MUTEX_INITIALIZER;

void tree_begin(uint32_t most)
{
	uint32_t places = 1, places_before = nodes ? mask + 1 : 0;

	while (places < 2 * most)
		places *= 2;
	nodes = zeroed_again(nodes, most_nodes * sizeof(*nodes), most * sizeof(*nodes));
	slots = zeroed_again(slots, places_before * sizeof(*slots), places * sizeof(*slots));
	for (unsigned int cpu = 0; cpu < MOST_CPUS; cpu++)
		if (counts_of[cpu])
			counts_of[cpu] =
				zeroed_again(counts_of[cpu], most_nodes * sizeof(struct counts), most * sizeof(struct counts));
	most_nodes = most;
	number++;
	mask = places - 1;
	full = false;
	for (uint32_t root = 0; root < ROOTS; root++)
		nodes[root].function = root;
	size = ROOTS;
}

uint32_t tree_number(void)
{
	return number;
}

static uint32_t first_place(uint32_t parent, uint64_t function)
{
	uint64_t mixed = (function ^ ((uint64_t)parent << 40 | parent)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(mixed >> 32) & mask;
}

static uint32_t find(uint32_t parent, uint64_t function, uint32_t *place)
{
	uint32_t node;

	*place = first_place(parent, function);
	while ((node = atomic_load_explicit(&slots[*place], memory_order_acquire))) {
		if (nodes[node].function == function && nodes[node].parent == parent)
			return node;
		*place = (*place + 1) & mask;
	}
	return 0;
}

static uint32_t insert(uint32_t parent, uint64_t function)
{
	uint32_t place, node = find(parent, function, &place);

	if (node)
		return node;
	if (size == most_nodes) {
		full = true;
		return parent;
	}
	node = size;
	nodes[node].function = function;
	nodes[node].parent = parent;
	size = node + 1;
	atomic_store_explicit(&slots[place], node, memory_order_release);
	return node;
}

uint32_t tree_child(uint32_t parent, uint64_t function)
{
	uint32_t place, node = find(parent, function, &place);

	if (node)
		return node;
	pthread_mutex_lock(&inserting);
	node = insert(parent, function);
	pthread_mutex_unlock(&inserting);
	return node;
}

struct counts *tree_counts(unsigned int cpu)
{
	if (!counts_of[cpu])
		counts_of[cpu] = zeroed_memory(most_nodes * sizeof(struct counts));
	return counts_of[cpu];
}

struct counts tree_sum(uint32_t node)
{
	struct counts sum = { 0 };

	for (unsigned int cpu = 0; cpu < MOST_CPUS; cpu++) {
		const struct counts *counts = counts_of[cpu];

		if (counts) {
			sum.instructions += counts[node].instructions;
			sum.calls += counts[node].calls;
		}
	}
	return sum;
}

uint32_t tree_size(void)
{
	return size;
}

bool tree_is_full(void)
{
	return full;
}
