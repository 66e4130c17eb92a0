// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The machine as its target declares it, before anything is measured: the command line says what is asked
 * (kperflab.governor=performance), and hello says what is so. A wish that the machine does not grant is not our end:
 * the host compares.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

#define CPUS "/sys/devices/system/cpu"
#define NO_TURBO CPUS "/intel_pstate/no_turbo"
#define BOOST CPUS "/cpufreq/boost"
#define SMT CPUS "/smt"
#define HUGEPAGES "/sys/kernel/mm/transparent_hugepage/enabled"
#define IRQS "/proc/irq"
#define LARGEST 256

/* True if it could be written; a file that refuses is told by what it holds afterwards. */
static int wrote(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), done;

	if (fd < 0)
		return 0;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

/* Add a word to a list that ends with a zero, if it is not in it: "a;b". */
static void add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);

	for (char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ';') && strchr(";", at[strlen(word)]))
			return;
	snprintf(list + used, size - used, "%s%s", used ? ";" : "", word);
}

/* The file `name` of each numbered directory in `parent`: written where there is something to write, then read. */
static void each(const char *parent, const char *name, const char *text, char *found, size_t size)
{
	char path[512], word[LARGEST];
	struct dirent *entry;
	DIR *dir = opendir(parent);

	found[0] = 0;
	while (dir && (entry = readdir(dir))) {
		const char *number = entry->d_name + strcspn(entry->d_name, "0123456789");

		if (!*number)
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", parent, entry->d_name, name);
		/* Per-CPU and managed interrupts stay where they are; they are nobody's wish. */
		if (*text && !wrote(path, text) && !strcmp(parent, IRQS))
			continue;
		if (*slurp(path, word, sizeof(word)))
			add_word(found, size, word);
	}
	if (dir)
		closedir(dir);
}

static void tell(FILE *hello, const char *key, const char *value)
{
	static const char *comma = "";

	fprintf(hello, "%s\"%s\":\"", comma, key);
	comma = ",";
	for (; *value; value++)
		if ((unsigned char)*value >= 0x20 && *value != '"' && *value != '\\' && (unsigned char)*value < 0x7f)
			fputc(*value, hello);
	fputc('"', hello);
}

static const char *turbo(void)
{
	char text[16];

	if (*slurp(NO_TURBO, text, sizeof(text)))
		return *text == '0' ? "on" : "off";
	if (*slurp(BOOST, text, sizeof(text)))
		return *text == '1' ? "on" : "off";
	return "";
}

static const char *smt(void)
{
	char text[16];

	if (!*slurp(SMT "/active", text, sizeof(text)))
		return "";
	return *text == '1' ? "on" : "off";
}

/* "always [madvise] never" → "madvise" */
static const char *hugepages(char *text, size_t size)
{
	char *open_at = strchr(slurp(HUGEPAGES, text, size), '['), *close_at;

	if (!open_at || !(close_at = strchr(open_at, ']')))
		return "";
	*close_at = 0;
	return open_at + 1;
}

/* Do what is asked, and write what is so: a JSON object. */
void tune(FILE *hello)
{
	char text[LARGEST], found[4 * LARGEST];
	const char *asked = option("kperflab.turbo");

	if (*asked) {
		wrote(NO_TURBO, strcmp(asked, "on") ? "1" : "0");
		wrote(BOOST, strcmp(asked, "on") ? "0" : "1");
	}
	if (*(asked = option("kperflab.smt")))
		wrote(SMT "/control", asked);
	if (*(asked = option("kperflab.hugepages")))
		wrote(HUGEPAGES, asked);
	fputc('{', hello);
	/* After the siblings are gone: governors are those of the CPUs that are left. */
	each(CPUS, "cpufreq/scaling_governor", option("kperflab.governor"), found, sizeof(found));
	tell(hello, "governor", found);
	tell(hello, "frequency_driver", slurp(CPUS "/cpu0/cpufreq/scaling_driver", text, sizeof(text)));
	tell(hello, "turbo", turbo());
	tell(hello, "smt", smt());
	tell(hello, "isolcpus", slurp(CPUS "/isolated", text, sizeof(text)));
	tell(hello, "hugepages", hugepages(text, sizeof(text)));
	found[0] = 0;
	if (*option("kperflab.irq_affinity"))
		each(IRQS, "smp_affinity_list", option("kperflab.irq_affinity"), found, sizeof(found));
	tell(hello, "irq_affinity", found);
	tell(hello, "online", slurp(CPUS "/online", text, sizeof(text)));
	fputc('}', hello);
}
