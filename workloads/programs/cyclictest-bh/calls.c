// SPDX-License-Identifier: GPL-2.0-or-later
/* The CAL line of /proc/interrupts: function call interrupts by CPU; the load's proof that it bites. */
#define _GNU_SOURCE
#include "harness.h"
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long before[CPU_SETSIZE], after[CPU_SETSIZE];

static unsigned int read_calls(unsigned long *calls)
{
	FILE *file = fopen("/proc/interrupts", "r");
	static char line[32 * 1024];
	unsigned int cpus = 0;

	if (!file)
		fail_errno("cannot read /proc/interrupts");
	while (fgets(line, sizeof(line), file)) {
		char *column = strstr(line, "CAL:");

		if (!column)
			continue;
		for (column += strlen("CAL:"); cpus < CPU_SETSIZE; cpus++) {
			char *end;

			calls[cpus] = strtoul(column, &end, 10);
			if (end == column)
				break;
			column = end;
		}
	}
	fclose(file);
	return cpus;
}

void calls_before(void)
{
	(void)read_calls(before);
}

void extra_calls(void)
{
	static char list[CPU_SETSIZE * 12];
	unsigned int cpus = read_calls(after);
	int used = 0;

	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		used += snprintf(list + used, sizeof(list) - (size_t)used, "%s%lu", cpu ? "," : "", after[cpu] - before[cpu]);
	extra("function_call_interrupts", "[%s]", list);
}
