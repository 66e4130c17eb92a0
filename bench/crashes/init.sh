#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of a guest that is to fail: carries out crash=NAME of the command line, waits for the report, powers off.
export PATH=/bin
busybox mount -t devtmpfs devtmpfs /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t debugfs debugfs /sys/kernel/debug
busybox mount -t tmpfs tmpfs /tmp
crash=$(busybox sed -n 's/.*crash=\([^ ]*\).*/\1/p' /proc/cmdline)
echo 1 >/proc/sys/kernel/sysrq
echo "guest: carrying out $crash"
direct() { busybox sh -c "echo $1 >/sys/kernel/debug/provoke-crash/DIRECT"; }
case $crash in
lkdtm-*) direct "${crash#lkdtm-}" ;;
sysrq-*) echo "${crash#sysrq-}" >/proc/sysrq-trigger ;;
module-*) # module-NAME,parameter=value,...
	spec=${crash#module-}
	busybox insmod "/lib/${spec%%,*}.ko" $(echo "${spec#"${spec%%,*}"}" | busybox tr , ' ')
	;;
fail-busy-inodes)
	busybox mkdir /tmp/m
	busybox mke2fs -q /dev/ram0
	busybox mount -t ext4 /dev/ram0 /tmp/m
	busybox touch /tmp/m/held
	busybox ln -s /tmp/m/held /tmp/held
	busybox insmod /lib/fail.ko how=busy-inodes
	busybox umount /tmp/m
	;;
fail-*) busybox insmod /lib/fail.ko "how=${crash#fail-}" ;;
oom) busybox tail /dev/zero ;;
ext4-error)
	busybox mke2fs -q /dev/ram0 && busybox mount -t ext4 /dev/ram0 /tmp && echo 1 >/sys/fs/ext4/ram0/trigger_fs_error
	;;
kmemleak)
	busybox insmod /lib/kmemleak-test.ko
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox cat /sys/kernel/debug/kmemleak
	;;
kill-init) exit 3 ;;
reset) echo "guest: ready for a reset" && busybox sleep 60 ;;
clean-reboot) busybox reboot -f ;;
clean-segfault) busybox sh -c 'kill -SEGV $$' ;;
clean-dmesg) busybox dmesg ;;
clean-words)
	echo "BUG: this is a test name, nothing more"
	echo "ok 1 - WARNING: possible circular texts"
	echo "# Kernel panic - not syncing is what this test greps for: 'Kernel panic - not syncing: x'"
	echo "systemd[1]: INFO: task user:12 blocked for more than 120 seconds."
	echo "error: general protection of fault lines; Oops, did I say [#1]"
	;;
clean-*) busybox ls /sys/class >/dev/null ;;
esac
wait=$(busybox sed -n 's/.*wait=\([0-9]*\).*/\1/p' /proc/cmdline)
busybox sleep "${wait:-1}"
echo "guest: end"
busybox sync
busybox poweroff -f
