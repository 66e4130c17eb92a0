// SPDX-License-Identifier: GPL-2.0-or-later
/* The parts of the microscope that need no QEMU, driven by hand; run by test_microscope.py. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "functions.h"
#include "instruction.h"
#include "map.h"
#include "stacks.h"
#include "tree.h"

#define FLOW(...) instruction_flow((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
#define ATOMIC(...) instruction_is_atomic((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
#define MARK(...) instruction_mark((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

#define SLOT 0xffffc90000003f00ull

static struct block blocks[32];
static unsigned int made;

static struct block *block(uint64_t pc, uint64_t function, uint8_t kind, uint16_t count, bool entry)
{
	blocks[made] = (struct block){ .pc = pc, .function = function, .kind = kind, .count = count, .entry = entry };
	return &blocks[made++];
}

static uint64_t instructions_of(uint64_t function)
{
	uint64_t sum = 0;

	for (uint32_t node = ROOTS; node < tree_size(); node++)
		if (nodes[node].function == function)
			sum += tree_sum(node).instructions;
	return sum;
}

static uint64_t parent_of(uint64_t function)
{
	for (uint32_t node = ROOTS; node < tree_size(); node++)
		if (nodes[node].function == function)
			return nodes[nodes[node].parent].function;
	return ~0ull;
}

static void instructions_are_told_by_their_bytes(void)
{
	assert(FLOW(0xe8, 1, 2, 3, 4) == CALLS);
	assert(FLOW(0xff, 0xd0) == CALLS);	       /* call *%rax */
	assert(FLOW(0x41, 0xff, 0x54, 0x24, 8) == CALLS); /* call *8(%r12) */
	assert(FLOW(0x3e, 0xff, 0xd0) == CALLS);       /* notrack call *%rax */
	assert(FLOW(0xff, 0xe0) == GOES_ON);	       /* jmp *%rax */
	assert(FLOW(0xff, 0x35, 0, 0, 0, 0) == PUSHES);
	assert(FLOW(0xc3) == RETURNS && FLOW(0xf3, 0xc3) == RETURNS && FLOW(0xc2, 8, 0) == RETURNS);
	assert(FLOW(0x48, 0xcf) == RETURNS_FROM_INTERRUPT);
	assert(FLOW(0x48, 0x0f, 0x07) == RETURNS_FROM_SYSCALL && FLOW(0x0f, 0x05) == GOES_ON);
	assert(FLOW(0x6a, 0xff) == PUSHES && FLOW(0x57) == PUSHES && FLOW(0x41, 0x57) == PUSHES);
	assert(FLOW(0x65, 0x48, 0x0f, 0xc7, 0x08) == GOES_ON); /* cmpxchg16b */
	assert(FLOW(0x66) == GOES_ON && FLOW(0xff) == GOES_ON);
}

static void atomics_are_told_by_their_bytes(void)
{
	assert(ATOMIC(0xf0, 0x48, 0x0f, 0xc1, 0x07));	     /* lock xadd %rax,(%rdi) */
	assert(ATOMIC(0x3e, 0xf0, 0xff, 0x0f));		     /* ds lock decl (%rdi) */
	assert(ATOMIC(0x87, 0x07) && ATOMIC(0x48, 0x87, 0x07) && ATOMIC(0x86, 0x07)); /* xchg with memory needs no prefix */
	assert(!ATOMIC(0x48, 0x87, 0xc3));		     /* xchg of registers */
	assert(!ATOMIC(0x48, 0x89, 0xf0) && !ATOMIC(0xb8, 0xf0, 0xf0, 0xf0, 0xf0) && !ATOMIC(0xf0));
}

static void windows_of_cpus_are_their_own(void)
{
	struct block *first = block(0x1000, 0x1000, PLAIN, 10, true), *second = block(0x2000, 0x2000, PLAIN, 20, true);

	tree_begin(1 << 10);
	stacks_begin();
	stacks_block(0, first);
	stacks_open_window(0, 4); /* its mark was the sixth of ten instructions */
	assert(stacks_time(0, first, 6) == 0 && stacks_total_of(0) == 4);
	stacks_block(0, second);
	stacks_block(1, second);
	assert(stacks_time(0, second, 3) == 7 && stacks_total_of(1) == 0 && !stacks_window_is_open(1));
	assert(!stacks_close_window(1, 0) && stacks_close_window(0, 5));
	assert(stacks_total() == 19 && instructions_of(0x1000) == 4 && instructions_of(0x2000) == 15);
}

static void a_window_within_another_closes_nothing(void)
{
	struct block *work = block(0x1000, 0x1000, PLAIN, 10, true);

	tree_begin(1 << 10);
	stacks_begin();
	stacks_open_window(0, 0);
	stacks_block(0, work);
	stacks_open_window(0, 3);
	assert(stacks_close_window(0, 2) && stacks_window_is_open(0) && stacks_total() == 10);
}

static void only_our_nop_is_a_mark(void)
{
	assert(MARK(0x0f, 0x1f, 0x80, 1, 0x4c, 0x50, 0x4b) == 1);
	assert(MARK(0x0f, 0x1f, 0x80, 0, 0, 0, 0) == 0);
	assert(MARK(0x0f, 0x1f, 0x80, 1, 0x4c, 0x50) == 0);
}

