// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first process of a guest: runs the plan in /plan, sends records home, powers off.
 *
 * Plan (written by pack.py) and records (read by records.py) are length-framed, so nothing
 * in them needs quoting. Only the section "sink" knows how records travel.
 *
 * One thread does everything. While a step runs it sleeps in ppoll() until output comes, the
 * step ends, its deadline passes or a heartbeat is due; so a missing heartbeat means that
 * process 1 itself is stuck, which is what the host wants to know.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT_NAME "kperflab.records"
#define PORT_WAIT_S 10.0   /* the port appears a moment after the kernel starts us */
#define HOST_WAIT_S 30.0   /* then nobody is there any more, and we switch ourselves off */
#define BYE_WAIT_S 5.0     /* time for the host to take the last records */
#define BEAT_S 1.0
#define CHUNK 32768        /* virtio_console cuts writes at 32 KiB */

/* ---- time ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void nap(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

/* ---- ends ---- */

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("kperflab-agent: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	power_off();
	abort();
}

/* ---- small files ---- */

/* Read at most size - 1 bytes of a file as one string without its last line feed; "" if it cannot be read. */
static char *slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	while (fd >= 0 && used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += n;
	if (fd >= 0)
		close(fd);
	while (used && text[used - 1] == '\n')
		used--;
	text[used] = 0;
	return text;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "kperflab-agent: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* ---- sink: where records go. Over HTTP it will be another sink_open() and sink_write(). ---- */

static int sink = -1;

/* The device of our port, found by its name in sysfs; -1 if it is not there yet. */
static int port_open(void)
{
	const char *class = "/sys/class/virtio-ports";
	char path[512], name[128];
	struct dirent *entry;
	DIR *dir = opendir(class);
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/name", class, entry->d_name);
		if (strcmp(slurp(path, name, sizeof(name)), PORT_NAME))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		/* Blocking writes would spin with interrupts off until the host has read them. */
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static void sink_open(void)
{
	double end = now() + PORT_WAIT_S;

	while ((sink = port_open()) < 0) {
		if (now() > end)
			die("no virtio-serial port is named " PORT_NAME);
		nap(0.002);
	}
}

static void sink_write(const char *data, size_t size)
{
	double end = now() + HOST_WAIT_S;

	while (size) {
		ssize_t n = write(sink, data, size < CHUNK ? size : CHUNK);

		if (n > 0) {
			data += n;
			size -= n;
			end = now() + HOST_WAIT_S;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			die("cannot write records: %s", strerror(errno));
		if (now() > end)
			die("the host has not taken a record for %.0f s", HOST_WAIT_S);
		struct pollfd room = { .fd = sink, .events = POLLOUT };
		poll(&room, 1, 100);
		if (room.revents & POLLHUP)	/* not connected yet: poll() does not wait then */
			nap(0.002);
	}
}

/* The host shuts the port or answers with a byte once it has the last record. */
static void sink_close(void)
{
	struct pollfd answer = { .fd = sink, .events = POLLIN };

	poll(&answer, 1, (int)(BYE_WAIT_S * 1000));
}

/* ---- records ---- */

static double next_beat;

static uint32_t crc32_more(uint32_t crc, const void *data, size_t size)
{
	static uint32_t table[256];
	const unsigned char *byte = data;

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;

			for (int bit = 0; bit < 8; bit++)
				c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
			table[i] = c;
		}
	crc = ~crc;
	while (size--)
		crc = table[(crc ^ *byte++) & 0xff] ^ (crc >> 8);
	return ~crc;
}

static void send_record(const char *kind, const char *name, const void *payload, size_t size)
{
	static unsigned long seq;
	static char frame[CHUNK + 1024];
	uint32_t crc = crc32_more(0, kind, strlen(kind));
	int used;

	crc = crc32_more(crc, name, strlen(name));
	crc = crc32_more(crc, payload, size);
	used = snprintf(frame, 1000, "KPL1 %lu %s %s %zu %08x\n", ++seq, kind, name, size, crc);
	if (size)
		memcpy(frame + used, payload, size);
	frame[used + size] = '\n';
	sink_write(frame, used + size + 1);
	next_beat = now() + BEAT_S;	/* any record is a sign of life */
}

static void __attribute__((format(printf, 3, 4))) send_text(const char *kind, const char *name, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_record(kind, name, text, strlen(text));
}

static void beat_if_due(void)
{
	if (now() >= next_beat)
		send_text("beat", "-", "%.3f", now());
}

/* A file's bytes in pieces and an empty one at its end. Files of /proc have no size: read until they end. */
static void send_file(const char *step, const char *path)
{
	static char chunk[CHUNK];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 0;

	while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		send_record("file", path, chunk, n);
	if (n < 0)
		send_text("err", step, "kperflab-agent: cannot send %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	send_record("file", path, "", 0);
}

/* ---- hello ---- */

static FILE *hello;

static void json_string(const char *text)
{
	fputc('"', hello);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(hello, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)	/* the kernel writes none; keep the JSON valid if it does */
			fprintf(hello, "\\u%04x", c);
		else
			fputc(c, hello);
	}
	fputc('"', hello);
}

static void json_file(const char *key, const char *path)
{
	static char text[8192];

	fprintf(hello, "\"%s\":", key);
	json_string(slurp(path, text, sizeof(text)));
	fputc(',', hello);
}

/* The rest of the first line of a /proc file that starts with `label`, after colon and blanks. */
static const char *proc_value(const char *path, const char *label, char *text, size_t size)
{
	char *found = strstr(slurp(path, text, size), label);

	if (!found)
		return "";
	found += strlen(label);
	found += strspn(found, " \t:");
	found[strcspn(found, "\n")] = 0;
	return found;
}

static void hello_mitigations(void)
{
	const char *class = "/sys/devices/system/cpu/vulnerabilities";
	struct dirent *entry;
	DIR *dir = opendir(class);
	char path[512], text[512];
	const char *comma = "";

	fputs("\"mitigations\":{", hello);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", class, entry->d_name);
		fputs(comma, hello);
		json_string(entry->d_name);
		fputc(':', hello);
		json_string(slurp(path, text, sizeof(text)));
		comma = ",";
	}
	fputs("},", hello);
	if (dir)
		closedir(dir);
}

static void send_hello(void)
{
	static char text[8192];
	struct utsname name;
	char *json;
	size_t size;

	uname(&name);
	hello = open_memstream(&json, &size);
	fputs("{\"release\":", hello);
	json_string(name.release);
	fputs(",\"machine\":", hello);
	json_string(name.machine);
	fputc(',', hello);
	json_file("cmdline", "/proc/cmdline");
	json_file("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	fputs("\"cpu_model\":", hello);
	json_string(proc_value("/proc/cpuinfo", "model name", text, sizeof(text)));
	fputc(',', hello);
	hello_mitigations();
	fprintf(hello, "\"cpus\":%ld,", sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(hello, "\"memory_kib\":%ld,", atol(proc_value("/proc/meminfo", "MemTotal", text, sizeof(text))));
	fprintf(hello, "\"uptime_s\":%.3f}", now());
	fclose(hello);
	send_record("hello", "-", json, size);
	free(json);
}

/* ---- plan ---- */

struct step {
	char *kind, *name, **argv, **send;
	double deadline_s;
};

/* One string "<length> <bytes>\n" of the plan. */
static char *plan_string(FILE *plan)
{
	size_t length;
	char *text;

	if (fscanf(plan, "%zu", &length) != 1 || fgetc(plan) != ' ' || !(text = calloc(1, length + 1)))
		die("/plan/plan is damaged");
	if (fread(text, 1, length, plan) != length || fgetc(plan) != '\n')
		die("/plan/plan is damaged");
	return text;
}

static char **plan_strings(FILE *plan, int count)
{
	char **list = calloc(count + 1, sizeof(*list));

	for (int i = 0; i < count; i++)
		list[i] = plan_string(plan);
	return list;
}

/* "step <deadline in ms> <arguments> <files to send>\n", kind, name, arguments, files; false at "end". */
static int plan_step(FILE *plan, struct step *step)
{
	unsigned long deadline_ms;
	int arguments, files;
	char word[8];

	if (fscanf(plan, "%7s", word) != 1)
		die("/plan/plan is cut off");
	if (!strcmp(word, "end"))
		return 0;
	if (strcmp(word, "step") || fscanf(plan, "%lu %d %d", &deadline_ms, &arguments, &files) != 3)
		die("/plan/plan is damaged");
	step->deadline_s = deadline_ms / 1e3;
	step->kind = plan_string(plan);
	step->name = plan_string(plan);
	step->argv = plan_strings(plan, arguments);
	step->send = plan_strings(plan, files);
	return 1;
}

/* ---- steps ---- */

static sigset_t before_block;

static void on_child(int signal)
{
	(void)signal;	/* only there to wake ppoll() */
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
		double until = next_beat;

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
	setpgid(child, child);	/* whoever comes first: the group exists before we may kill it */
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

static void run_plan(void)
{
	FILE *plan = fopen("/plan/plan", "re");
	struct step step = { 0 };
	int version = 0;

	if (!plan || fscanf(plan, "KPLAN %d", &version) != 1 || version != 1)
		die("no plan that this agent can read in /plan/plan");
	while (plan_step(plan, &step))
		if (!run_step(&step)) {
			send_text("bye", step.name, "{\"completed\":false,\"uptime_s\":%.3f}", now());
			return;
		}
	send_text("bye", "-", "{\"completed\":true,\"uptime_s\":%.3f}", now());
}

/* ---- start ---- */

static void mount_at(const char *type, const char *path, const char *options)
{
	mkdir(path, 0755);
	/* A kernel without tracefs or debugfs is fine until a step needs it, and then the step says so. */
	mount(type, path, type, 0, options);
}

/* /dev/disk/by-id/virtio-<serial>, as udev would make it. */
static void link_disks(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/sys/block");
	char path[512], serial[64], device[300];

	mkdir("/dev/disk", 0755);
	mkdir("/dev/disk/by-id", 0755);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/block/%s/serial", entry->d_name);
		if (entry->d_name[0] == '.' || !*slurp(path, serial, sizeof(serial)))
			continue;
		snprintf(path, sizeof(path), "/dev/disk/by-id/virtio-%s", serial);
		snprintf(device, sizeof(device), "/dev/%s", entry->d_name);
		if (symlink(device, path))
			fprintf(stderr, "kperflab-agent: %s: %s\n", path, strerror(errno));
	}
	if (dir)
		closedir(dir);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_child };
	sigset_t child;

	mount_at("devtmpfs", "/dev", "mode=0755");
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("tmpfs", "/tmp", "mode=1777");
	mount_at("tmpfs", "/run", "mode=0755");
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	mount_at("tracefs", "/sys/kernel/tracing", NULL);
	/* The boot is quiet, because printing it through an emulated UART takes time; from here on all counts. */
	write_text("/proc/sys/kernel/printk", "7");
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin:/programs", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LC_ALL", "C", 1);
	if (chdir("/tmp"))
		die("no /tmp: %s", strerror(errno));
	link_disks();
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before_block);
	sink_open();
	send_hello();
	run_plan();
	sink_close();
	power_off();
}
