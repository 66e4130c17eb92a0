// SPDX-License-Identifier: GPL-2.0-or-later
/* The first record: what machine and kernel this is. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent.h"

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

void send_hello(void)
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
	json_file("clocksource", CLOCKSOURCE);
	fputs("\"cpu_model\":", hello);
	json_string(proc_value("/proc/cpuinfo", "model name", text, sizeof(text)));
	fputc(',', hello);
	hello_mitigations();
	fputs("\"tuning\":", hello);
	tune(hello);
	fputc(',', hello);
	fprintf(hello, "\"cpus\":%ld,", sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(hello, "\"memory_kib\":%ld,", atol(proc_value("/proc/meminfo", "MemTotal", text, sizeof(text))));
	fprintf(hello, "\"uptime_s\":%.3f}", now());
	fclose(hello);
	send_record("hello", "-", json, size);
	free(json);
}
