// SPDX-License-Identifier: GPL-2.0-or-later
#include "functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct function *entries;
static size_t count;

static bool append(uint64_t begin, char kind, uint64_t start)
{
	static size_t room;

	if (count && entries[count - 1].begin >= begin)
		return false;
	if (count == room) {
		room = room ? 2 * room : 1 << 14;
		entries = realloc(entries, room * sizeof(*entries));
		if (!entries)
			return false;
	}
	entries[count++] = (struct function){ begin, kind == OUTSIDE ? 0 : start, (uint8_t)kind };
	return true;
}

bool functions_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[128], kind;
	uint64_t begin, start;
	int fields;

	if (!file) {
		fprintf(stderr, "microscope: cannot read %s\n", path);
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		fields = sscanf(line, "%" SCNx64 " %c %" SCNx64, &begin, &kind, &start);
		if (fields == 2)
			start = begin;
		if (fields < 2 || !strchr("fixstcro", kind) || !append(begin, kind, start)) {
			fprintf(stderr, "microscope: %s: no function: %s\n", path, line);
			fclose(file);
			return false;
		}
	}
	fclose(file);
	return true;
}

struct function function_of(uint64_t pc)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (entries[middle].begin <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? entries[low - 1] : (struct function){ 0, 0, PLAIN };
}
