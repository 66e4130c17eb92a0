// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs a workload's iterations: barrier start, timing, one JSON object each. */
#define _GNU_SOURCE
#include "harness.h"
#include "mark.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

unsigned int harness_threads;
static const struct workload *workload;
static pthread_barrier_t ready, go, done;
static const char *counted;
static bool timed, recorded, settled;
static sem_t *turns; /* one a thread, where they take turns */

static void await_turn(unsigned int index)
{
	while (turns && index > 0 && sem_wait(&turns[index]) != 0)
		; /* a signal came */
}

static void pass_turn(unsigned int index)
{
	if (!turns)
		return;
	if (index + 1 < harness_threads)
		sem_post(&turns[index + 1]);
	/*
	 * A thread that ends gives its stack's pages back. The next one would
	 * get them, and replayed at once both would share them.
	 */
	pthread_barrier_wait(&done);
}

static void take_turns(void)
{
	if (harness_threads > allowed_cpus())
		fail("threads=%u: each needs a CPU of its own, and there are %u", harness_threads, allowed_cpus());
	turns = allocate(harness_threads, sizeof(*turns));
	for (unsigned int i = 0; i < harness_threads; i++)
		sem_init(&turns[i], 0, 0);
}

static void *run_thread(void *number)
{
	unsigned int index = (unsigned int)(unsigned long)number;

	/*
	 * The mails' programs are processes. Threads that shared one descriptor
	 * table and one working directory would contend there instead of in
	 * the code under study.
	 */
	if (unshare(CLONE_FILES | CLONE_FS) != 0)
		fail_errno("unshare");
	pin(index);
	if (timed && *counted != '\0')
		prctl(PR_SET_NAME, counted);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	await_turn(index);
	if (timed)
		MICROSCOPE_MARK(MARK_BEGIN);
	workload->thread(index);
	if (timed)
		MICROSCOPE_MARK(MARK_END);
	pass_turn(index);
	return NULL;
}

void operations(double number)
{
	if (turns)
		extra("operations", "%.0f", number);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct interval run_once(pthread_t *threads)
{
	struct rusage before, after;
	struct interval took;

	if (timed)
		counts_take("before");
	/* Before the threads exist: perf learns their names only while it is on. */
	if (recorded)
		control("enable");
	took.from = now();
	for (unsigned long i = 0; i < harness_threads; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *)i) != 0)
			fail("cannot create thread %lu", i);
	pthread_barrier_wait(&ready);
	if (settled)
		settle();
	getrusage(RUSAGE_SELF, &before);
	took.elapsed = now();
	pthread_barrier_wait(&go);
	for (unsigned int i = 0; i < harness_threads; i++)
		if (pthread_join(threads[i], NULL) != 0)
			fail("cannot join thread %u", i);
	took.elapsed = now() - took.elapsed;
	getrusage(RUSAGE_SELF, &after);
	took.to = now();
	if (recorded)
		control("disable");
	if (timed)
		counts_take("after");
	took.user = seconds(after.ru_utime) - seconds(before.ru_utime);
	took.system = seconds(after.ru_stime) - seconds(before.ru_stime);
	return took;
}

static void choose_clock(const char *clock)
{
	settled = strcmp(clock, "instructions") == 0;
	if (strcmp(clock, "contention") == 0)
		take_turns();
	else if (!settled && strcmp(clock, "wall") != 0)
		fail("clock=%s: wall, instructions or contention", clock);
	if (settled || turns)
		output_hold();
}

/* Recorded or not, of each pair one: off on on off off on ..., so that what only drifts favours neither. */
static bool is_recorded(unsigned long nth, bool reference)
{
	return !reference || nth % 4 == 1 || nth % 4 == 2;
}

static void print(unsigned long iteration, const struct interval *took)
{
	begin_object(iteration, !timed);
	value("elapsed", took->elapsed);
	value("user", took->user);
	value("system", took->system);
	value("cpu", 100 * (took->user + took->system) / took->elapsed);
	if (controlled() && timed)
		extra("recorded", "%s", recorded ? "true" : "false");
	if (controlled() && recorded)
		extra("window", "[%.9f,%.9f]", took->from, took->to);
	workload->report(took);
	end_object();
}

int harness_main(int argc, char **argv, const struct workload *which)
{
	workload = which;
	arguments(argc, argv);
	unsigned long iterations = number("iterations", 1), warmup = number("warmup", 0);
	harness_threads = (unsigned int)number("threads", 1);
	counted = text("counted", "");
	control_open(text("control", ""));
	counts_open(text("counts", ""));
	bool reference = number("reference", 0);
	if (harness_threads == 0)
		fail("threads=0: at least one is needed");
	choose_clock(text("clock", "wall"));
	if (reference && !controlled())
		fail("reference=1: without control= nothing is recorded");
	if (reference)
		iterations *= 2;
	pthread_t *threads = allocate(harness_threads, sizeof(*threads));

	if (workload->setup)
		workload->setup();
	refuse_unknown_arguments();
	MICROSCOPE_MARK(MARK_WATCH);
	pthread_barrier_init(&ready, NULL, harness_threads + 1);
	pthread_barrier_init(&go, NULL, harness_threads + 1);
	pthread_barrier_init(&done, NULL, harness_threads);
	for (unsigned long i = 0; i < warmup + iterations; i++) {
		if (workload->prepare)
			workload->prepare();
		timed = i >= warmup;
		recorded = timed && is_recorded(i - warmup, reference);
		struct interval took = run_once(threads);

		print(i, &took);
	}
	MICROSCOPE_MARK(MARK_DONE);
	output_end();
	return 0;
}
