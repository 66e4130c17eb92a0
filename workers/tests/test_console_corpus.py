# SPDX-License-Identifier: GPL-2.0-or-later
"""Consoles of real kernels that our guests made fail (bench/crashes), each with its label."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.console import read_sample
from workers.collect.dmesg import scan_console

CORPUS = sorted((Path(__file__).parent / "golden" / "consoles" / "corpus").glob("*.txt"))
# A notice that begins with "INFO: " in front of a stack that somebody else prints: no reader of the words can tell.
AMBIGUOUS = {"checks-clean_notices"}


def test_the_corpus_holds_crashes_and_clean_consoles() -> None:
    titles = [bool(read_sample(path).title) for path in CORPUS]
    assert titles.count(True) >= 50
    assert titles.count(False) >= 20


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_console_of_a_real_kernel_is_read_as_labelled(path: Path) -> None:
    sample = read_sample(path)
    kinds = [finding.kind for finding in scan_console(sample.console)]
    if sample.title:
        assert sample.type in kinds
    elif path.stem.rpartition("-")[0] in AMBIGUOUS:
        assert set(kinds) <= {"warning"}
    else:
        assert kinds == []


@pytest.mark.parametrize(
    "path", [path for path in CORPUS if read_sample(path).function], ids=lambda path: path.stem
)
def test_a_report_of_a_real_kernel_is_about_the_function_that_was_at_fault(path: Path) -> None:
    sample = read_sample(path)
    assert sample.function in {finding.frame for finding in scan_console(sample.console)}


@pytest.mark.parametrize(
    ("name", "title", "frame"),
    [
        ("fail-divide", "divide error: 0000 [#1] PREEMPT SMP", "divide"),
        ("fail-protection", "general protection fault, maybe for address", "protection"),
        (
            "lkdtm-EXCEPTION",
            "BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "lkdtm_EXCEPTION",
        ),
        ("lkdtm-WARNING", "WARNING: CPU: 0 PID: 35 at drivers/misc/lkdtm/bugs.c", "lkdtm_WARNING"),
        ("lkdtm-EXHAUST_STACK", "BUG: TASK stack guard page was hit at", "recursive_loop"),
        ("lkdtm-SOFTLOCKUP", "BUG: soft lockup - CPU#0 stuck for 6s! [busybox:", "lkdtm_SOFTLOCKUP"),
        ("sysrq-c", "Kernel panic - not syncing: sysrq triggered crash", "sysrq_handle_crash"),
        ("fail-triple", "the machine began to boot again without a report", ""),
        ("fail-netdevice", "unregister_netdevice: waiting for held0 to become free. Usage count = 2", ""),
        ("fail-busy-inodes", "VFS: Busy inodes after unmount of ram0 (ext4)", "kill_block_super"),
    ],
)
def test_a_real_report_names_its_cause_and_function(name: str, title: str, frame: str) -> None:
    (path,) = [path for path in CORPUS if path.stem == f"{name}-plain"]
    first = scan_console(read_sample(path).console)[0]
    assert first.title.startswith(title)
    assert (first.frame, first.corrupted) == (frame, False)


@pytest.mark.parametrize(
    ("name", "title", "frame"),
    [
        (
            "checks-kfence_corruption",
            "BUG: KFENCE: memory corruption in way_kfence_corruption",
            "way_kfence_corruption",
        ),
        (
            "checks-kfence_double_free",
            "BUG: KFENCE: invalid free in way_kfence_double_free",
            "way_kfence_double_free",
        ),
        ("checks-slub_remaining", "BUG watched (Tainted: G OE ): Objects remaining on", "way_slub_remaining"),
        ("lkdtm-CORRUPT_LIST_ADD", "list_add corruption. next->prev should be", "lkdtm_CORRUPT_LIST_ADD"),
        (
            "lkdtm-USERCOPY_KERNEL",
            "usercopy: Kernel memory exposure attempt detected",
            "lkdtm_USERCOPY_KERNEL",
        ),
        ("monitor-mce-panic", "[Hardware Error]: CPU 0: Machine Check Exception: 7 Bank 1", ""),
    ],
)
def test_a_report_of_debians_kernel_names_its_cause_and_function(name: str, title: str, frame: str) -> None:
    (path,) = [path for path in CORPUS if path.stem == f"{name}-debian-6.12"]
    first = scan_console(read_sample(path).console)[0]
    assert first.title.startswith(title)
    assert (first.frame, first.corrupted) == (frame, False)
