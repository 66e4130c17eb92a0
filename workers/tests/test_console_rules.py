# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports that the rules once missed or misnamed, and lines that only look like reports."""

from __future__ import annotations

from itertools import product

import pytest

from workers.collect.console_rules import FORMS, PAIRS
from workers.collect.dmesg import FATAL, Finding, scan_console

STAMPS = [
    b"",
    b"[   12.345678] ",
    b"[   12.345678][  T31] ",
    b"[   12.345678] [T31] ",
    b"<4>[   12.345678][   C1] ",
    b"<4>[   12.345678] ",
    b"Nov 22 17:00:01 guest kernel: [   12.345678] ",
    b"2026-11-22T17:00:01.123456+00:00 guest kernel: ",
    b"Nov 22 17:00:01 guest kernel: ",
    b"\x1b[0m\x1b[33m[   12.345678] ",
    b"guest login: [   12.345678][  T31] ",
    b"[12.345678] ",
    b"[   12.345678] (1)[31:stat-walk]",
]
BEFORE = b"[    1.000000] before\n"


def findings(text: bytes) -> list[Finding]:
    return scan_console(text)


def kinds(text: bytes) -> list[str]:
    return [finding.kind for finding in scan_console(text)]


@pytest.mark.parametrize(
    ("line", "kind", "title"),
    [
        (
            b"WARNING: [inode->i_nlink == 0] fs/inode.c:417 at drop_nlink+0x2a/0x40, CPU#1: rm/77",
            "warning",
            "WARNING: [inode->i_nlink == 0] fs/inode.c:417 at drop_nlink+0x2a/0x40, CPU#1: rm/77",
        ),
        (b"WARNING: at __kmalloc+0x1/0x2, CPU#1: rm/77", "warning", "WARNING: at __kmalloc+0x1/0x2"),
        (
            b"WARNING: CPU: 3 PID: 7 at drop_nlink+0x2a/0x40",
            "warning",
            "WARNING: CPU: 3 PID: 7 at drop_nlink",
        ),
        (
            b"usb 1-1: WARNING: CPU: 0 PID: 5 at drivers/usb/core/urb.c:503 usb_submit_urb+0x1/0x2",
            "warning",
            "WARNING: CPU: 0 PID: 5 at drivers/usb/core/urb.c:503 usb_submit_urb+0x1/0x2",
        ),
        (b"divide error: 0000 [#1] PREEMPT SMP", "oops", "divide error: 0000 [#1] PREEMPT SMP"),
        (b"stack segment: 0000 [#1] SMP KASAN", "oops", "stack segment: 0000 [#1] SMP KASAN"),
        (b"Oops: divide error: 0000 [#1] PREEMPT SMP", "oops", "Oops: divide error: 0000 [#1]"),
        (b"int3: 0000 [#1] SMP", "oops", "int3: 0000 [#1] SMP"),
        (b"segment not present: 0018 [#2] SMP", "oops", "segment not present: 0018 [#2] SMP"),
        (b"alignment check: 0000 [#1]", "oops", "alignment check: 0000 [#1]"),
        (
            b"Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1]",
            "gpf",
            "Oops: gen",
        ),
        (
            b"Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP",
            "oops",
            "Internal error: Oops: 0000000096",
        ),
        (
            b"Internal error: Oops - undefined instruction: 0 [#1] SMP ARM",
            "oops",
            "Internal error: Oops - undef",
        ),
        (b"Oops [#1]", "oops", "Oops [#1]"),
        (b"Kernel BUG [#1]", "oops", "Kernel BUG [#1]"),
        (
            b"Unable to handle kernel paging request at virtual address dead4ead",
            "oops",
            "Unable to handle kernel",
        ),
        (b"BUG: memory leak", "leak", "BUG: memory leak"),
        (
            b"kmemleak: 4 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "leak",
            "kmemleak: 4 new suspected memory leaks",
        ),
        (b"INFO: trying to register non-static key.", "locking", "INFO: trying to register non-static key."),
        (
            b"INFO: rcu_tasks detected stalls on tasks:",
            "rcu-stall",
            "INFO: rcu_tasks detected stalls on tasks:",
        ),
        (b"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "rcu-stall", "INFO: rcu_preempt detected"),
        (
            b"INFO: task syncer:88 blocked for more than 4 seconds.",
            "hung-task",
            "INFO: task syncer:88 blocked",
        ),
        (b"INFO: task a b:c:88 blocked for more than 4 seconds.", "hung-task", "INFO: task a b:c:88 blocked"),
        (
            b"INFO: task zsh:470 is blocked on a mutex likely owned by task zsh:471.",
            "hung-task",
            "INFO: task zsh",
        ),
        (
            b"BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0 stuck for 30s!",
            "lockup",
            "BUG: workq",
        ),
        (
            b"BUG: workqueue leaked lock or atomic: kworker/0:1/0x00000001/12",
            "locking",
            "BUG: workqueue leaked",
        ),
        (b"watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [cat:9]", "lockup", "BUG: soft lockup - CPU#0"),
        (
            b"watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 1",
            "lockup",
            "watchdog: CPU0: Watchdog detected",
        ),
        (b"VFS: Busy inodes after unmount of loop0 (ext4)", "fs", "VFS: Busy inodes after unmount of loop0"),
        (
            b"VFS: Busy inodes after unmount of sda. Self-destruct in 5 seconds.  Have a nice day...",
            "fs",
            "VFS: Busy inodes after unmount of sda.",
        ),
        (
            b"unregister_netdevice: waiting for lo to become free. Usage count = 3",
            "net",
            "unregister_netdevice: waiting for lo to become free. Usage count = 3",
        ),
        (
            b"NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out",
            "net",
            "NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out",
        ),
        (
            b"e1000 0000:00:02.0 eth0: NETDEV WATCHDOG: CPU: 1: transmit queue 0 timed out 5022 ms",
            "net",
            "e1000 0000:00:02.0 eth0: NETDEV WATCHDOG: CPU: 1: transmit queue 0 timed out 5022 ms",
        ),
        (
            b"EXT4-fs error (device loop0): ext4_lookup:1855: inode #2: comm ls: bad",
            "fs",
            "EXT4-fs error (device",
        ),
        (
            b"XFS (loop0): Corruption of in-memory data (0x8) detected at xfs_x+0x1",
            "fs",
            "XFS (loop0): Corruption",
        ),
        (
            b"XFS (loop0): Metadata corruption detected at xfs_agf_verify+0x1/0x2",
            "fs",
            "XFS (loop0): Metadata",
        ),
        (
            b"BUG kmalloc-64 (Not tainted): Redzone overwritten",
            "memory",
            "BUG kmalloc-64 (Not tainted): Redzone",
        ),
        (b"BUG task_struct (Tainted: G B): Poison overwritten", "memory", "BUG task_struct (Tainted: G B)"),
        (b"UBSAN: shift-out-of-bounds in lib/x.c:7:9", "memory", "UBSAN: shift-out-of-bounds in lib/x.c:7:9"),
        (b"UBSAN: Undefined behaviour in lib/x.c:7:9", "memory", "UBSAN: Undefined behaviour in lib/x.c:7:9"),
        (b"BUG: KCSAN: data-race in a+0x1/0x2 / b+0x3/0x4", "memory", "BUG: KCSAN: data-race in a+0x1"),
        (b"[ BUG: Invalid wait context ]", "locking", "BUG: Invalid wait context"),
        (b"[ INFO: suspicious RCU usage. ]", "locking", "INFO: suspicious RCU usage."),
        (b"[ BUG: bash/77 still has locks held! ]", "locking", "BUG: bash/77 still has locks held!"),
        (b"WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected", "locking", "WARNING: SOFTIRQ-safe"),
        (b'irq 16: nobody cared (try booting with the "irqpoll" option)', "hardware", "irq 16: nobody cared"),
        (
            b"Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000b00",
            "panic",
            "Kernel panic - not",
        ),
        (b"PANIC: double fault, error_code: 0x0", "panic", "PANIC: double fault, error_code: 0x0"),
        (b"kernel BUG at fs/inode.c:632!", "bug", "BUG at fs/inode.c:632!"),
        (b"swap_info_get: Bad swap file entry 3fffffffffff", "memory", "swap_info_get: Bad swap file entry"),
    ],
)
def test_a_report_is_named_behind_any_stamp(line: bytes, kind: str, title: str) -> None:
    for stamp, end in product(STAMPS, [b"\n", b"\r\n", b"\r\r\n"]):
        text = BEFORE + stamp + line + end + b"[   13.000000] after" + end
        seen = [(finding.kind, finding.line_no, finding.title[: len(title)]) for finding in findings(text)]
        assert seen == [(kind, 2, title)], (stamp, end)


@pytest.mark.parametrize(
    "text",
    [
        b"[    1.000000][  T31] INFO: task evil\n[    1.000000][  T31] name:31 blocked for more than 4 seconds.\n",
        b"INFO: task evil\nname:31 blocked for more than 4 seconds.\n",
        b"[    1.000000] INFO: task \r\n[    1.000000] :31 blocked for more than 4 seconds.\r\n",
    ],
)
def test_a_task_whose_name_breaks_the_line_hangs_all_the_same(text: bytes) -> None:
    assert kinds(BEFORE + text) == ["hung-task"]


def test_a_report_that_a_terminal_wrapped_is_read_whole() -> None:
    line = (
        b"[  123.456789][ T1234] WARNING: CPU: 10 PID: 1234 at drivers/gpu/drm/amd/amdgpu/amd"
        b"\r\ngpu_object.c:1234 amdgpu_bo_unref+0x12/0x34\r\n"
    )
    (finding,) = findings(BEFORE + line)
    assert finding.kind == "warning"


@pytest.mark.parametrize(
    "line",
    [
        b"WARNING: the mand mount option has been deprecated and",
        b"WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible via Spectre v2 BHB attacks!",
        b"mlx4_en: WARNING: illegal module parameter pfctx 0x1 - should be in range 0-0x7",
        b"OF: overlay: WARNING: memory leak will occur if overlay removed, property: /x",
        b"WARNING: /etc/ssh/moduli does not exist, using fixed modulus",
        b"WARNING: workqueue cpumask: online intersect > possible intersect",
        b"INFO: lockdep is turned off.",
        b"INFO: NMI handler (nmi_cpu_backtrace_handler) took too long to run: 1.234 msecs",
        b"rcu: INFO: Stall ended before state dump start",
        b"systemd[1]: BUG: unable to handle page fault for address: 0",
        b"Nov 22 17:00:01 guest systemd[1]: Kernel panic - not syncing: just a name",
        b"sshd[77]: error: INFO: task x:1 blocked for more than 4 seconds.",
        b'Command line: quiet note="BUG: kernel NULL pointer dereference, address: 0"',
        b"echo 'Kernel panic - not syncing: test'",
        b"# grep 'WARNING: CPU: 1 PID: 2 at x.c:1 f' console.txt",
        b"ok 3 - BUG handling of WARNING and INFO: texts",
        b"not ok 4 kernel BUG at handling",
        b"    KTAP version 1",
        b"DEBUG: BUGS are none",
        b'audit: type=1400 comm="BUG: x" op="Oops: 0000 [#1]"',
        b"bash: [#1]: command not found",
        b"list corruption tests: 12 passed",
        b"random: crng init done (trusting CPU's manufacturer)",
        b"kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
        b"EXT4-fs (loop0): mounted filesystem with ordered data mode. Quota mode: none.",
        b"clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable",
        b"mce: [Hardware Error]: Machine check events logged",
        b"rcu-torture: rtc: 00000000 ver: 12 tfle: 0 rta: 12 rtaf: 0 rtf: 2 rtmbe: 0 rtbf: 0",
        b"lkdtm: Performing direct entry BUG",
        b"sysrq: Show Blocked State",
        b"Buffer I/O error on dev loop0, logical block 0, async page read",
        b"ODEBUG: Out of memory. ODEBUG disabled",
        b"xfs: Unknown parameter '    Booting the kernel.   Linux version 6.1'",
        b"hung_task_panic=1 is set; INFO: x",
    ],
)
@pytest.mark.parametrize("stamp", [b"", b"[   12.345678][  T31] "])
def test_what_only_looks_like_a_report_is_none(stamp: bytes, line: bytes) -> None:
    assert findings(BEFORE + stamp + line + b"\n[   13.000000] after\n") == []


@pytest.mark.parametrize(
    "kind", ["leak", "warning", "hung-task", "rcu-stall", "locking", "net", "fs", "reboot", "more"]
)
def test_only_what_ends_a_kernel_is_fatal(kind: str) -> None:
    assert kind not in FATAL


BOOT = b"[    0.000000] Linux version 6.1.0 (lab@lab) (gcc) #1 SMP\n[    0.000000] Command line: quiet\n"
RUN = b"[    0.2000%d0] smp: Brought up 1 node\n[    0.5000%d0] ACPI: bus\n[    1.0000%d0] Run /init as init process\n"


def boot(number: int) -> bytes:
    return BOOT + RUN.replace(b"%d", b"%d" % number)


@pytest.mark.parametrize(
    "firmware", [b"", b"SeaBIOS (version 1.16.2)\r\n\r\n", b"early console in setup code\r\n"]
)
def test_a_console_that_begins_again_without_a_report_is_a_reboot(firmware: bytes) -> None:
    assert kinds(firmware + boot(1) + firmware + boot(2)) == ["reboot"]


@pytest.mark.parametrize(
    "sign", [b"SeaBIOS (version 1.16.2)\n", b"early console in setup code\n", b"U-Boot SPL 2024.01 (x)\n"]
)
def test_firmware_alone_shows_a_reboot(sign: bytes) -> None:
    (finding,) = findings(boot(1) + sign)
    assert (finding.kind, finding.line_no) == ("reboot", 6)


@pytest.mark.parametrize(
    "why",
    [
        b"[    9.000000] reboot: Restarting system\n",
        b"[    9.000000] kexec_core: Starting new kernel\n",
        b"[    9.000000] sysrq: Resetting\n",
    ],
)
def test_a_restart_that_announces_itself_is_no_finding(why: bytes) -> None:
    assert findings(boot(1) + why + boot(2)) == []


def test_a_restart_after_a_panic_is_the_panics() -> None:
    panic = b"[    9.000000] Kernel panic - not syncing: sysrq triggered crash\n"
    assert kinds(boot(1) + panic + boot(2)) == ["panic"]


def test_a_log_that_a_program_prints_again_is_no_reboot() -> None:
    assert findings(boot(1) + boot(1) + b"[    2.000000] later\n") == []


def test_firmware_and_its_kernel_are_one_boot() -> None:
    text = b"iPXE initialising devices...\nSeaBIOS (version 1)\nearly console in extract_kernel\n" + boot(1)
    assert findings(text) == []


def test_every_literal_has_its_pair() -> None:
    assert FORMS.keys() == PAIRS.keys()
    assert all(pair in literal for literal, pair in PAIRS.items())


OOPS = b"""\
[    4.2][   T77] divide error: 0000 [#1] PREEMPT SMP
[    4.2][   T77] CPU: 0 PID: 77 Comm: tc Not tainted 6.1.0 #1
[    4.2][   T77] RIP: 0010:tabledist+0x88/0x120
[    4.2][   T77] Call Trace:
[    4.2][   T77]  <TASK>
[    4.2][   T77]  netem_enqueue+0x1/0x2
"""


def test_an_oops_names_cause_and_function() -> None:
    (finding,) = findings(BEFORE + OOPS.replace(b"4.2", b"   4.200000"))
    assert finding.title == "divide error: 0000 [#1] PREEMPT SMP in tabledist"
    assert (finding.frame, finding.corrupted) == ("tabledist", False)


def test_a_report_that_ends_too_early_is_marked() -> None:
    (finding,) = findings(BEFORE + OOPS.replace(b"4.2", b"   4.200000").split(b"\n")[0] + b"\n")
    assert finding.corrupted