static void calls_returns_and_tail_calls_keep_their_places(void)
{
	struct block *caller = block(0x1000, 0x1000, PLAIN, 3, true), *callee = block(0x2000, 0x2000, PLAIN, 5, true);
	struct block *tail = block(0x3000, 0x3000, PLAIN, 7, true), *rest = block(0x1010, 0x1000, PLAIN, 2, false);

	tree_begin(1 << 10);
	stacks_begin();
	stacks_open_window(0, 0);
	stacks_block(0, caller);
	stacks_call(0, SLOT, SLOT);
	stacks_block(0, callee);
	stacks_block(0, tail); /* a jump: its return goes to the caller */
	stacks_return(0, SLOT, SLOT);
	stacks_block(0, rest);
	assert(stacks_total() == 17 && instructions_of(0x1000) == 5);
	assert(parent_of(0x2000) == 0x1000 && parent_of(0x3000) == 0x1000);
	assert(!stacks_are_full());
}

static void an_interrupt_is_a_root_and_the_interrupted_goes_on(void)
{
	struct block *work = block(0x1000, 0x1000, PLAIN, 3, true), *entry = block(0x9000, 0x9000, INTERRUPT, 4, true);
	struct block *rest = block(0x1010, 0x1000, PLAIN, 2, false);

	tree_begin(1 << 10);
	stacks_begin();
	stacks_open_window(0, 0);
	stacks_block(0, work);
	stacks_block(0, entry);
	stacks_entry_store(0, SLOT - 8);
	stacks_interrupt_return(0, SLOT);
	stacks_interrupt_return(0, SLOT + 8); /* iretq loads more words; they mean nothing */
	stacks_block(0, rest);
	assert(parent_of(0x9000) == ROOT_INTERRUPT && instructions_of(0x9000) == 4 && instructions_of(0x1000) == 5);
}

static void accesses_that_are_not_the_blocks_own_turn_nothing(void)
{
	struct block *caller = block(0x1000, 0x1000, PLAIN, 3, true), *callee = block(0x2000, 0x2000, PLAIN, 5, true);
	struct block *rest = block(0x1010, 0x1000, PLAIN, 2, false);

	tree_begin(1 << 10);
	stacks_begin();
	stacks_open_window(0, 0);
	stacks_block(0, caller);
	stacks_call(0, SLOT, SLOT);
	stacks_block(0, callee);
	stacks_return(0, SLOT, SLOT);
	stacks_return(0, 0xfffffe0000000ec0ull, 0xfffffe0000000ec0ull);
	stacks_block(0, rest);
	assert(instructions_of(0x1000) == 5 && tree_size() == ROOTS + 2);
}

static void a_block_has_another_node_below_another_caller_and_in_another_tree(void)
{
	struct block *one = block(0x1000, 0x1000, PLAIN, 3, true), *other = block(0x4000, 0x4000, PLAIN, 3, true);
	struct block *callee = block(0x2000, 0x2000, PLAIN, 5, true);
	uint32_t below_one;

	for (int tree = 0; tree < 2; tree++) {
		tree_begin(1 << 10);
		stacks_begin();
		if (tree) /* takes the number that 0x1000 had in the first */
			tree_child(ROOT_PROGRAM, 0x7000);
		stacks_open_window(0, 0);
		stacks_block(0, one);
		stacks_call(0, SLOT, SLOT);
		stacks_block(0, callee);
		below_one = stacks_node(0);
		assert(nodes[nodes[below_one].parent].function == 0x1000);
		stacks_return(0, SLOT, SLOT);
		stacks_block(0, other);
		stacks_call(0, SLOT, SLOT);
		stacks_block(0, callee);
		assert(stacks_node(0) != below_one && nodes[nodes[stacks_node(0)].parent].function == 0x4000);
	}
}

static void a_tree_that_is_full_says_so(void)
{
	tree_begin(ROOTS + 1);
	assert(tree_child(ROOT_THREAD, 0x1000) == ROOTS && !tree_is_full());
	assert(tree_child(ROOT_THREAD, 0x2000) == ROOT_THREAD && tree_is_full());
}

static void a_map_keeps_what_fits_and_says_when_it_is_full(void)
{
	struct map map = { 0 };

	map_begin(&map, 16, sizeof(uint32_t));
	assert(!map_make(&map, 0) && !map_find(&map, 7));
	for (uint64_t key = 1; key <= 64; key++) {
		uint32_t *value = map_make(&map, key);

		if (value)
			*value = (uint32_t)key;
	}
	assert(map.full && *(uint32_t *)map_find(&map, 3) == 3 && !map_find(&map, 64));
}

static void a_map_tells_keys_near_and_far_apart(void)
{
	struct map map = { 0 };

	map_begin(&map, 1 << 12, sizeof(uint64_t));
	for (uint64_t far = 1; far <= 16; far++)
		for (uint64_t near = 0; near < 64; near++)
			*(uint64_t *)map_make(&map, (far << 20) + near * 8) = (far << 20) + near * 8;
	for (uint64_t far = 1; far <= 16; far++)
		for (uint64_t near = 0; near < 64; near++)
			assert(*(uint64_t *)map_find(&map, (far << 20) + near * 8) == (far << 20) + near * 8);
	assert(!map.full && map.used == 16 * 64 && !map_find(&map, 8));
}

int main(int argc, char **argv)
{
	instructions_are_told_by_their_bytes();
	atomics_are_told_by_their_bytes();
	only_our_nop_is_a_mark();
	windows_of_cpus_are_their_own();
	a_window_within_another_closes_nothing();
	calls_returns_and_tail_calls_keep_their_places();
	an_interrupt_is_a_root_and_the_interrupted_goes_on();
	accesses_that_are_not_the_blocks_own_turn_nothing();
	a_block_has_another_node_below_another_caller_and_in_another_tree();
	a_tree_that_is_full_says_so();
	a_map_tells_keys_near_and_far_apart();
	a_map_keeps_what_fits_and_says_when_it_is_full();
	assert(argc < 2 || functions_read(argv[1]));
	puts("all passed");
	return 0;
}
