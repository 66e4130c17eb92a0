// SPDX-License-Identifier: GPL-2.0-or-later
/* name=value arguments: every one must be asked for, or the program refuses to run. */
#include "harness.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
static char **given;
static int count;
static bool asked[MOST];

void arguments(int argc, char **argv)
{
	given = argv + 1;
	count = argc - 1;
	if (count > MOST)
		fail("%d arguments: at most %d are taken", count, MOST);
}

const char *text(const char *name, const char *otherwise)
{
	size_t length = strlen(name);
	const char *found = otherwise;

	for (int i = 0; i < count; i++)
		if (strncmp(given[i], name, length) == 0 && given[i][length] == '=') {
			asked[i] = true;
			found = given[i] + length + 1;
		}
	if (!found)
		fail("argument %s=… is missing", name);
	return found;
}

unsigned long number(const char *name, unsigned long otherwise)
{
	const char *digits = text(name, "");
	char *end;

	if (*digits == '\0')
		return otherwise;
	errno = 0;
	unsigned long parsed = strtoul(digits, &end, 10);

	if (errno != 0 || *end != '\0' || *digits == '-')
		fail("%s=%s: not a whole number", name, digits);
	return parsed;
}

void refuse_unknown_arguments(void)
{
	for (int i = 0; i < count; i++)
		if (!asked[i])
			fail("unknown argument %s", given[i]);
}
