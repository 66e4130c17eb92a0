// SPDX-License-Identifier: GPL-2.0-or-later
/* /plan/plan as pack.py writes it; every string is framed by its length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

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
int plan_step(FILE *plan, struct step *step)
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
