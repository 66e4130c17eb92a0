// SPDX-License-Identifier: GPL-2.0-or-later
/* Tells perf, run with --control fifo:CTL,ACK, when to record, and waits until it does. */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ACK_DEADLINE_MS 10000
static int orders = -1, answers = -1;

void control_open(const char *fifos)
{
	char orders_path[128], answers_path[128];

	if (*fifos == '\0')
		return;
	if (sscanf(fifos, "%127[^,],%127s", orders_path, answers_path) != 2)
		fail("control=%s: not CTL,ACK", fifos);
	orders = open(orders_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	answers = open(answers_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (orders < 0 || answers < 0)
		fail_errno("control=%s: perf does not listen", fifos);
}

bool controlled(void)
{
	return orders >= 0;
}

void control(const char *command)
{
	struct pollfd answer = { .fd = answers, .events = POLLIN };
	char text[16];

	if (orders < 0)
		return;
	int length = snprintf(text, sizeof(text), "%s\n", command);

	if (write(orders, text, (size_t)length) != length)
		fail_errno("cannot tell perf to %s", command);
	if (poll(&answer, 1, ACK_DEADLINE_MS) != 1)
		fail("perf did not %s within %d ms", command, ACK_DEADLINE_MS);
	/* perf answers "ack\n" and, before 6.2, a NUL after it. */
	if (read(answers, text, sizeof(text)) < 0)
		fail_errno("cannot read what perf answers to %s", command);
}
