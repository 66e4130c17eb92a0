// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where records go: a virtio-serial port, or the serial line that the kernel's command line names
 * (kperflab.records=ttyS1), or the process that posts them over HTTP (kperflab.report=http://..., see report.c).
 *
 * Under the instruction clock there is the serial line only, for whatever completes in the host's own time
 * would disturb the count. Its records are held in memory while the plan runs: the host may not get to
 * read at once, and a guest that waits for it would count its waiting.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "agent.h"

#define PORT_NAME "kperflab.records"
#define LINE_OPTION "kperflab.records="
#define HELD "/run/records"
#define PORT_WAIT_S 10.0   /* the port appears a moment after the kernel starts us */
#define HOST_WAIT_S 30.0   /* then nobody is there any more, and we switch ourselves off */
#define BYE_WAIT_S 5.0     /* time for the host to take the last records */
#define LAST_WAIT_S 90.0   /* ... where the last pieces are posted, and posted again */

static int sink = -1, held = -1, serial_line, posted;

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

/* The serial line, if the command line names one: bytes as they are, no echo, writes that wait for room. */
static int line_open(void)
{
	char cmdline[4096], path[64], *name = strstr(slurp("/proc/cmdline", cmdline, sizeof(cmdline)), LINE_OPTION);
	struct termios raw;

	if (!name)
		return -1;
	name += strlen(LINE_OPTION);
	name[strcspn(name, " ")] = 0;
	snprintf(path, sizeof(path), "/dev/%.32s", name);
	sink = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (sink < 0 || tcgetattr(sink, &raw))
		die("%s cannot take the records: %s", path, strerror(errno));
	cfmakeraw(&raw);
	raw.c_cflag |= CLOCAL;
	tcsetattr(sink, TCSANOW, &raw);
	serial_line = 1;
	return sink;
}

void sink_open(void)
{
	double end = now() + PORT_WAIT_S;

	if (line_open() >= 0)
		return;
	if ((sink = report_open()) >= 0) {
		posted = 1;
		return;
	}
	while ((sink = port_open()) < 0) {
		if (now() > end)
			die("no virtio-serial port is named " PORT_NAME);
		nap(0.002);
	}
}

static void write_all(int fd, const char *data, size_t size)
{
	double patience = posted ? LAST_WAIT_S : HOST_WAIT_S, end = now() + patience;

	while (size) {
		ssize_t n = write(fd, data, size < CHUNK ? size : CHUNK);

		if (n > 0) {
			data += n;
			size -= n;
			end = now() + patience;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			die("cannot write records: %s", strerror(errno));
		/* An idle guest's instruction clock leaps ahead, so it cannot tell how patient to be. */
		if (!serial_line && now() > end)
			die("the host has not taken a record for %.0f s", patience);
		struct pollfd room = { .fd = fd, .events = POLLOUT };
		poll(&room, 1, 100);
		if (room.revents & POLLHUP)	/* not connected yet: poll() does not wait then */
			nap(0.002);
	}
}

void sink_write(const char *data, size_t size)
{
	write_all(held >= 0 ? held : sink, data, size);
}

/* Keep records until sink_close(), on a serial line; elsewhere they go at once. */
void sink_hold(void)
{
	if (!serial_line)
		return;
	held = open(HELD, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (held < 0)
		die("no memory for records: %s", strerror(errno));
	unlink(HELD);
	tcdrain(sink);	/* what is still on its way would interrupt the first step */
}

int sink_held(void)
{
	return held >= 0;
}

/*
 * All held records, until the last byte has left the UART. tcdrain() alone gives up after a while, which an idle
 * guest's instruction clock leaps over.
 */
static void send_held(void)
{
	static char chunk[CHUNK];
	int state = 0;
	ssize_t n;

	lseek(held, 0, SEEK_SET);
	while ((n = read(held, chunk, sizeof(chunk))) > 0)
		write_all(sink, chunk, n);
	if (n < 0)
		die("held records cannot be read: %s", strerror(errno));
	tcdrain(sink);
	while (!ioctl(sink, TIOCSERGETLSR, &state) && !(state & TIOCSER_TEMT))
		nap(0.001);
}

/*
 * The host shuts the port or answers with a byte once it has the last record; who posts them shuts the socket. What has
 * left a serial line is in the host's pipe, so there is nothing to wait for; and a guest that idles under the instruction clock, leaping from timer
 * to timer, would keep two CPUs of the host busy.
 */
void sink_close(void)
{
	struct pollfd answer = { .fd = sink, .events = POLLIN };

	if (held >= 0)
		send_held();
	else if (posted && !shutdown(sink, SHUT_WR))
		poll(&answer, 1, (int)(LAST_WAIT_S * 1000));
	else
		poll(&answer, 1, (int)(BYE_WAIT_S * 1000));
}
