/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which node of the call tree each virtual CPU is in.
 *
 * A frame is known by the place in memory that holds its return address: a call stores there, the return loads from
 * there, and in between it does not matter what else ran, so frames survive context switches, interrupts and signals.
 */
#ifndef KPERFLAB_STACKS_H
#define KPERFLAB_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_CPUS 256

/* A run of instructions without a branch into or out of its middle, as QEMU translates them. */
struct block {
	uint64_t pc;
	uint64_t function; /* where its function starts, 0 if that is not known */
	uint16_t count;	   /* instructions */
	uint8_t kind;	   /* enum kind of the function */
	bool user;
	bool leaves; /* its last instruction goes to a program, without storing where */
	bool entry;  /* it begins where its function, or the part of it, does */
	uint16_t offsets[]; /* of each instruction, from pc */
};

void stacks_begin(void);
/* What didn't fit into memory: then the tree is not whole. */
bool stacks_are_full(void);

/* Whether this is the block that a CPU began last. */
bool stacks_is_in(unsigned int cpu, const struct block *block);
void stacks_block(unsigned int cpu, const struct block *block);
void stacks_call(unsigned int cpu, uint64_t address, uint64_t key);
void stacks_return(unsigned int cpu, uint64_t address, uint64_t key);
void stacks_entry_store(unsigned int cpu, uint64_t address);
void stacks_interrupt_return(unsigned int cpu, uint64_t address);
/* Adds to what the node a CPU is in has executed; may be negative. */
void stacks_correct(unsigned int cpu, int64_t instructions);

void stacks_open_window(void);
void stacks_close_window(void);
/* Instructions executed in windows, over all nodes. */
uint64_t stacks_total(void);

#endif
