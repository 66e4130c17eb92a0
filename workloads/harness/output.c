// SPDX-License-Identifier: GPL-2.0-or-later
/* One JSON object per iteration on stdout; one clear line on stderr, and out, on failure. */
#define _GNU_SOURCE	/* program_invocation_short_name */
#include "harness.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char extras[64 * 1024];
static size_t extras_used;
static const char *separator;
static bool held;

void begin_object(unsigned long iteration, bool warmup)
{
	extras_used = 0;
	extras[0] = '\0';
	separator = "";
	printf("{\"iteration\":%lu,\"warmup\":%s,\"values\":{", iteration, warmup ? "true" : "false");
}

void value(const char *name, double number)
{
	if (!isfinite(number))	/* JSON knows neither infinity nor NaN */
		fail("%s is not a finite number", name);
	printf("%s\"%s\":%.12g", separator, name, number);
	separator = ",";
}

void extra(const char *name, const char *format, ...)
{
	size_t room = sizeof(extras) - extras_used;
	int key = snprintf(extras + extras_used, room, ",\"%s\":", name);
	va_list args;

	if (key < 0 || (size_t)key >= room)
		fail("too much beside the values at %s", name);
	va_start(args, format);
	int body = vsnprintf(extras + extras_used + key, room - (size_t)key, format, args);

	va_end(args);
	if (body < 0 || (size_t)(key + body) >= room)
		fail("too much beside the values at %s", name);
	extras_used += (size_t)(key + body);
}

void end_object(void)
{
	printf("}%s}\n", extras);
	if (!held)
		output_end();
}

void output_hold(void)
{
	/* Enough for thousands of iterations; more than that is written when it is full. */
	if (setvbuf(stdout, NULL, _IOFBF, 1 << 20) != 0)
		fail("cannot hold output back");
	held = true;
}

void output_end(void)
{
	if (fflush(stdout) != 0)
		fail_errno("cannot write to stdout");
}

static void complain(const char *reason, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fprintf(stderr, "%s%s\n", *reason ? ": " : "", reason);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("", format, args);
	exit(1);
}

void fail_errno(const char *format, ...)
{
	const char *reason = strerror(errno);
	va_list args;

	va_start(args, format);
	complain(reason, format, args);
	exit(1);
}

void *allocate(unsigned long items, unsigned long size)
{
	void *memory = calloc(items, size);

	if (!memory)
		fail("no memory for %lu items of %lu bytes", items, size);
	return memory;
}
