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
wait=$(busybox sed -n 's/.*wait=\([0-9]*\).*/\1/p' /proc/cmdline)
busybox stty -echo 2>/dev/null
# Where the kernel was not built for this, they are modules.
for module in brd lkdtm; do [ -e "/lib/$module.ko" ] && busybox insmod "/lib/$module.ko"; done
if [ "$crash" = ask ]; then
	echo "guest: ready for a name"
	read -r crash wait
fi
echo 1 >/proc/sys/kernel/sysrq
busybox dmesg -n 8
# NAME@kernel.panic_on_warn=1: a sysctl to set first; other settings have been read from the command line.
case $crash in *@*.*)
	setting=${crash#*@}
	key=$(echo "${setting%%=*}" | busybox tr . /)
	[ -e "/proc/sys/$key" ] && echo "${setting#*=}" >"/proc/sys/$key"
	;;
esac
echo "guest: carrying out $crash"
direct() { busybox sh -c "echo $1 >/sys/kernel/debug/provoke-crash/DIRECT"; }
case ${crash%%@*} in
lkdtm-*) crash=${crash%%@*} && direct "${crash#lkdtm-}" ;;
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
checks-*) crash=${crash%%@*} && busybox insmod /lib/checks.ko "how=${crash#checks-}" ;;
monitor-*) echo "guest: ready for the monitor" && busybox sleep 5 ;;
clean-kunit)
	for suite in $(busybox ls /lib); do
		case $suite in clean-kunit | *kasan* | *kfence* | fail.ko | checks.ko) ;; *_kunit.ko | *-test.ko) busybox insmod "/lib/$suite" ;; esac
	done
	;;
ext4-panic)
	busybox mke2fs -q /dev/ram0 && busybox mount -t ext4 -o errors=panic /dev/ram0 /tmp && echo 1 >/sys/fs/ext4/ram0/trigger_fs_error
	;;
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
busybox sleep "${wait:-1}"
echo "guest: end"
busybox sync
busybox poweroff -f
