// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "map.h"
#include "memory.h"

#define BUFFER (1u << 18)
#define LONGEST_RECORDS 64 /* bytes of a node's and an access's record together, with room to spare */
#define LINE_SHIFT 6
#define LINES 1024
#define LOCKS (1u << 18)
/*
 * An access is left out if this CPU touched the same word of memory, in the same way, fewer than this many instructions
 * ago. No other CPU can have taken the line by then: moving it takes longer. Stacks are private to their tasks.
 */
#define NEAR 64
#define NEAR_ON_STACK 1024

/* What a CPU has recorded of a cache line lately. Words have 8 bytes: a bit each. */
struct line {
	uint64_t number;
	uint64_t touched, stored; /* when it was last recorded */
	uint32_t window;
	uint8_t loaded_words, stored_words;
};

struct header {
	char magic[4];
	uint32_t version;
	uint32_t cpu;
	uint32_t whole;
	uint64_t instructions;
	uint64_t records;
	uint32_t lack;
	uint32_t bytes; /* of the file; a longer or shorter one is not ours */
};

struct recorder {
	int file; /* -1: none */
	enum lack lack;
	bool open;
	unsigned int report;
	uint32_t window; /* a number, never 0 */
	uint32_t used;
	uint32_t bytes; /* written */
	uint64_t records;
	uint64_t time;
	uint64_t addresses[4]; /* the last of each region */
	uint32_t node;
	struct access last_atomic;
	struct line lines[LINES];
	uint8_t buffer[BUFFER];
};

static struct recorder *recorders[MOST_TRACED];
static const char *path;
static unsigned int report;
static _Atomic uint64_t stored;
/* Words that were accessed atomically, by any CPU: a plain store there may release a lock. */
static struct map locks;

void trace_begin(const char *where, unsigned int number)
{
	path = where;
	report = number;
	map_begin(&locks, LOCKS, 1);
}

uint64_t trace_bytes(void)
{
	return stored;
}

static void flush(struct recorder *recorder)
{
	uint32_t written = 0;

	if (!recorder->lack && atomic_fetch_add(&stored, recorder->used) + recorder->used > MOST_BYTES)
		recorder->lack = NO_ROOM;
	while (!recorder->lack && written < recorder->used) {
		ssize_t now = write(recorder->file, recorder->buffer + written, recorder->used - written);

		if (now > 0)
			written += (uint32_t)now;
		else if (now == 0 || errno != EINTR)
			recorder->lack = NOT_WRITTEN;
	}
	recorder->bytes += written;
	recorder->used = 0;
}

static void put_varint(struct recorder *recorder, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		recorder->buffer[recorder->used++] = (uint8_t)(value | 0x80);
	recorder->buffer[recorder->used++] = (uint8_t)value;
}

/* After a page fault the clock was ahead of what was executed; it stands still until the CPU has caught up. */
static void put_head(struct recorder *recorder, uint8_t operation, uint64_t time)
{
	int64_t passed = (int64_t)(time - recorder->time);

	if (recorder->used > BUFFER - LONGEST_RECORDS)
		flush(recorder);
	recorder->buffer[recorder->used++] = operation;
	put_varint(recorder, passed > 0 ? (uint64_t)passed : 0);
	if (passed > 0)
		recorder->time = time;
	recorder->records++;
}

static uint8_t region_of(uint64_t address)
{
	if (!(address >> 63))
		return 3; /* a program's */
	if (address >= 0xffffffff80000000ull)
		return 2; /* the kernel's image and modules */
	return address >= 0xffffc90000000000ull && address < 0xffffe90000000000ull; /* stacks; all else */
}

