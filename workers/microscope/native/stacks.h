/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which node of the call tree each virtual CPU is in.
 *
 * A frame is known by the place in memory that holds its return address: a call stores there, the return loads from
 * there, and in between it does not matter what else ran, so frames survive context switches, interrupts and signals.
 */
#ifndef KPERFLAB_STACKS_H
#define KPERFLAB_STACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

/* A run of instructions without a branch into or out of its middle, as QEMU translates them. */
struct block {
	uint64_t pc;
	uint64_t function; /* where its function starts, 0 if that is not known */
	uint16_t count;	   /* instructions */
	uint8_t kind;	   /* enum kind of the function */
	bool user;
	bool leaves; /* its last instruction goes to a program, without storing where */
	bool entry;  /* it begins where its function, or the part of it, does */
	_Atomic uint64_t kept; /* the tree's number, the caller's node and this function's below it, as last looked up */
	uint16_t offsets[]; /* of each instruction, from pc */
};

void stacks_begin(void);
/* Whether something didn't fit into memory: then the tree is not whole. */
bool stacks_are_full(void);

/* Whether this is the block that a CPU began last. */
bool stacks_is_in(unsigned int cpu, const struct block *block);
void stacks_block(unsigned int cpu, struct block *block);
void stacks_call(unsigned int cpu, uint64_t address, uint64_t key);
void stacks_return(unsigned int cpu, uint64_t address, uint64_t key);
void stacks_entry_store(unsigned int cpu, uint64_t address);
void stacks_interrupt_return(unsigned int cpu, uint64_t address);

/*
 * A CPU's window: what it executes is counted while it is open. One may be opened in another, as threads do that share
 * a CPU. rest: instructions of the block that come after the mark. Closing returns false where none is open.
 */
void stacks_open_window(unsigned int cpu, uint16_t rest);
bool stacks_close_window(unsigned int cpu, uint16_t rest);
bool stacks_window_is_open(unsigned int cpu);

/* Instructions that a CPU had executed in its windows before the one at an index of the block. */
uint64_t stacks_time(unsigned int cpu, const struct block *block, uint16_t index);
uint32_t stacks_node(unsigned int cpu);
/* Whether an address is on the kernel stack that a CPU uses. */
bool stacks_is_on_stack(unsigned int cpu, uint64_t address);
/* Instructions executed in windows, by one CPU and by all. */
uint64_t stacks_total_of(unsigned int cpu);
uint64_t stacks_total(void);

#endif
