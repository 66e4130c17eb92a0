// SPDX-License-Identifier: GPL-2.0-or-later
/* What the microscope records of memory, without QEMU; run by test_accesses.py as "PROGRAM SCENARIO PATH". */
#define _GNU_SOURCE
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "functions.h"
#include "map.h"
#include "stacks.h"
#include "trace.h"
#include "tree.h"

#define THREADS 8
#define ROUNDS 2000

static uint64_t no_instructions(unsigned int cpu)
{
	return cpu + 1000;
}

static uint64_t draw(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Accesses of every kind, size and region, each printed as it must be read: "TIME NODE KIND SHIFT ADDRESS". */
static void round_trip(void)
{
	static const uint64_t regions[] = { 0xffff888000000000ull, 0xffffc90000000000ull, 0xffffffff81000000ull, 1ull << 62 };
	uint64_t time = 5;

	trace_open_window(3, time);
	for (unsigned int number = 0; number < 20000; number++) {
		struct access access = {
			.time = time += draw() % 3 ? draw() % 9 : draw() % 100000,
			.address = regions[draw() % 4] + (draw() % (1 << 20) * 64) * (draw() % 2 ? 1 : 4096),
			.node = draw() % 4 ? 77 : (uint32_t)(draw() % (1 << 20)),
			.kind = (uint8_t)(draw() % 3),
			.shift = (uint8_t)(draw() % 7),
		};

		/* A line of its own each, so that none is left out. */
		access.address = (access.address & ~0x3ffffull) + number * 64;
		trace_access(3, &access);
		printf("%" PRIu64 " %u %u %u %" PRIu64 "\n", access.time, access.node, access.kind, access.shift, access.address);
	}
	trace_close_window(3, time);
}

static void touch(uint64_t time, uint64_t address, uint8_t kind, bool on_stack)
{
	struct access access = { .time = time, .address = address, .node = 9, .kind = kind, .shift = 3, .on_stack = on_stack };

	trace_access(0, &access);
}

/* Marked L, S, A: recorded. Marked -: left out. */
static void filter(void)
{
	const uint64_t line = 0xffff888000001000ull, stack = 0xffffc90000003f00ull;

	trace_open_window(0, 0);
	touch(10, line, LOAD, false);	   /* L: the first */
	touch(20, line, LOAD, false);	   /* - */
	touch(21, line + 8, LOAD, false);  /* L: another word */
	touch(22, line, STORE, false);	   /* S: stronger */
	touch(30, line, STORE, false);	   /* - */
	touch(31, line, LOAD, false);	   /* - */
	touch(86, line, STORE, false);	   /* S: 64 instructions after the last that was recorded */
	touch(90, line + 16, ATOMIC, false); /* A: always */
	touch(90, line + 16, ATOMIC, false); /* -: its store */
	touch(91, line + 16, ATOMIC, false); /* A */
	touch(92, line + 16, STORE, false);  /* S: may release a lock */
	touch(93, line + 16, STORE, false);  /* S */
	touch(100, stack, STORE, true);	     /* S */
	touch(1000, stack, STORE, true);     /* -: nobody else's */
	touch(1200, stack, STORE, true);     /* S */
	touch(1201, line + 60, LOAD, false); /* L: two lines at once, */
	touch(1202, line + 60, LOAD, false); /* L: which are always recorded */
	trace_close_window(0, 2000);
	trace_open_window(0, 2000);
	touch(2001, line, LOAD, false); /* L: another window */
	trace_close_window(0, 2010);
}

static void many(unsigned int cpu, unsigned int count)
{
	trace_open_window(cpu, 0);
	for (unsigned int number = 0; number < count; number++)
		trace_access(cpu, &(struct access){ .time = number, .address = draw() | 1ull << 63, .kind = LOAD });
}

static void too_much(void)
{
	many(0, 400000);
	trace_close_window(0, 400000);
	many(1, 10);
	trace_close_window(1, 10);
}

static void full_disk(void)
{
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 300000, 300000 });
	many(0, 400000);
	trace_close_window(0, 400000);
}

/* Calls down into functions of its own and of all, and back, on a virtual CPU of its own. */
static void *run_cpu(void *number)
{
	unsigned int cpu = (unsigned int)(uintptr_t)number;
	struct block outer = { .pc = 0x1000, .function = 0x1000, .kind = PLAIN, .count = 3, .entry = true };

	stacks_open_window(cpu, 0);
	trace_open_window(cpu, 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t slot = 0xffffc90000000000ull + cpu * 0x4000 + 0x2000 - round % 64 * 8;
		uint64_t function = 0x2000 + (round % 3 ? round : round * THREADS + cpu) * 0x10;
		struct block inner = { .pc = function, .function = function, .kind = PLAIN, .count = 5, .entry = true };

		stacks_block(cpu, &outer);
		stacks_call(cpu, slot, slot);
		stacks_block(cpu, &inner);
		trace_access(cpu, &(struct access){ .time = stacks_time(cpu, &inner, 1), .address = 0xffff888000000000ull + round % 7 * 8,
						    .node = stacks_node(cpu), .kind = (uint8_t)(round % 3), .shift = 3 });
		stacks_return(cpu, slot, slot);
	}
	stacks_close_window(cpu, 0);
	trace_close_window(cpu, stacks_total_of(cpu));
	return NULL;
}

static void threads(void)
{
	pthread_t running[THREADS];
	uint64_t instructions = 0, calls = 0;

	tree_begin(1 << 16);
	stacks_begin();
	for (uintptr_t cpu = 0; cpu < THREADS; cpu++)
		assert(!pthread_create(&running[cpu], NULL, run_cpu, (void *)cpu));
	for (unsigned int cpu = 0; cpu < THREADS; cpu++)
		pthread_join(running[cpu], NULL);
	for (uint32_t node = 0; node < tree_size(); node++) {
		instructions += tree_sum(node).instructions;
		calls += tree_sum(node).calls;
		assert(node < ROOTS || nodes[node].parent < node);
		for (uint32_t other = ROOTS; other < node && node < ROOTS + 200; other++)
			assert(nodes[node].function != nodes[other].function || nodes[node].parent != nodes[other].parent);
	}
	assert(instructions == stacks_total() && instructions == (uint64_t)THREADS * ROUNDS * 8);
	/* Each CPU's outer function was called once, or was where it began. */
	assert(calls >= THREADS * ROUNDS && calls <= THREADS * (ROUNDS + 1));
	assert(!stacks_are_full());
}

int main(int argc, char **argv)
{
	assert(argc == 3);
	trace_begin(argv[2], 0);
	if (!strcmp(argv[1], "round-trip"))
		round_trip();
	else if (!strcmp(argv[1], "filter"))
		filter();
	else if (!strcmp(argv[1], "too-much"))
		too_much();
	else if (!strcmp(argv[1], "full-disk"))
		full_disk();
	else if (!strcmp(argv[1], "open"))
		many(2, 100);
	else if (!strcmp(argv[1], "threads"))
		threads();
	printf("%s\n", trace_finish(no_instructions) ? "whole" : "not whole");
	return 0;
}
