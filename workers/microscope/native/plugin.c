// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The microscope: QEMU reports each block of instructions that it executes, and we keep the call tree. To replay how
 * CPUs meet in memory, QEMU also reports each access to memory, which we record by virtual CPU.
 *
 * Until a program in the guest says that it has something to measure, we have QEMU report nothing but its marks, so that
 * a boot costs what it costs without us.
 *
 *     -plugin microscope.so,functions=FILE,out=PATH[,accesses=PATH]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "instruction.h"
#include "map.h"
#include "mark.h"
#include "qemu_api.h"
#include "report.h"
#include "stacks.h"
#include "trace.h"
#include "tree.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST_NODES (1u << NODE_BITS)
/* A guest may start to watch for each of its programs; a hostile guest would do so for ever. */
#define MOST_REPORTS 64
/* Pages whose kind a CPU remembers. */
#define PAGES 64
#define PAGE_SHIFT 12

EXPORT int qemu_plugin_version = API_VERSION;

static const char *out, *accesses;
static qemu_plugin_id_t own_id;
static _Atomic bool watching;
static bool translating_all;
static unsigned int reports, windows_seen, windows_open;
/* Held while a mark is obeyed, which changes the variables above, and begins or ends a window. */
static pthread_mutex_t marks = PTHREAD_MUTEX_INITIALIZER;

struct mark_place {
	int number;
	uint16_t rest; /* instructions of its block that come after it */
};

/* The data that memory callbacks receive about their instruction. */
struct place {
	const struct block *block;
	uint16_t index; /* in its block */
	uint8_t flow;	/* enum flow */
	bool atomic;
};

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void translate_marks(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void at_exit(qemu_plugin_id_t id, void *unused);

static void listen(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translating_all ? translate : translate_marks);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
}

static void finish(void)
{
	bool whole = !windows_open && !stacks_are_full();

	if (!watching)
		return;
	watching = false;
	if (!windows_seen || reports == MOST_REPORTS)
		return;
	if (accesses && !trace_finish(stacks_total_of))
		whole = false;
	report_tree(out, reports++, windows_seen, whole);
}

static void at_exit(qemu_plugin_id_t id, void *unused)
{
	(void)id, (void)unused;
	pthread_mutex_lock(&marks);
	finish();
	pthread_mutex_unlock(&marks);
}

static void watch(void)
{
	if (watching || reports == MOST_REPORTS)
		return;
	windows_seen = windows_open = 0;
	tree_begin(MOST_NODES);
	stacks_begin();
	if (accesses)
		trace_begin(accesses, reports);
	watching = true;
	/* Never back again: QEMU 7.2 frees the callbacks on memory while a virtual CPU may be about to call them. */
	if (!translating_all)
		qemu_plugin_reset(own_id, listen);
	translating_all = true;
}

static unsigned int most_cpus(void)
{
	return accesses ? MOST_TRACED : MOST_CPUS;
}

static void begin_window(unsigned int cpu, uint16_t rest)
{
	bool inner = stacks_window_is_open(cpu);

	windows_seen++;
	windows_open++;
	stacks_open_window(cpu, rest);
	if (accesses && !inner)
		trace_open_window(cpu, stacks_total_of(cpu) - rest);
}

static void end_window(unsigned int cpu, uint16_t rest)
{
	if (!stacks_close_window(cpu, rest))
		return;
	windows_open--;
	if (accesses && !stacks_window_is_open(cpu))
		trace_close_window(cpu, stacks_total_of(cpu));
}

static void on_mark(unsigned int cpu, void *data)
{
	const struct mark_place *mark = data;

	pthread_mutex_lock(&marks);
	if (mark->number == MARK_WATCH)
		watch();
	else if (mark->number == MARK_DONE)
		finish();
	else if (watching && cpu < most_cpus() && mark->number == MARK_BEGIN)
		begin_window(cpu, mark->rest);
	else if (watching && cpu < most_cpus() && mark->number == MARK_END)
		end_window(cpu, mark->rest);
	pthread_mutex_unlock(&marks);
}

static void on_block(unsigned int cpu, void *block)
{
	if (watching && cpu < MOST_CPUS)
		stacks_block(cpu, block);
}

/* Programs may use one address for different memory, so their key is the physical address. */
static uint64_t key_of(qemu_plugin_meminfo_t info, uint64_t address)
{
	struct qemu_plugin_hwaddr *behind;

	if (address >> 63)
		return address;
	behind = qemu_plugin_get_hwaddr(info, address);
	return behind ? qemu_plugin_hwaddr_phys_addr(behind) | 1ull << 62 : address;
}

/*
 * QEMU 7.2 also calls back for accesses of later instructions that it carries out in functions of its own, such as
 * iretq and cmpxchg16b, in any block: so an access is that of a call or return only in the block that runs.
 */
static void follow(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, const struct place *place)
{
	bool is_store = qemu_plugin_mem_is_store(info);

	if (!stacks_is_in(cpu, place->block))
		return;
	if (place->flow == CALLS && is_store)
		stacks_call(cpu, address, key_of(info, address));
	else if (place->flow == RETURNS && !is_store)
		stacks_return(cpu, address, key_of(info, address));
	else if (place->flow == RETURNS_FROM_INTERRUPT && !is_store)
		stacks_interrupt_return(cpu, address);
	else if (place->flow == PUSHES && is_store)
		stacks_entry_store(cpu, address);
}

