// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records over HTTP, for machines that booted over the network (kperflab.report=http://ADDRESS[:PORT]/PATH): a process
 * of its own takes them from the agent through a socket and posts them in numbered pieces, each until it is taken or
 * the lab has not answered for GIVE_UP_S. So the agent goes on beating while the lab is slow, and a lab that is gone
 * for good closes the socket, upon which the agent switches the machine off.
 *
 * With kperflab.console=report the kernel's messages are posted too, as a second stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

#define REPORT_OPTION "kperflab.report="
#define CONSOLE_OPTION "kperflab.console=report"
#define PIECE 262144
#define MESSAGE 8192		/* the most that /dev/kmsg gives at once */
#define GATHER_S 0.2		/* what comes meanwhile goes with it */
#define GATHER_CONSOLE_S 1.0
#define GIVE_UP_S 60.0

struct stream {
	const char *name;
	int fd;			/* -1 once it has ended */
	double gather_s, since;
	unsigned int number;
	size_t used;
	char data[PIECE];
};

static struct stream records = { .name = "records", .gather_s = GATHER_S };
static struct stream console = { .name = "console", .gather_s = GATHER_CONSOLE_S };
static char cmdline[4096], place[512];

/* True once the piece was taken. A lab that is busy or restarts is asked again; one that refuses is not. */
static int post(struct stream *stream)
{
	double end = now() + GIVE_UP_S, pause = 0.1;
	char path[600];
	int status = 0;

	for (; now() < end; nap(pause), pause = pause < 2 ? pause * 2 : pause) {
		snprintf(path, sizeof(path), "%s/%s/%u", place, stream->name, stream->number);
		status = http_post(path, stream->data, stream->used);
		if (status / 100 == 2) {
			stream->number++;
			stream->used = 0;
			return 1;
		}
		if (!http_again(status))
			break;
	}
	fprintf(stderr, "kperflab-agent: piece %u of the %s was not taken: status %d\n", stream->number, stream->name,
		status);
	return 0;
}

/* "6,339,5140900,-;text" and lines of details become "[    5.140900] text". */
static void take_message(void)
{
	static char message[MESSAGE];
	unsigned long long us = 0;
	char *text;
	ssize_t n = read(console.fd, message, sizeof(message) - 1);

	if (n < 0 && (errno == EPIPE || errno == EAGAIN || errno == EINTR))	/* EPIPE: the oldest were overwritten */
		return;
	if (n <= 0) {
		console.fd = -1;
		return;
	}
	message[n] = 0;
	text = strchr(message, ';');
	if (!text || sscanf(message, "%*u,%*u,%llu", &us) != 1)
		return;
	text++;
	text[strcspn(text, "\n")] = 0;
	console.used += snprintf(console.data + console.used, PIECE - console.used, "[%5llu.%06llu] %s\n",
				 us / 1000000, us % 1000000, text);
}

static void take(struct stream *stream)
{
	if (!stream->used)
		stream->since = now();
	if (stream == &console) {
		take_message();
		return;
	}
	ssize_t n = read(stream->fd, stream->data + stream->used, PIECE - stream->used);

	if (n > 0)
		stream->used += n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		stream->fd = -1;
}

static int is_due(const struct stream *stream)
{
	size_t room = PIECE - stream->used;

	return stream->used && (room < MESSAGE + 64 || stream->fd < 0 || now() >= stream->since + stream->gather_s);
}

/* How long nothing is due, in ms; -1 for ever. */
static int idle_ms(void)
{
	double due = 1e9;

	if (records.used && records.since + records.gather_s < due)
		due = records.since + records.gather_s;
	if (console.used && console.since + console.gather_s < due)
		due = console.since + console.gather_s;
	if (due >= 1e9)
		return -1;
	return due > now() ? (int)((due - now()) * 1000) + 1 : 0;
}

/* Post both streams until the agent has sent its last record, and that last. */
static void __attribute__((noreturn)) report(void)
{
	while (records.fd >= 0) {
		struct pollfd ready[2] = { { .fd = records.fd, .events = POLLIN }, { .fd = console.fd, .events = POLLIN } };

		if (poll(ready, 2, idle_ms()) < 0 && errno != EINTR)
			_exit(1);
		if (ready[0].revents)
			take(&records);
		if (ready[1].revents)
			take(&console);
		/* A console that is refused, as one that is too long, does not end the run. */
		if (is_due(&console) && !post(&console))
			console.fd = -1, console.used = 0;
		if (records.fd >= 0 && is_due(&records) && !post(&records))
			_exit(1);
	}
	if (console.used)
		post(&console);
	_exit(records.used && !post(&records));
}

/* A socket whose other end posts what is written to it; -1 if the command line does not ask for that. */
int report_open(void)
{
	char *url = strstr(slurp("/proc/cmdline", cmdline, sizeof(cmdline)), REPORT_OPTION);
	int ends[2], room = 1 << 20;

	if (!url)
		return -1;
	console.fd = strstr(cmdline, CONSOLE_OPTION) ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	url += strlen(REPORT_OPTION);
	url[strcspn(url, " ")] = 0;
	snprintf(place, sizeof(place), "%s", http_lab(url));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		die("no socket for the records: %s", strerror(errno));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	records.fd = ends[1];
	switch (fork()) {
	case -1:
		die("no process to post the records: %s", strerror(errno));
	case 0:
		close(ends[0]);
		setsid();
		prctl(PR_SET_NAME, "report");
		report();
	}
	close(ends[1]);
	return ends[0];
}
