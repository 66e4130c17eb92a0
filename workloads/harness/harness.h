/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every workload program shares: arguments, threads, timing, output.
 *
 * A program fills in a struct workload and calls harness_main(). For each
 * iteration the harness calls prepare() untimed, releases all threads at once
 * into thread(), times until the last has ended, and lets report() add values
 * to the one JSON object that it prints on stdout.
 *
 * Arguments are name=value. The harness's own:
 *   iterations=N  timed iterations           (1)
 *   warmup=N      iterations before them, marked "warmup":true  (0)
 *   threads=N     threads, pinned round-robin to the allowed CPUs  (1)
 *   control=CTL,ACK  fifos of perf's --control: it records during timed
 *                 iterations only, and each object says so
 *   reference=1   each timed iteration is run once recorded and once not, which
 *                 tells what recording costs; needs control=
 *   counts=FILE   there each timed iteration leaves /proc/vmstat and
 *                 /proc/slabinfo as they were before and after it
 *   clock=wall|instructions|contention  what the guest's clock counts (wall).
 *                 Instructions are counted best with nothing else going on: output
 *                 waits for the end, and each iteration starts at the same point of
 *                 a second. For contention threads take turns, each on a CPU of its
 *                 own: where they would have met is found out from what each did
 *   counted=NAME  what the threads of timed iterations are called, so that a
 *                 filter in the kernel counts their calls and nobody else's
 */
#ifndef KPERFLAB_HARNESS_H
#define KPERFLAB_HARNESS_H

#include <stdbool.h>

struct interval {
	double elapsed, user, system;	/* seconds; user and system of all threads */
	double from, to;		/* between these times of CLOCK_MONOTONIC it was recorded */
};

struct workload {
	void (*setup)(void);			/* once; may be NULL */
	void (*prepare)(void);			/* before each iteration; may be NULL */
	void (*thread)(unsigned int index);
	void (*report)(const struct interval *took);
};

int harness_main(int argc, char **argv, const struct workload *workload);
extern unsigned int harness_threads;

/* Arguments; each ends the program with a clear line if the value is missing or unfit. */
void arguments(int argc, char **argv);
const char *text(const char *name, const char *otherwise);
unsigned long number(const char *name, unsigned long otherwise);
void refuse_unknown_arguments(void);

/* Inside report(): one metric into "values", one JSON fragment beside it. */
void value(const char *name, double number);
void extra(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How many operations all threads did; said where the replay of recorded accesses needs it. */
void operations(double number);
/* The object itself, for programs that keep their own time. */
void begin_object(unsigned long iteration, bool warmup);
void end_object(void);

/* From now on objects are kept until output_end(), which everything printed must pass. */
void output_hold(void);
void output_end(void);

/* Ends the program with one line on stderr; fail_errno() adds what errno says. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void pin(unsigned int index);
unsigned int allowed_cpus(void);
double now(void);
void settle(void);
void *allocate(unsigned long count, unsigned long size);

/* perf's --control: nothing happens unless control_open() had fifos to open. */
void control_open(const char *fifos);
bool controlled(void);
void control(const char *command);

/* The kernel's own counts, appended to a file: nothing happens unless counts_open() had one to open. */
void counts_open(const char *file);
void counts_take(const char *when);

#endif
