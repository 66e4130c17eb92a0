# SPDX-License-Identifier: GPL-2.0-or-later
"""The console rules, over consoles that our own guests printed (golden/consoles) and lines in the kernel's forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.collect.console_lines import MAX_LINE
from workers.collect.dmesg import MAX_FINDINGS, scan_console

CONSOLES = Path(__file__).parent / "golden" / "consoles"


def kinds(text: bytes) -> list[str]:
    return [finding.kind for finding in scan_console(text)]


@pytest.mark.parametrize(
    ("name", "kind", "title", "line_no"),
    [
        ("panic", "panic", "Kernel panic - not syncing: sysrq triggered crash", 3),
        ("hung-task", "hung-task", "INFO: task touch:51 blocked for more than 1 seconds.", 8),
        ("oom", "oom", "Out of memory: Killed process 43 (tail)", 67),
    ],
)
def test_what_guests_of_ours_printed_is_found(name: str, kind: str, title: str, line_no: int) -> None:
    first = scan_console((CONSOLES / f"{name}.txt").read_bytes())[0]
    assert (first.kind, first.line_no) == (kind, line_no)
    assert first.title.startswith(title)


def test_a_boot_without_trouble_has_no_findings() -> None:
    assert scan_console((CONSOLES / "clean.txt").read_bytes()) == []


def test_an_excerpt_goes_on_to_the_stacks() -> None:
    (first, *_) = scan_console((CONSOLES / "hung-task.txt").read_bytes())
    assert first.excerpt.startswith("[    4.690388] INFO: task touch:51 blocked")
    assert "percpu_rwsem_wait+0xe5/0x110" in first.excerpt


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"BUG: kernel NULL pointer dereference, address: 0000000000000008", "oops"),
        (b"BUG: unable to handle page fault for address: ffffa0", "oops"),
        (b"Oops: 0002 [#1] PREEMPT SMP", "oops"),
        (b"invalid opcode: 0000 [#1] SMP", "oops"),
        (b"divide error: 0000 [#1] SMP", "oops"),
        (b"general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "gpf"),
        (b"kernel BUG at fs/inode.c:632!", "bug"),
        (b"BUG: KASAN: use-after-free in iput+0x1/0x2", "memory"),
        (b"list_del corruption. prev->next should be ffff, but was dead", "memory"),
        (b"watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [stat-walk:88]", "lockup"),
        (b"NMI watchdog: Watchdog detected hard LOCKUP on cpu 0", "lockup"),
        (b"rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu-stall"),
        (b"rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 1-... }", "rcu-stall"),
        (b"BUG: scheduling while atomic: swapper/0/0/0x00000100", "locking"),
        (b"WARNING: possible circular locking dependency detected", "locking"),
        (b"WARNING: CPU: 0 PID: 12 at fs/inode.c:10 iput+0x1/0x2", "warning"),
        (b"WARNING: fs/inode.c:10 at iput+0x1/0x2, CPU#0: stat-walk/12", "warning"),
        (b"unreferenced object 0xffff8880 (size 32):", "leak"),
    ],
)
@pytest.mark.parametrize("stamp", [b"", b"[   12.345678] ", b"<4>[   12.345678][   T31] "])
def test_each_kind_is_known_by_its_line(line: bytes, kind: str, stamp: bytes) -> None:
    assert kinds(b"[    1.0] before\n" + stamp + line + b"\n[   13.0] after\n") == [kind]


@pytest.mark.parametrize(
    "line",
    [
        b"WARNING: the mand mount option is being deprecated and will be removed",
        b"WARNING: /etc/file does not exist",
        b"DEBUG: BUGS are none",
        b"INFO: lockdep is turned off.",
        b"INFO: NMI handler (perf_event_nmi_handler) took too long to run: 2.277 msecs",
        b"Command line: console=ttyS0 oops=panic panic=-1 hung_task_panic=1",
        b"rcu: Hierarchical RCU implementation.",
        b"kfence: initialized - using 2097152 bytes for 255 objects",
        b"bug: x",
    ],
)
def test_what_only_sounds_bad_is_left_alone(line: bytes) -> None:
    assert kinds(line + b"\n") == []


def test_lines_are_numbered_and_come_in_order() -> None:
    text = b"a\nkernel BUG at x.c:1!\nb\nOops: 0000 [#1]\nKernel panic - not syncing: Fatal exception"
    assert [(finding.line_no, finding.kind) for finding in scan_console(text)] == [
        (2, "bug"),
        (4, "oops"),
        (5, "panic"),
    ]


@pytest.mark.parametrize(
    "piece",
    [
        b"x",
        b"BUG: ",
        b"INFO: task ",
        b"WARNING: possible ",
        b"INFO: rcu_",
        b"UBSAN: a-a-a-a-",
        b"Kernel panic - not syncing",
        b"BUG at \n",
        b"\n",
    ],
)
@pytest.mark.parametrize("size", [1 << 20, pytest.param(10 << 20, marks=pytest.mark.thorough)])
def test_no_console_takes_work_in_proportion_to_its_square(piece: bytes, size: int) -> None:
    """It would take hours, and is ended as a test that hangs."""
    assert len(scan_console(piece * (size // len(piece)))) <= MAX_FINDINGS


def test_nothing_far_into_a_line_is_a_finding() -> None:
    assert kinds(b"x" * (MAX_LINE + 1) + b" Kernel panic - not syncing") == []
