// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first process of a guest: runs the plan in /plan, sends records home, powers off, or starts what comes next.
 * One thread does everything.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

static void mount_at(const char *type, const char *path, const char *options)
{
	mkdir(path, 0755);
	/* A kernel without tracefs or debugfs is fine until a step needs it, and then the step says so. */
	mount(type, path, type, 0, options);
}

/* /dev/disk/by-id/virtio-<serial>, as udev would make it. */
static void link_disks(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/sys/block");
	char path[512], serial[64], device[300];

	mkdir("/dev/disk", 0755);
	mkdir("/dev/disk/by-id", 0755);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/block/%s/serial", entry->d_name);
		if (entry->d_name[0] == '.' || !*slurp(path, serial, sizeof(serial)))
			continue;
		snprintf(path, sizeof(path), "/dev/disk/by-id/virtio-%s", serial);
		snprintf(device, sizeof(device), "/dev/%s", entry->d_name);
		if (symlink(device, path))
			fprintf(stderr, "kperflab-agent: %s: %s\n", path, strerror(errno));
	}
	if (dir)
		closedir(dir);
}

int main(void)
{
	mount_at("devtmpfs", "/dev", "mode=0755");
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("tmpfs", "/tmp", "mode=1777");
	mount_at("tmpfs", "/run", "mode=0755");
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	mount_at("tracefs", "/sys/kernel/tracing", NULL);
	/* The boot is quiet, because printing it through an emulated UART takes time; from here on all counts. */
	write_text("/proc/sys/kernel/printk", "7");
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin:/programs", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LC_ALL", "C", 1);
	if (chdir("/tmp"))
		die("no /tmp: %s", strerror(errno));
	link_disks();
	steps_prepare();
	sink_open();
	send_hello();
	sink_hold();
	int completed = run_plan();

	sink_close();
	if (completed)
		next_boot();
	power_off();
}
