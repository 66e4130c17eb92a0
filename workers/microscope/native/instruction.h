/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an x86-64 instruction does to the flow of control, told from its bytes. */
#ifndef KPERFLAB_INSTRUCTION_H
#define KPERFLAB_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow { GOES_ON, CALLS, RETURNS, RETURNS_FROM_INTERRUPT, RETURNS_FROM_SYSCALL, PUSHES };

enum flow instruction_flow(const uint8_t *bytes, size_t size);
/* Whether it reads and writes memory with no other CPU in between: a lock prefix, or xchg, which needs none. */
bool instruction_is_atomic(const uint8_t *bytes, size_t size);
/* The number of a mark (see mark.h), 0 if the instruction is none. */
int instruction_mark(const uint8_t *bytes, size_t size);

#endif
