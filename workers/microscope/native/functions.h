/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which function an address belongs to, and what is special about it; read from a file the lab writes. */
#ifndef KPERFLAB_FUNCTIONS_H
#define KPERFLAB_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum kind {
	PLAIN = 'f',
	INTERRUPT = 'i', /* entered by the hardware, at any moment: a root of its own */
	EXCEPTION = 'x', /* entered by the hardware because of the instruction it interrupts, such as a page fault */
	SYSCALL = 's',
	THREAD = 't', /* where a new thread begins */
	SWITCH = 'c', /* where one task gives the CPU to another */
	MOVES_RETURN = 'r', /* returns to its caller from another place than it was called with, as error_entry does */
	OUTSIDE = 'o', /* not a function: what follows belongs to nobody */
};

struct function {
	uint64_t begin; /* of the entry that the address falls into: the function's first address, or that of a part of it */
	uint64_t start; /* the function's first address, 0: the address is in no known function */
	uint8_t kind;
};

/* Reads lines of "ADDRESS KIND [BELONGS-TO]", hexadecimal, by rising address. Returns false, with a message, if it cannot. */
bool functions_read(const char *path);
struct function function_of(uint64_t pc);

#endif
