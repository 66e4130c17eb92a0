/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BH_LOAD_H
#define BH_LOAD_H

#include <sched.h>

struct load {
	const char *directory, *device;
	unsigned int fill_us, flush_us;
};

/* A filling thread on each of the CPUs, and one flushing thread on the first CPU that is not among them. */
void load_start(const struct load *load, const cpu_set_t *cpus);
/* Ends the threads; adds listings and flushes to the JSON object. */
void load_stop(void);

/* Threads of the harness that list the directory. */
int list_many(int argc, char **argv);

/* Function call interrupts by CPU, between the two calls; the second adds them to the JSON object. */
void calls_before(void);
void extra_calls(void);

#endif