static void on_flow(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *place)
{
	if (watching && cpu < MOST_CPUS)
		follow(cpu, info, address, place);
}

/* Registers of devices are not memory. A page's kind is looked up seldom, since that costs more than the rest. */
static bool is_device(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address)
{
	static uint64_t memory_pages[MOST_TRACED][PAGES];
	uint64_t page = address >> PAGE_SHIFT;
	uint64_t *kept = &memory_pages[cpu][page % PAGES];
	struct qemu_plugin_hwaddr *behind;

	if (*kept == page)
		return false;
	behind = qemu_plugin_get_hwaddr(info, address);
	if (behind && qemu_plugin_hwaddr_is_io(behind))
		return true;
	*kept = page;
	return false;
}

static void record(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, const struct place *place)
{
	struct access access = {
		.time = stacks_time(cpu, place->block, place->index),
		.address = key_of(info, address),
		.node = stacks_node(cpu),
		.kind = place->atomic && stacks_is_in(cpu, place->block) ? ATOMIC : qemu_plugin_mem_is_store(info) ? STORE : LOAD,
		.shift = (uint8_t)qemu_plugin_mem_size_shift(info),
		.on_stack = stacks_is_on_stack(cpu, address),
	};

	if (!(address >> 63) || !is_device(cpu, info, address))
		trace_access(cpu, &access);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	const struct place *place = data;

	if (!watching || cpu >= MOST_TRACED)
		return;
	if (stacks_window_is_open(cpu))
		record(cpu, info, address, place);
	if (place->flow != GOES_ON)
		follow(cpu, info, address, place);
}

static bool listen_to_mark(struct qemu_plugin_insn *instruction, size_t rest)
{
	int number = instruction_mark(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
	struct mark_place *mark;

	if (!number)
		return false;
	mark = malloc(sizeof(*mark));
	if (!mark)
		return false;
	*mark = (struct mark_place){ number, (uint16_t)rest };
	qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, QEMU_PLUGIN_CB_NO_REGS, mark);
	return true;
}

static void translate_marks(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (qemu_plugin_tb_vaddr(tb) >> 63)
		return;
	for (size_t at = 0; at < count; at++)
		listen_to_mark(qemu_plugin_tb_get_insn(tb, at), count - at - 1);
}

static struct block *describe(const struct qemu_plugin_tb *tb, size_t count)
{
	struct block *block = malloc(sizeof(*block) + count * sizeof(block->offsets[0]));
	struct function function;

	if (!block)
		return NULL;
	block->pc = qemu_plugin_tb_vaddr(tb);
	function = function_of(block->pc);
	block->function = function.start;
	block->kind = function.kind;
	block->entry = function.start && function.begin == block->pc;
	block->user = !(block->pc >> 63);
	block->leaves = false;
	block->kept = 0;
	block->count = (uint16_t)count;
	for (size_t at = 0; at < count; at++)
		block->offsets[at] = (uint16_t)(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, at)) - block->pc);
	return block;
}

static uint8_t flow_of(const uint8_t *bytes, size_t size, struct block *block)
{
	enum flow flow = instruction_flow(bytes, size);

	if (flow == RETURNS_FROM_SYSCALL)
		block->leaves = true;
	if (flow == RETURNS_FROM_SYSCALL || (flow == PUSHES && block->kind != INTERRUPT && block->kind != EXCEPTION))
		return GOES_ON;
	return flow;
}

static void listen_to_memory(struct qemu_plugin_insn *instruction, struct block *block, size_t index)
{
	const uint8_t *bytes = qemu_plugin_insn_data(instruction);
	size_t size = qemu_plugin_insn_size(instruction);
	uint8_t flow = flow_of(bytes, size, block);
	struct place *place;

	if (!accesses && flow == GOES_ON)
		return;
	place = malloc(sizeof(*place));
	if (!place)
		return;
	*place = (struct place){ block, (uint16_t)index, flow, instruction_is_atomic(bytes, size) };
	/* Loads and stores, to be told apart by the callback: asked for loads alone, QEMU 7.2 leaves out most of them. */
	qemu_plugin_register_vcpu_mem_cb(instruction, accesses ? on_access : on_flow, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, place);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct block *block = describe(tb, count);

	(void)id;
	if (!block)
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
	for (size_t at = 0; at < count; at++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, at);

		if (!block->user || !listen_to_mark(instruction, count - at - 1))
			listen_to_memory(instruction, block, at);
	}
}

static bool read_arguments(int argc, char **argv)
{
	const char *functions = NULL;

	for (int at = 0; at < argc; at++) {
		if (!strncmp(argv[at], "out=", 4))
			out = strdup(argv[at] + 4);
		else if (!strncmp(argv[at], "functions=", 10))
			functions = argv[at] + 10;
		else if (!strncmp(argv[at], "accesses=", 9))
			accesses = strdup(argv[at] + 9);
		else
			return false;
	}
	return out && functions && functions_read(functions);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fprintf(stderr, "microscope: this QEMU emulates %s, not an x86_64 machine\n", info->target_name);
		return -1;
	}
	if (!read_arguments(argc, argv)) {
		fprintf(stderr, "microscope: needs functions=FILE,out=PATH[,accesses=PATH]\n");
		return -1;
	}
	own_id = id;
	listen(id);
	return 0;
}
