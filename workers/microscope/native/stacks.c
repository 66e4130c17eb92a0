// SPDX-License-Identifier: GPL-2.0-or-later
#include "stacks.h"

#include <stddef.h>
#include <string.h>

#include "functions.h"
#include "map.h"
#include "tree.h"

/* Kernel stacks are aligned to their size, THREAD_SIZE: 16 KiB on x86-64. */
#define STACK_SHIFT 14
#define FRAMES (1u << 22)
#define INTERRUPTED (1u << 16)
#define TASKS (1u << 16)

/* Where a flow of control was left, to be taken up again. */
struct place {
	uint32_t node;		      /* 0: unknown */
	bool called;		      /* its last instruction was a call; the callee's first block has not begun */
	const struct block *unfinished; /* the block that an exception interrupted in its middle, or NULL */
};

struct cpu {
	struct place now;
	const struct block *last;
	bool user;
	bool turned; /* the last block's call or return has been seen: further reported accesses aren't its own */
	bool awaits_store;  /* an interrupt of the kernel has begun, and its first store has not been seen */
	struct place interrupted;
	bool entered;	    /* from a program, with no context switch since */
	struct place program;
	uint64_t task;	    /* the kernel stack in use */
	uint32_t windows;
	uint64_t total; /* instructions counted */
	struct counts *counts; /* by node, NULL before the first window */
} __attribute__((aligned(128))); /* each virtual CPU's thread changes its own */

static struct cpu cpus[MOST_CPUS];
static struct map frames;      /* uint32_t, the caller's node, by the key of the return address' place */
static struct map interrupted; /* struct place, by the first store of the interrupt's entry */
static struct map programs;    /* struct place, by the task's kernel stack */

void stacks_begin(void)
{
	memset(cpus, 0, sizeof(cpus));
	map_begin(&frames, FRAMES, sizeof(uint32_t));
	map_begin(&interrupted, INTERRUPTED, sizeof(struct place));
	map_begin(&programs, TASKS, sizeof(struct place));
}

bool stacks_are_full(void)
{
	return frames.full || interrupted.full || programs.full || tree_is_full();
}

bool stacks_is_in(unsigned int cpu, const struct block *block)
{
	return cpus[cpu].last == block;
}

static void count(struct cpu *cpu, uint32_t node, int64_t instructions)
{
	cpu->counts[node].instructions += (uint64_t)instructions;
	cpu->total += (uint64_t)instructions;
}

static void count_call(struct cpu *cpu)
{
	if (cpu->windows)
		cpu->counts[cpu->now.node].calls++;
}

static uint64_t function_at(const struct block *block)
{
	return block->function ? block->function : block->pc;
}

/*
 * The node of a block's function below a parent. A block mostly has the caller it had the last time, so it keeps that
 * answer, which saves looking into the tree.
 */
static uint32_t child(struct block *block, uint32_t parent)
{
	uint64_t asked = (uint64_t)tree_number() << 2 * NODE_BITS | (uint64_t)parent << NODE_BITS;
	uint64_t kept = atomic_load_explicit(&block->kept, memory_order_relaxed);

	if (kept >> NODE_BITS != asked >> NODE_BITS) {
		kept = asked | tree_child(parent, function_at(block));
		atomic_store_explicit(&block->kept, kept, memory_order_relaxed);
	}
	return kept & ((1u << NODE_BITS) - 1);
}

/* A page fault or its like ends a block early that was counted whole. The block resumes at the instruction that faulted. */
static void count_only_what_was_executed(struct cpu *cpu, const struct place *place, const struct block *next)
{
	const struct block *block = place->unfinished;

	if (!cpu->windows || next->pc < block->pc)
		return;
	for (uint16_t at = 0; at < block->count; at++)
		if (block->pc + block->offsets[at] == next->pc)
			count(cpu, place->node, -(int64_t)(block->count - at));
}

static void leave_program(struct cpu *cpu, const struct block *unfinished)
{
	cpu->program = cpu->now;
	cpu->program.unfinished = unfinished;
	cpu->entered = true;
	cpu->task = 0;
}

static void enter_interrupt(struct cpu *cpu, struct block *block)
{
	const struct block *unfinished = block->kind == EXCEPTION ? cpu->last : NULL;

	if (cpu->user) {
		leave_program(cpu, unfinished);
	} else {
		cpu->interrupted = cpu->now;
		cpu->interrupted.unfinished = unfinished;
		cpu->awaits_store = true;
	}
	cpu->now.node = child(block, block->kind == INTERRUPT ? ROOT_INTERRUPT : cpu->now.node);
	cpu->now.called = false;
}

static void return_to_program(struct cpu *cpu)
{
	struct place *kept = cpu->task ? map_find(&programs, cpu->task) : NULL;

	cpu->now = kept ? *kept : cpu->entered ? cpu->program : (struct place){ 0 };
	cpu->entered = false;
	cpu->user = true;
}

/* A block outside the node's function: after a jump to another function, or after an unknown return. */
static void go_on_in(struct cpu *cpu, struct block *block)
{
	if (!cpu->now.node)
		cpu->now.node = child(block, block->user ? ROOT_PROGRAM : ROOT_THREAD);
	else if (block->function && nodes[cpu->now.node].function != block->function)
		cpu->now.node = child(block, nodes[cpu->now.node].parent);
	else
		return;
	if (block->entry)
		count_call(cpu);
}

static void begin_callee(struct cpu *cpu, struct block *block)
{
	cpu->now.called = false;
	/* A call into the function's own middle is a trick with the return address, as in retpolines, and not a call. */
	if (block->function && !block->entry && nodes[cpu->now.node].function == block->function)
		return;
	cpu->now.node = child(block, cpu->now.node);
	count_call(cpu);
}

