// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One step of the plan. While it runs we sleep in ppoll() until output comes, it ends, its
 * deadline passes or a heartbeat is due; so a missing heartbeat means that process 1 itself
 * is stuck, which is what the host wants to know.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

static sigset_t before_block;

static void on_child(int signal)
{
	(void)signal;	/* only there to wake ppoll() */
}

/* From here on the end of a child wakes ppoll(), and nothing else. */
void steps_prepare(void)
{
	struct sigaction action = { .sa_handler = on_child };
	sigset_t child;

	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before_block);
}

static void __attribute__((noreturn)) become(const struct step *step, int out, int err)
{
	setpgid(0, 0);
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	dup2(out, 1);
	dup2(err, 2);
	sigprocmask(SIG_SETMASK, &before_block, NULL);
	execvp(step->argv[0], step->argv);
	dprintf(2, "kperflab-agent: cannot run %s: %s\n", step->argv[0], strerror(errno));
	_exit(127);
}

/* Pass on what a pipe holds, within bounds lest a flood hide the deadline; 0 once it is closed. */
static int forward(const char *kind, const char *name, int fd)
{
	static char chunk[CHUNK];
	ssize_t n = 1;

	for (int i = 0; i < 8 && (n = read(fd, chunk, sizeof(chunk))) > 0; i++)
		send_record(kind, name, chunk, n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Collect whatever has ended; process 1 inherits every orphan. True once it is `child`. */
static int reaped(pid_t child, int *status, struct rusage *usage)
{
	struct rusage one;
	int found = 0, one_status;
	pid_t pid;

	while ((pid = wait4(-1, &one_status, WNOHANG, &one)) > 0)
		if (pid == child) {
			*status = one_status;
			*usage = one;
			found = 1;
		}
	return found;
}

struct ending {
	int status, timed_out;
	struct rusage usage;
};

/* Forward output and beat until the child has ended; kill its process group at the deadline. */
static void watch(const struct step *step, pid_t child, int out, int err, struct ending *ending)
{
	struct pollfd pipes[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	const char *kinds[2] = { "out", "err" };
	double end = now() + step->deadline_s;

	while (!reaped(child, &ending->status, &ending->usage)) {
		double until = next_beat();

		if (!ending->timed_out && end < until)
			until = end;
		double left = until > now() ? until - now() : 0;
		struct timespec wait = { (time_t)left, (long)((left - (time_t)left) * 1e9) };

		ppoll(pipes, 2, &wait, &before_block);
		for (int i = 0; i < 2; i++)
			if (pipes[i].fd >= 0 && !forward(kinds[i], step->name, pipes[i].fd))
				pipes[i].fd = -1;
		beat_if_due();
		if (!ending->timed_out && now() >= end) {
			ending->timed_out = 1;
			/* who waits for what, on the console, before the evidence is killed */
			write_text("/proc/sysrq-trigger", "w");
			kill(-child, SIGKILL);
		}
	}
	kill(-child, SIGKILL);	/* what a step leaves behind must not disturb the next one */
	forward("out", step->name, out);
	forward("err", step->name, err);
}

static double seconds(struct timeval t)
{
	return t.tv_sec + t.tv_usec / 1e6;
}

static void send_exit(const struct step *step, const struct ending *ending, double wall_s)
{
	int status = ending->status;

	send_text("exit", step->name,
		  "{\"status\":%d,\"signal\":%d,\"timed_out\":%s,\"wall_s\":%.6f,\"user_s\":%.6f,\"system_s\":%.6f}",
		  WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		  ending->timed_out ? "true" : "false", wall_s,
		  seconds(ending->usage.ru_utime), seconds(ending->usage.ru_stime));
}

/* Run one step and send what came of it; true if it ended well. */
static int run_step(const struct step *step)
{
	struct ending ending = { 0 };
	int out[2], err[2];
	double start;
	pid_t child;

	send_text("step", step->name, "{\"kind\":\"%s\",\"uptime_s\":%.6f}", step->kind, now());
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("no pipe: %s", strerror(errno));
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	start = now();
	child = fork();
	if (child < 0)
		die("no process: %s", strerror(errno));
	if (!child)
		become(step, out[1], err[1]);
	setpgid(child, child);	/* in both processes: the group exists before we may kill it */
	close(out[1]);
	close(err[1]);
	watch(step, child, out[0], err[0], &ending);
	double wall_s = now() - start;
	close(out[0]);
	close(err[0]);
	send_exit(step, &ending, wall_s);
	for (char **path = step->send; *path; path++)
		send_file(step->name, *path);
	return !ending.timed_out && ending.status == 0;
}

/* The last record. A clock source given up meanwhile makes its times worth nothing, so it is told again. */
static void send_bye(const char *step, const char *completed)
{
	char clocksource[64];

	slurp(CLOCKSOURCE, clocksource, sizeof(clocksource));
	send_text("bye", step, "{\"completed\":%s,\"uptime_s\":%.3f,\"clocksource\":\"%s\"}", completed, now(),
		  clocksource);
}

/* All steps in order until one does not end well, and the last record; true if all did. */
int run_plan(void)
{
	FILE *plan = fopen("/plan/plan", "re");
	struct step step = { 0 };
	int version = 0;

	if (!plan || fscanf(plan, "KPLAN %d", &version) != 1 || version != 1)
		die("no plan that this agent can read in /plan/plan");
	while (plan_step(plan, &step))
		if (!run_step(&step)) {
			send_bye(step.name, "false");
			return 0;
		}
	send_bye("-", "true");
	return 1;
}
