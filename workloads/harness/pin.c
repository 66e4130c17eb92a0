// SPDX-License-Identifier: GPL-2.0-or-later
/* The clock, and threads on CPUs. */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <sched.h>
#include <time.h>

static cpu_set_t allowed;

/* Before main(): later a pinned thread would see only its own CPU. */
__attribute__((constructor)) static void remember_allowed_cpus(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		fail_errno("sched_getaffinity");
}

unsigned int allowed_cpus(void)
{
	return (unsigned int)CPU_COUNT(&allowed);
}

void pin(unsigned int index)
{
	int skip = (int)(index % allowed_cpus()), cpu = 0;
	cpu_set_t one;

	while (!CPU_ISSET(cpu, &allowed) || skip-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		fail_errno("cannot pin to CPU %d", cpu);
}

/*
 * Sleeps until the next full second but one, then waits for the tick. What the iteration before left to be done
 * later is done then, and whatever the kernel does every so often falls into the same place of each iteration, in
 * every kernel. An idle guest's instruction clock leaps ahead, so this costs nothing.
 */
void settle(void)
{
	struct timespec start, tick;

	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec += 2;
	start.tv_nsec = 0;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
		;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &start);
	do
		clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
	while (tick.tv_nsec == start.tv_nsec);
}

double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		fail_errno("clock_gettime");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
