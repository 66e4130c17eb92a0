// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The exact profile: QEMU tells of each block of instructions it executes, and we keep the call tree.
 *
 * Until a program in the guest says that it has something to measure, QEMU translates nothing but its marks, so that a
 * boot costs what it costs without us.
 *
 *     -plugin microscope.so,functions=FILE,out=PATH
 */
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
#include "tree.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST_NODES (1u << 20)
/* A guest may watch again for each of its programs, and a hostile one for ever. */
#define MOST_REPORTS 64

EXPORT int qemu_plugin_version = API_VERSION;

static const char *out;
static qemu_plugin_id_t own_id;
static bool watching, translating_all;
static unsigned int reports, windows_seen, windows_open;

struct mark_place {
	int number;
	uint16_t rest; /* instructions of its block that come after it */
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
	watching = false;
	if (windows_seen && reports < MOST_REPORTS)
		report_tree(out, reports++, windows_seen, !windows_open && !stacks_are_full());
}

static void at_exit(qemu_plugin_id_t id, void *unused)
{
	(void)id, (void)unused;
	if (watching)
		finish();
}

static void watch(void)
{
	if (watching || reports == MOST_REPORTS)
		return;
	watching = true;
	windows_seen = windows_open = 0;
	tree_begin(MOST_NODES);
	stacks_begin();
	/* Never back again: QEMU 7.2 frees the callbacks on memory while a virtual CPU may be about to call them. */
	if (!translating_all)
		qemu_plugin_reset(own_id, listen);
	translating_all = true;
}

static void on_mark(unsigned int cpu, void *data)
{
	const struct mark_place *mark = data;

	if (mark->number == MARK_WATCH) {
		watch();
	} else if (mark->number == MARK_DONE) {
		at_exit(own_id, NULL);
	} else if (!watching) {
		return;
	} else if (mark->number == MARK_BEGIN) {
		/* Its block was passed over, being outside. */
		if (!windows_open)
			stacks_correct(cpu, mark->rest);
		windows_seen++;
		windows_open++;
		stacks_open_window();
	} else if (mark->number == MARK_END && windows_open) {
		windows_open--;
		stacks_close_window();
		if (!windows_open)
			stacks_correct(cpu, -(int64_t)mark->rest);
	}
}

static void on_block(unsigned int cpu, void *block)
{
	if (watching && cpu < MOST_CPUS)
		stacks_block(cpu, block);
}

/* Programs may use one address for different memory, so theirs count by the memory behind it. */
static uint64_t key_of(qemu_plugin_meminfo_t info, uint64_t address)
{
	struct qemu_plugin_hwaddr *behind;

	if (address >> 63)
		return address;
	behind = qemu_plugin_get_hwaddr(info, address);
	return behind ? qemu_plugin_hwaddr_phys_addr(behind) | 1ull << 62 : address;
}

/*
 * QEMU 7.2 goes on to call back for accesses of later instructions that it carries out in functions of its own, such as
 * iretq and cmpxchg16b, wherever these are.
 */
static bool is_executing(unsigned int cpu, const struct block *block)
{
	return watching && cpu < MOST_CPUS && stacks_is_in(cpu, block);
}

static void on_call(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *block)
{
	if (is_executing(cpu, block) && qemu_plugin_mem_is_store(info))
		stacks_call(cpu, address, key_of(info, address));
}

static void on_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *block)
{
	if (is_executing(cpu, block) && !qemu_plugin_mem_is_store(info))
		stacks_return(cpu, address, key_of(info, address));
}

static void on_entry_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *block)
{
	if (is_executing(cpu, block) && qemu_plugin_mem_is_store(info))
		stacks_entry_store(cpu, address);
}

static void on_interrupt_return(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *block)
{
	if (is_executing(cpu, block) && !qemu_plugin_mem_is_store(info))
		stacks_interrupt_return(cpu, address);
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
	block->count = (uint16_t)count;
	for (size_t at = 0; at < count; at++)
		block->offsets[at] = (uint16_t)(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, at)) - block->pc);
	return block;
}

static void listen_to_flow(struct qemu_plugin_insn *instruction, struct block *block)
{
	qemu_plugin_vcpu_mem_cb_t callback = NULL;

	switch (instruction_flow(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction))) {
	case CALLS:
		callback = on_call;
		break;
	case RETURNS:
		callback = on_return;
		break;
	case RETURNS_FROM_INTERRUPT:
		callback = on_interrupt_return;
		break;
	case PUSHES:
		if (block->kind != INTERRUPT && block->kind != EXCEPTION)
			return;
		callback = on_entry_store;
		break;
	case RETURNS_FROM_SYSCALL:
		block->leaves = true;
		return;
	case GOES_ON:
		return;
	}
	/* Loads and stores, to be told apart by the callback: asked for loads alone, QEMU 7.2 leaves out most of them. */
	qemu_plugin_register_vcpu_mem_cb(instruction, callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
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
			listen_to_flow(instruction, block);
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
		fprintf(stderr, "microscope: needs functions=FILE,out=PATH\n");
		return -1;
	}
	own_id = id;
	listen(id);
	return 0;
}
