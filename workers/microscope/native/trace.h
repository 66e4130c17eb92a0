/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each virtual CPU's accesses to memory in its window, in a file of its own: see docs/design/contention.md for the format.
 * A CPU's functions are called by its own thread; trace_begin() and trace_finish() while no other call begins or ends a
 * window.
 */
#ifndef KPERFLAB_TRACE_H
#define KPERFLAB_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_TRACED 64
/* Of all files of a boot. */
#ifndef MOST_BYTES
#define MOST_BYTES (256u << 20)
#endif

enum record { LOAD, STORE, ATOMIC, NODE, BEGIN, END };
/* Why a file is not whole; kept in its header. */
enum lack { LACKS_NOTHING, NO_ROOM, NOT_WRITTEN, NEVER_CLOSED };

struct access {
	uint64_t time; /* instructions that the CPU had executed in its windows before */
	uint64_t address;
	uint32_t node;
	uint8_t kind; /* LOAD, STORE or ATOMIC */
	uint8_t shift; /* log2 of its size in bytes */
	bool on_stack; /* of the task that the CPU runs, which no other CPU touches for now */
};

/* From here on windows belong to the report of this number; files are PATH.NUMBER.CPU. */
void trace_begin(const char *path, unsigned int number);
void trace_open_window(unsigned int cpu, uint64_t time);
void trace_access(unsigned int cpu, const struct access *access);
void trace_close_window(unsigned int cpu, uint64_t time);
/* Completes the files; returns false if one is not whole. instructions: of each CPU in its windows. */
bool trace_finish(uint64_t (*instructions)(unsigned int cpu));
uint64_t trace_bytes(void);

#endif