static uint64_t zigzag(int64_t number)
{
	return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static void put_access(struct recorder *recorder, const struct access *access)
{
	uint8_t region = region_of(access->address);

	if (access->node != recorder->node) {
		put_head(recorder, NODE, recorder->time);
		put_varint(recorder, access->node);
		recorder->node = access->node;
	}
	put_head(recorder, (uint8_t)(access->kind | (access->shift & 7) << 3 | region << 6), access->time);
	put_varint(recorder, zigzag((int64_t)(access->address - recorder->addresses[region])));
	recorder->addresses[region] = access->address;
}

static bool may_release_a_lock(uint64_t address)
{
	return locks.full || map_find(&locks, address >> 3);
}

static struct line *line_of(struct recorder *recorder, uint64_t number)
{
	struct line *line = &recorder->lines[(number ^ number >> 10 ^ number >> 20) % LINES];

	if (line->number != number || line->window != recorder->window)
		*line = (struct line){ .number = number, .window = recorder->window };
	return line;
}

/* Whether replaying an access can make no difference; otherwise notes for its line that it is recorded. */
static bool is_private_hit(struct recorder *recorder, const struct access *access)
{
	uint64_t first = access->address, last = first + (1ull << access->shift) - 1;
	uint64_t near = access->on_stack ? NEAR_ON_STACK : NEAR;
	struct line *line = line_of(recorder, first >> LINE_SHIFT);
	uint8_t words = (uint8_t)((2u << (last >> 3 & 7)) - (1u << (first >> 3 & 7)));

	if (first >> LINE_SHIFT != last >> LINE_SHIFT)
		return false;
	if (access->kind == LOAD) {
		if (!(words & ~(line->loaded_words | line->stored_words)) && access->time - line->touched < near)
			return true;
		line->loaded_words |= words;
	} else {
		if (access->kind == STORE && !(words & ~line->stored_words) && access->time - line->stored < near &&
		    !may_release_a_lock(first))
			return true;
		line->stored_words |= words;
		line->stored = access->time;
	}
	line->touched = access->time;
	return false;
}

/* QEMU reports an atomic's load and store one after the other. */
static bool is_told_again(struct recorder *recorder, const struct access *access)
{
	const struct access *last = &recorder->last_atomic;

	if (last->kind == ATOMIC && last->time == access->time && last->address == access->address)
		return true;
	recorder->last_atomic = *access;
	return false;
}

void trace_access(unsigned int cpu, const struct access *access)
{
	struct recorder *recorder = recorders[cpu];

	if (recorder->lack)
		return;
	if (access->kind == ATOMIC) {
		if (is_told_again(recorder, access))
			return;
		map_make(&locks, access->address >> 3);
	}
	if (!is_private_hit(recorder, access))
		put_access(recorder, access);
}

static void name_file(char *name, size_t room, unsigned int number, unsigned int cpu, const char *suffix)
{
	snprintf(name, room, "%s.%u.%u%s", path, number, cpu, suffix);
}

static bool write_header(struct recorder *recorder, unsigned int cpu, uint64_t instructions)
{
	struct header header = { "KPMA", 1, cpu, !recorder->lack, instructions, recorder->records, recorder->lack, recorder->bytes };

	return pwrite(recorder->file, &header, sizeof(header), 0) == sizeof(header);
}

static void open_file(struct recorder *recorder, unsigned int cpu)
{
	static const struct header empty;
	char name[4096];

	if (recorder->file >= 0)
		close(recorder->file);
	name_file(name, sizeof(name), report, cpu, ".part");
	recorder->file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	recorder->lack = LACKS_NOTHING;
	recorder->report = report;
	recorder->records = recorder->time = 0;
	recorder->node = recorder->bytes = 0;
	recorder->used = sizeof(empty);
	memset(recorder->addresses, 0, sizeof(recorder->addresses));
	memset(recorder->buffer, 0, sizeof(empty));
	if (recorder->file < 0)
		recorder->lack = NOT_WRITTEN;
}

static struct recorder *recorder_of(unsigned int cpu)
{
	if (!recorders[cpu]) {
		recorders[cpu] = zeroed_memory(sizeof(*recorders[cpu]));
		recorders[cpu]->file = -1;
	}
	return recorders[cpu];
}

void trace_open_window(unsigned int cpu, uint64_t time)
{
	struct recorder *recorder = recorder_of(cpu);

	if (recorder->file < 0 || recorder->report != report)
		open_file(recorder, cpu);
	recorder->open = true;
	recorder->window++;
	recorder->last_atomic = (struct access){ 0 };
	put_head(recorder, BEGIN, time);
}

void trace_close_window(unsigned int cpu, uint64_t time)
{
	struct recorder *recorder = recorders[cpu];

	recorder->open = false;
	put_head(recorder, END, time);
	flush(recorder);
}

/* A file whose window is open stays open: its CPU may be about to write to it. */
static bool complete(struct recorder *recorder, unsigned int cpu, uint64_t instructions)
{
	char part[4096], full[4096];

	name_file(part, sizeof(part), report, cpu, ".part");
	name_file(full, sizeof(full), report, cpu, "");
	if (recorder->open)
		recorder->lack = NEVER_CLOSED;
	if (recorder->file < 0 || !write_header(recorder, cpu, instructions) || rename(part, full)) {
		fprintf(stderr, "microscope: cannot write %s\n", full);
		unlink(part);
		return false;
	}
	if (!recorder->open) {
		close(recorder->file);
		recorder->file = -1;
	}
	return !recorder->lack;
}

bool trace_finish(uint64_t (*instructions)(unsigned int cpu))
{
	bool whole = true;

	for (unsigned int cpu = 0; cpu < MOST_TRACED; cpu++)
		if (recorders[cpu] && recorders[cpu]->report == report && (recorders[cpu]->file >= 0 || recorders[cpu]->lack))
			whole &= complete(recorders[cpu], cpu, instructions(cpu));
	return whole;
}
