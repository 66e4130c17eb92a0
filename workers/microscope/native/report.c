// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "stacks.h"
#include "tree.h"

/* All numbers little-endian, as on the only host this is compiled for. workers/microscope/calltree.py reads it. */
struct header {
	char magic[4];
	uint32_t version;
	uint32_t windows;
	uint32_t whole; /* 0: something did not fit into memory, or a window was still open */
	uint64_t instructions;
	uint64_t nodes;
};

struct row {
	uint64_t function;
	uint64_t parent;
	uint64_t instructions;
	uint64_t calls;
};

static bool write_rows(FILE *file, uint32_t size)
{
	for (uint32_t node = 0; node < size; node++) {
		struct counts counts = tree_sum(node);
		struct row row = { nodes[node].function, nodes[node].parent, counts.instructions, counts.calls };

		if (fwrite(&row, sizeof(row), 1, file) != 1)
			return false;
	}
	return true;
}

bool report_tree(const char *path, unsigned int number, unsigned int windows_seen, bool whole)
{
	/* Virtual CPUs outside windows go on to grow the tree meanwhile. */
	uint32_t size = tree_size();
	struct header header = { "KPMT", 1, windows_seen, whole, stacks_total(), size };
	char part[4096], full[4096];
	bool written;
	FILE *file;

	snprintf(full, sizeof(full), "%s.%u", path, number);
	snprintf(part, sizeof(part), "%s.%u.part", path, number);
	file = fopen(part, "w");
	written = file && fwrite(&header, sizeof(header), 1, file) == 1 && write_rows(file, size);
	if (file && fclose(file))
		written = false;
	if (written && !rename(part, full))
		return true;
	fprintf(stderr, "microscope: cannot write %s\n", full);
	unlink(part);
	return false;
}
