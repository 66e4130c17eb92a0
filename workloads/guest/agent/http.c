// SPDX-License-Identifier: GPL-2.0-or-later
/* HTTP with the lab, whose address the kernel's command line told: nobody else is ever asked. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

#define TRY_S 10.0		/* without a byte sent or received; the lab holds a waiting machine for half of it */
#define GET_S 120.0		/* for a whole file */
#define HEAD 4096

static struct sockaddr_in lab = { .sin_family = AF_INET };
static char host[64];

/* Take the lab's address from a URL; returns its path. */
const char *http_lab(const char *url)
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
	return url;
}

static int connected(void)
{
	struct timeval patience = { .tv_sec = (time_t)TRY_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	/* The first also bounds connect(). */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&lab, sizeof(lab)))
		return fd;
	close(fd);
	return -1;
}

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

static int status_of(const char *head)
{
	int status = 0;

	return sscanf(head, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : 0;
}

/* True for an answer after which the same may be asked again: a lab that is busy or restarts, not one that refuses. */
int http_again(int status)
{
	return status / 100 != 4 || status == 408 || status == 429;
}

int http_post(const char *path, const char *data, size_t size)
{
	char text[1024];
	int fd = connected(), used;
	ssize_t n;

	if (fd < 0)
		return 0;
	used = snprintf(text, sizeof(text),
			"POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
			"Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n", path, host, size);
	/* A piece that is refused may be answered before it was read: look for the answer whatever became of sending. */
	if (!send_all(fd, text, used))
		send_all(fd, data, size);
	for (used = 0; used < 15 && (n = recv(fd, text + used, 15 - used, 0)) > 0;)
		used += n;
	text[used] = 0;
	close(fd);
	return status_of(text);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n <= 0)
			return -1;
		data += n;
		size -= n;
	}
	return 0;
}

/* The answer's body into a file; 0 also if it stalled or found no room. Whether it is whole its reader must know. */
int http_get(const char *path, int into)
{
	static char text[65536];
	double end = now() + GET_S;
	int fd = connected(), used = 0, status = 0;
	char *body = NULL;
	ssize_t n = -1;

	if (fd < 0)
		return 0;
	/* 1.0: a body without chunks, up to the end of the connection. */
	used = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, host);
	if (send_all(fd, text, used))
		goto out;
	for (used = 0; !body && used < HEAD && (n = recv(fd, text + used, HEAD - used, 0)) > 0;) {
		used += n;
		text[used] = 0;
		body = strstr(text, "\r\n\r\n");
	}
	if (!body)
		goto out;
	status = status_of(text);
	body += 4;
	if (write_all(into, body, text + used - body))
		status = 0;
	while (status && (n = recv(fd, text, sizeof(text), 0)) > 0)
		if (now() > end || write_all(into, text, n))
			status = 0;
	if (n < 0)
		status = 0;
out:
	close(fd);
	return status;
}
