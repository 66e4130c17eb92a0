// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records over HTTP, for machines that booted over the network (kperflab.report=http://ADDRESS[:PORT]/PATH): a process
 * of its own takes them from the agent through a socket and posts them in numbered pieces, each until it is taken or
 * the lab has not answered for GIVE_UP_S. So the agent goes on beating while the lab is slow, and a lab that is gone
 * for good closes the socket, upon which the agent switches the machine off.
 *
 * With kperflab.console=report the kernel's messages are posted too, as a second stream.
 */
#include <arpa/inet.h>
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
#define TRY_S 10.0
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
static struct sockaddr_in lab = { .sin_family = AF_INET };
static char cmdline[4096], host[64], path[512];

/* Everything of size, or an error by the deadline. */
static int send_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		data += n;
		size -= n;
	}
	return 0;
}

/* One attempt: the status of the answer, 0 if there was none. */
static int try_post(const struct stream *stream)
{
	struct timeval patience = { .tv_sec = (time_t)TRY_S };
	char text[1024];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0, used;
	ssize_t n;

	if (fd < 0)
		return 0;
	/* The first also bounds connect(). */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	used = snprintf(text, sizeof(text),
			"POST %s/%s/%u HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
			"Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
			path, stream->name, stream->number, host, stream->used);
	/* A piece that is refused may be answered before it was read: look for the answer whatever became of sending. */
	if (!connect(fd, (struct sockaddr *)&lab, sizeof(lab)) && !send_all(fd, text, used))
		send_all(fd, stream->data, stream->used);
	for (used = 0; used < 15 && (n = recv(fd, text + used, 15 - used, 0)) > 0;)
		used += n;
	text[used] = 0;
	if (sscanf(text, "HTTP/1.%*1[01] %3d", &status) != 1)
		status = 0;
	close(fd);
	return status;
}

/* True once the piece was taken. A lab that is busy or restarts is asked again; one that refuses is not. */
static int post(struct stream *stream)
{
	double end = now() + GIVE_UP_S, pause = 0.1;
	int status = 0;

	for (; now() < end; nap(pause), pause = pause < 2 ? pause * 2 : pause) {
		status = try_post(stream);
		if (status / 100 == 2) {
			stream->number++;
			stream->used = 0;
			return 1;
		}
		if (status / 100 == 4 && status != 408 && status != 429)
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

static void read_address(const char *url)
{
	char address[32];
	int port = 80, end = 0;

	if (sscanf(url, "http://%31[0-9.]%n", address, &end) != 1 || inet_pton(AF_INET, address, &lab.sin_addr) != 1)
		die("%s: no http:// and IPv4 address", url);
	url += end;
	end = 0;
	if (sscanf(url, ":%5d%n", &port, &end) == 1)
		url += end;
	lab.sin_port = htons(port);
	snprintf(host, sizeof(host), "%s:%d", address, port);
	snprintf(path, sizeof(path), "%s", url);
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
	read_address(url);
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
