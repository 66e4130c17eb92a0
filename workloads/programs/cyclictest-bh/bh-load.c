// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a command beside a load that fills the per-CPU buffer head LRUs and has
 * them invalidated: bh-load [name=value]... -- COMMAND [ARGUMENT]...
 *
 *   load=on|off      off: only the command runs
 *   directory=PATH   on ext4: what the filling threads list
 *   device=PATH      a loop device: what the flushing thread flushes
 *   fill_us=N flush_us=N  pauses between two listings and between two flushes
 *   iteration=N warmup=0|1  copied into the output
 *
 * bh-load list directory=PATH listings=N [name=value]... is a program of the
 * harness: its threads do what the filling threads do, without pauses.
 *
 * The command runs on the measured CPUs: all but the first, or the only one. The
 * first is the housekeeping CPU, as where the mail's latencies were seen.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "load.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t measured_cpus(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		fail_errno("sched_getaffinity");
	for (int cpu = 0; CPU_COUNT(&cpus) > 1; cpu++)
		if (CPU_ISSET(cpu, &cpus)) {
			CPU_CLR(cpu, &cpus);
			break;
		}
	return cpus;
}

static void run(char **command, const cpu_set_t *cpus)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail_errno("fork");
	if (child == 0) {
		/* stdout is for our JSON; what the command says goes to stderr. */
		if (sched_setaffinity(0, sizeof(*cpus), cpus) != 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
			fail_errno("cannot prepare %s", command[0]);
		execvp(command[0], command);
		fail_errno("cannot run %s", command[0]);
	}
	if (waitpid(child, &status, 0) != child)
		fail_errno("waitpid");
	if (WIFSIGNALED(status))
		fail("%s ended by signal %d", command[0], WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		fail("%s ended with status %d", command[0], WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	int own = 1;

	if (argc > 1 && strcmp(argv[1], "list") == 0)
		return list_many(argc - 1, argv + 1);
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (own + 1 >= argc)
		fail("no command after --");
	arguments(own, argv);
	struct load load = {
		.directory = text("directory", NULL),
		.device = text("device", NULL),
		.fill_us = (unsigned int)number("fill_us", 100),
		.flush_us = (unsigned int)number("flush_us", 1000),
	};
	bool on = strcmp(text("load", "on"), "on") == 0;
	unsigned long iteration = number("iteration", 0);
	bool warmup = number("warmup", 0);

	refuse_unknown_arguments();
	cpu_set_t cpus = measured_cpus();

	if (on)
		load_start(&load, &cpus);
	calls_before();
	double start = now();

	run(argv + own + 1, &cpus);
	begin_object(iteration, warmup);
	extra("seconds", "%.3f", now() - start);
	extra_calls();
	if (on)
		load_stop();
	end_object();
	return 0;
}