static void enter(struct cpu *cpu, struct block *block)
{
	if (block->kind == SYSCALL) {
		leave_program(cpu, NULL);
		cpu->now.node = child(block, cpu->now.node ? cpu->now.node : ROOT_PROGRAM);
	} else {
		enter_interrupt(cpu, block);
	}
	count_call(cpu);
}

static void begin_thread(struct cpu *cpu, struct block *block)
{
	struct place *kept = map_find(&programs, cpu->task);

	if (kept)
		*kept = (struct place){ 0 };
	cpu->now = (struct place){ .node = child(block, ROOT_THREAD) };
}

static void go_on(struct cpu *cpu, struct block *block)
{
	if (block->user != cpu->user) /* by a way that we don't know */
		cpu->now = (struct place){ 0 };
	if (cpu->now.unfinished)
		count_only_what_was_executed(cpu, &cpu->now, block);
	if (cpu->now.called)
		begin_callee(cpu, block);
	else
		go_on_in(cpu, block);
}

void stacks_block(unsigned int number, struct block *block)
{
	struct cpu *cpu = &cpus[number];

	if (block->entry && (block->kind == INTERRUPT || block->kind == EXCEPTION || block->kind == SYSCALL))
		enter(cpu, block);
	else if (block->entry && block->kind == THREAD)
		begin_thread(cpu, block);
	else
		go_on(cpu, block);
	if (block->kind == SWITCH)
		cpu->entered = false;
	cpu->now.unfinished = NULL;
	cpu->turned = false;
	cpu->user = block->user;
	cpu->last = block;
	if (cpu->windows)
		count(cpu, cpu->now.node, block->count);
	if (block->leaves)
		return_to_program(cpu);
}

/* A CPU's task is known by its kernel stack; the place that its program was left at is kept by that stack. */
static void use_stack(struct cpu *cpu, uint64_t address)
{
	uint64_t task = address >> STACK_SHIFT;
	struct place *kept;

	if (task == cpu->task)
		return;
	cpu->task = task;
	if (!cpu->entered)
		return;
	kept = map_make(&programs, task);
	if (kept)
		*kept = cpu->program;
}

/*
 * A block has one call or return at most, at its end, and its own access comes first. QEMU 7.2 also calls back for the
 * accesses that the CPU makes by itself next, such as looking up an interrupt's entry; an iretq loads four more words.
 */
static bool turn(struct cpu *cpu)
{
	bool first = !cpu->turned;

	cpu->turned = true;
	return first;
}

void stacks_entry_store(unsigned int number, uint64_t address)
{
	struct cpu *cpu = &cpus[number];
	struct place *kept;

	if (!cpu->awaits_store)
		return;
	cpu->awaits_store = false;
	kept = map_make(&interrupted, address);
	if (kept)
		*kept = cpu->interrupted;
}

void stacks_call(unsigned int number, uint64_t address, uint64_t key)
{
	struct cpu *cpu = &cpus[number];
	uint32_t *caller;

	stacks_entry_store(number, address);
	if (!turn(cpu))
		return;
	if (!cpu->user)
		use_stack(cpu, address);
	caller = map_make(&frames, key);
	if (caller)
		*caller = cpu->now.node;
	cpu->now.called = true;
}

void stacks_return(unsigned int number, uint64_t address, uint64_t key)
{
	struct cpu *cpu = &cpus[number];
	uint32_t *caller;

	if (!turn(cpu))
		return;
	caller = map_find(&frames, key);
	if (!cpu->user)
		use_stack(cpu, address);
	if (cpu->last && cpu->last->kind == MOVES_RETURN)
		cpu->now = (struct place){ .node = nodes[cpu->now.node].parent };
	else
		cpu->now = (struct place){ .node = caller ? *caller : 0 };
}

void stacks_interrupt_return(unsigned int number, uint64_t address)
{
	struct cpu *cpu = &cpus[number];
	struct place *kept;

	if (!turn(cpu))
		return;
	/* Below what the hardware stored lies the entry's own first word, or an error code and then that word. */
	kept = map_find(&interrupted, address - 8);
	if (!kept || !kept->node)
		kept = map_find(&interrupted, address - 16);
	if (kept && kept->node) {
		cpu->now = *kept;
		*kept = (struct place){ 0 };
	} else {
		return_to_program(cpu);
	}
}

void stacks_open_window(unsigned int number, uint16_t rest)
{
	struct cpu *cpu = &cpus[number];

	if (cpu->windows++)
		return;
	if (!cpu->counts)
		cpu->counts = tree_counts(number);
	count(cpu, cpu->now.node, rest); /* the block was passed over, being outside */
}

bool stacks_close_window(unsigned int number, uint16_t rest)
{
	struct cpu *cpu = &cpus[number];

	if (!cpu->windows)
		return false;
	if (!--cpu->windows)
		count(cpu, cpu->now.node, -(int64_t)rest);
	return true;
}

bool stacks_window_is_open(unsigned int cpu)
{
	return cpus[cpu].windows;
}

uint64_t stacks_time(unsigned int number, const struct block *block, uint16_t index)
{
	const struct cpu *cpu = &cpus[number];

	return block == cpu->last ? cpu->total - (uint64_t)(block->count - index) : cpu->total;
}

uint32_t stacks_node(unsigned int cpu)
{
	return cpus[cpu].now.node;
}

bool stacks_is_on_stack(unsigned int cpu, uint64_t address)
{
	return address >> STACK_SHIFT == cpus[cpu].task;
}

uint64_t stacks_total_of(unsigned int cpu)
{
	return cpus[cpu].total;
}

uint64_t stacks_total(void)
{
	uint64_t total = 0;

	for (unsigned int cpu = 0; cpu < MOST_CPUS; cpu++)
		total += cpus[cpu].total;
	return total;
}
