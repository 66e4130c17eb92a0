// SPDX-License-Identifier: GPL-2.0-or-later
/* Records as records.py reads them: numbered, checksummed, framed by their length. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

#define BEAT_S 1.0
#define NEVER_S 1e9

static double due;

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

void send_record(const char *kind, const char *name, const void *payload, size_t size)
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
	due = now() + BEAT_S;	/* any record is a sign of life */
}

void send_text(const char *kind, const char *name, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_record(kind, name, text, strlen(text));
}

/* When the next heartbeat is due; never while records are held, for nobody would hear it. */
double next_beat(void)
{
	return sink_held() ? NEVER_S : due;
}

void beat_if_due(void)
{
	if (now() >= next_beat())
		send_text("beat", "-", "%.3f", now());
}

/* A file's bytes in pieces and an empty one at its end. Files of /proc have no size: read until they end. */
void send_file(const char *step, const char *path)
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
