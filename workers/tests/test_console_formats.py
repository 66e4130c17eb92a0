# SPDX-License-Identifier: GPL-2.0-or-later
"""Every format string of the kernel's report paths counts as what it is, and the program that extracts them works.

golden/consoles/formats.tsv comes from debian-6.1 and debian-6.12 (python -m bench.console_formats TREE...); a person
has read each line's kind. Formats of other versions stand here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.console_formats import Format, formats_of_file, formats_of_tree, printed, read_table
from workers.collect.dmesg import scan_console

TABLE = read_table((Path(__file__).parent / "golden" / "consoles" / "formats.tsv").read_text())
STAMP = b"[   12.345678][   T31] "


def kind(line: str) -> str:
    findings = scan_console(b"[    1.000000] before\n" + STAMP + line.encode() + b"\n")
    return findings[0].kind if findings else "-"


@pytest.mark.parametrize("path", sorted({entry.path for entry in TABLE}))
def test_each_format_of_a_report_path_counts_as_its_kind(path: str) -> None:
    formats = {entry: expected for entry, expected in TABLE.items() if entry.path == path}
    assert {entry.text: kind(printed(entry)) for entry in formats} == {
        entry.text: expected for entry, expected in formats.items()
    }


def test_no_format_with_the_words_of_a_report_is_harmless_by_accident() -> None:
    words = ("\nBUG: ", " BUG: ", "kernel BUG", "KASAN: ", "Oops", "LOCKUP", "corrupted stack")
    harmless = {
        entry.text
        for entry, kind in TABLE.items()
        if kind == "-" and any(word in "\n" + entry.text for word in words)
    }
    assert harmless == set()


@pytest.mark.parametrize(
    ("path", "call", "text", "expected"),
    [
        # 4.x and 5.x
        ("arch/x86/mm/fault.c", "printk", "BUG: unable to handle kernel %s at %px\n", "oops"),
        (
            "arch/x86/mm/fault.c",
            "printk",
            "BUG: unable to handle kernel NULL pointer dereference at %p\n",
            "oops",
        ),
        ("arch/x86/kernel/traps.c", "printk", "PANIC: double fault, error_code: 0x%lx\n", "panic"),
        ("arch/x86/kernel/traps.c", "printk", "general protection fault: %04lx [#%d] SMP\n", "gpf"),
        (
            "kernel/watchdog.c",
            "pr_emerg",
            "NMI watchdog: BUG: soft lockup - CPU#%d stuck for %us! [%s:%d]\n",
            "lockup",
        ),
        (
            "kernel/locking/lockdep.c",
            "printk",
            "[ INFO: possible circular locking dependency detected ]\n",
            "locking",
        ),
        ("kernel/locking/lockdep.c", "printk", "[ INFO: possible recursive locking detected ]\n", "locking"),
        ("kernel/locking/lockdep.c", "printk", "[ BUG: held lock freed! ]\n", "locking"),
        ("kernel/locking/lockdep.c", "printk", "[ BUG: bad unlock balance detected! ]\n", "locking"),
        (
            "kernel/locking/lockdep.c",
            "printk",
            "[ BUG: lock held when returning to user space! ]\n",
            "locking",
        ),
        ("kernel/locking/lockdep.c", "printk", "[ BUG: %s/%d still has locks held! ]\n", "locking"),
        ("kernel/locking/lockdep.c", "printk", "[ INFO: suspicious RCU usage. ]\n", "locking"),
        (
            "kernel/locking/rtmutex-debug.c",
            "printk",
            "[ BUG: circular locking deadlock detected! ]\n",
            "locking",
        ),
        ("kernel/rcu/tree.c", "pr_err", "INFO: %s self-detected stall on CPU", "rcu-stall"),
        ("kernel/rcu/tree.c", "pr_err", "INFO: %s detected stalls on CPUs/tasks:", "rcu-stall"),
        ("lib/ubsan.c", "pr_err", "UBSAN: Undefined behaviour in %s:%d:%d\n", "memory"),
        ("mm/kasan/report.c", "pr_err", "BUG: KASAN: %s in %pS at addr %p\n", "memory"),
        ("mm/memory.c", "printk", "BUG: Bad page map in process %s  pte:%08llx pmd:%08llx\n", "memory"),
        ("kernel/fork.c", "printk", "BUG: Bad rss-counter state mm:%p idx:%d val:%ld\n", "memory"),
        ("mm/slub.c", "pr_err", "INFO: Allocated in %pS age=%lu cpu=%u pid=%d\n", "memory"),
        ("mm/slub.c", "pr_err", "INFO: 0x%p-0x%p @offset=%tu. First byte 0x%x instead of 0x%x\n", "memory"),
        ("fs/super.c", "printk", "VFS: Busy inodes after unmount of %s. Self-destruct in 5 seconds.\n", "fs"),
        ("net/sched/sch_generic.c", "WARN", "NETDEV WATCHDOG: %s (%s): transmit queue %u timed out\n", "net"),
        ("lib/bug.c", "pr_warn", "WARNING: at %s:%u\n", "warning"),
        ("lib/bug.c", "pr_warn", "WARNING: at %p [verbose debug info unavailable]\n", "warning"),
        ("kernel/panic.c", "pr_warn", "WARNING: CPU: %d PID: %d at %s:%d %pS()\n", "warning"),
        (
            "mm/kmemleak.c",
            "pr_info",
            "kmemleak: %d new suspected memory leaks (see /sys/kernel/debug/kmemleak)\n",
            "leak",
        ),
        ("mm/kmemleak.c", "seq_printf", "unreferenced object 0x%08lx (size %zu):\n", "leak"),
        # 6.13 to 6.19
        ("kernel/panic.c", "pr_warn", "WARNING: fs/%s:%d at %pS, CPU#%d: %s/%d\n", "warning"),
        (
            "kernel/panic.c",
            "pr_warn",
            "WARNING: [a == b && !(c)] fs/%s:%d at %pS, CPU#%d: %s/%d\n",
            "warning",
        ),
        ("kernel/panic.c", "pr_warn", "WARNING: at %pS, CPU#%d: %s/%d\n", "warning"),
        (
            "kernel/hung_task.c",
            "pr_err",
            "INFO: task %s:%d blocked in I/O wait for more than %ld seconds.\n",
            "hung-task",
        ),
        (
            "kernel/hung_task.c",
            "pr_err",
            "INFO: task %s:%d is blocked on a mutex, but the owner is not found.\n",
            "hung-task",
        ),
        (
            "kernel/hung_task.c",
            "pr_err",
            "INFO: task %s:%d <reader> blocked on an rw-semaphore likely owned by x\n",
            "hung-task",
        ),
        ("mm/memory.c", "pr_alert", "BUG: Bad page map in process %s  %s:%08llx", "memory"),
        # Other machines
        ("arch/mips/kernel/traps.c", "printk", "Kernel bug detected[#%d]:\n", "oops"),
        (
            "arch/mips/mm/fault.c",
            "printk",
            "CPU %d Unable to handle kernel paging request at virtual address %0*lx\n",
            "oops",
        ),
        (
            "arch/powerpc/mm/fault.c",
            "pr_alert",
            "BUG: Kernel NULL pointer dereference on %s at 0x%08lx\n",
            "oops",
        ),
        ("arch/powerpc/kernel/traps.c", "printk", "Oops: Kernel access of bad area, sig: 11 [#%d]\n", "oops"),
        ("arch/powerpc/kernel/watchdog.c", "pr_emerg", "CPU %d self-detected hard LOCKUP @ %pS\n", "lockup"),
        (
            "arch/s390/mm/fault.c",
            "pr_alert",
            "Unable to handle kernel pointer dereference in virtual space\n",
            "oops",
        ),
        (
            "arch/s390/kernel/dumpstack.c",
            "printk",
            "illegal operation: 0001 ilc:1 [#%d] PREEMPT SMP\n",
            "oops",
        ),
    ],
)
def test_formats_of_other_versions_and_machines_count(path: str, call: str, text: str, expected: str) -> None:
    assert kind(printed(Format(path, call, text))) == expected


def test_formats_are_extracted_from_a_tree(tmp_path: Path) -> None:
    source = tmp_path / "kernel" / "watchdog.c"
    source.parent.mkdir()
    source.write_text(
        '#define pr_fmt(fmt) "watchdog: " fmt\n'
        '/* pr_emerg("no") */\n'
        'pr_emerg("BUG: soft " "lockup %d\\n", 1);\n'
        'panic(flag ? "one" : "two");\n'
        "pr_err(text);\n"
    )
    assert formats_of_tree(tmp_path) == {
        Format("kernel/watchdog.c", "pr_emerg", "watchdog: BUG: soft lockup %d\n"),
        Format("kernel/watchdog.c", "panic", "one"),
    }


def test_a_format_is_printed_with_values() -> None:
    entry = Format("lib/x.c", "pr_err", "%s:%d at %pS, %08lx %#x 100%% %*pbl %.*s")
    assert printed(entry) == "some_name:1 at do_sync+0x12/0x340, 00000000 0x0 100% 0-1 some_name"


def test_a_call_without_a_string_prints_no_format() -> None:
    assert list(formats_of_file("lib/x.c", "pr_err(text, 1);")) == []
