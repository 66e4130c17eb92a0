# SPDX-License-Identifier: GPL-2.0-or-later
"""The exact profile: the plugin's arguments for a kernel, and the reading of the files it writes."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
from pathlib import Path

import pytest

from kernels.tests.synced import inodes_synced
from workers.collect.kernelsymbols import KernelSymbols
from workers.errors import ProfileUnreadable
from workers.microscope.calltree import CallTree, ProgramSymbols, read_call_tree
from workers.microscope.functions import function_lines
from workers.microscope.plugin import NATIVE, compile_plugin
from workloads.errors import ProgramDiskFull

SYSTEM_MAP = """\
ffffffff81000000 T _stext
ffffffff81001000 T __switch_to_asm
ffffffff81001100 T ret_from_fork
ffffffff81002000 T down_read
ffffffff81002040 t down_read.cold
ffffffff81002080 t kernfs_fop_open
ffffffff81600080 T entry_SYSCALL_64
ffffffff816000a0 T entry_SYSCALL_64_after_hwframe
ffffffff81600290 T irq_entries_start
ffffffff81600990 T asm_exc_page_fault
ffffffff816009c0 T asm_sysvec_apic_timer_interrupt
ffffffff81600a00 T error_entry
ffffffff82000000 D jiffies
ffffffff82800000 B _end
"""
PROGRAM_MAP = """\
0000000000401600 T main
0000000000401680 t walk
00000000004c0000 D table
"""
ROOTS = 4


def kernel(tmp_path: Path, text: str = SYSTEM_MAP) -> KernelSymbols:
    (tmp_path / "System.map").write_text(text)
    return KernelSymbols(tmp_path / "System.map", b"ffffffffc0201000 t rxe_open\t[rdma_rxe]\n")


def rows_of(*rows: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """Rows of (function, parent, instructions, calls) below the four roots."""
    return [(number, 0, 0, 0) for number in range(ROOTS)] + list(rows)


def report(rows: list[tuple[int, int, int, int]], **changed: object) -> bytes:
    fields: dict[str, object] = {
        "magic": b"KPMT", "version": 1, "windows": 2, "whole": 1,
        "instructions": sum(row[2] for row in rows), "nodes": len(rows),
    } | changed  # fmt: skip
    return struct.pack("<4sIIIQQ", *fields.values()) + b"".join(struct.pack("<4Q", *row) for row in rows)


def read(tmp_path: Path, data: bytes) -> CallTree:
    return read_call_tree(data, kernel(tmp_path), ProgramSymbols(PROGRAM_MAP))


def table(text: str = SYSTEM_MAP, program: str = "") -> dict[int, tuple[str, int]]:
    lines = [line.split() for line in function_lines(text, program).splitlines()]
    return {int(address, 16): (kind, int(start, 16)) for address, kind, start in lines}


def test_a_part_moved_out_of_the_way_belongs_to_its_function() -> None:
    assert table()[0xFFFFFFFF81002040] == ("f", 0xFFFFFFFF81002000)


def test_labels_within_the_system_call_entry_belong_to_it() -> None:
    assert table()[0xFFFFFFFF816000A0] == ("f", 0xFFFFFFFF81600080)
    assert table()[0xFFFFFFFF81600080] == ("s", 0xFFFFFFFF81600080)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (0xFFFFFFFF81001000, "c"), (0xFFFFFFFF81001100, "t"), (0xFFFFFFFF81600990, "x"),
        (0xFFFFFFFF816009C0, "i"), (0xFFFFFFFF81600A00, "r"), (0xFFFFFFFF81002080, "f"),
    ],
)  # fmt: skip
def test_what_is_entered_without_a_call_has_its_kind(address: int, kind: str) -> None:
    assert table()[address] == (kind, address)


def test_each_interrupt_vector_has_its_stub() -> None:
    stubs = [
        address for address, (kind, start) in table().items() if kind == "i" and start == 0xFFFFFFFF81600290
    ]
    assert stubs == list(range(0xFFFFFFFF81600290, 0xFFFFFFFF81600990, 8))


def test_functions_of_the_program_come_first() -> None:
    addresses = list(table(program=PROGRAM_MAP))
    assert addresses == sorted(addresses)
    assert addresses[:2] == [0x401600, 0x401680]


def test_data_is_no_function() -> None:
    assert 0xFFFFFFFF82000000 not in table(program=PROGRAM_MAP)
    assert 0x4C0000 not in table(program=PROGRAM_MAP)


def test_a_kernel_without_a_system_call_entry_is_refused() -> None:
    with pytest.raises(ProfileUnreadable, match="does not name entry_SYSCALL_64"):
        function_lines("ffffffff81002000 T down_read\n")


def test_chains_of_calls_have_their_instructions_and_calls(tmp_path: Path) -> None:
    rows = rows_of(
        (0x401680, 1, 30, 0),
        (0xFFFFFFFF81600080, 4, 20, 2),
        (0xFFFFFFFF81002000, 5, 100, 2),
        (0xFFFFFFFF816009C0, 3, 7, 1),
        (0xFFFFFFFFC0201000, 5, 5, 1),
        (0x7FFFF7FFE770, 4, 3, 1),
    )
    tree = read(tmp_path, report(rows))
    assert tree.windows == 2
    assert dict(tree.stacks(tree.instructions)) == {
        ("walk",): 30,
        ("walk", "entry_SYSCALL_64"): 20,
        ("walk", "entry_SYSCALL_64", "down_read"): 100,
        ("[interrupts]", "asm_sysvec_apic_timer_interrupt"): 7,
        ("walk", "entry_SYSCALL_64", "rxe_open [rdma_rxe]"): 5,
        ("walk", "[vdso]"): 3,
    }
    assert dict(tree.stacks(tree.calls))["walk", "entry_SYSCALL_64", "down_read"] == 2


WALK = rows_of((0x401680, 1, 30, 1))


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (report(WALK)[:-1], "cut short"),
        (report(WALK) + b"\0", "cut short"),
        (report(WALK, nodes=1 << 40), "cut short"),
        (report(WALK[:3]), "cut short"),
        (report(WALK, magic=b"KPT1"), "not written by this version"),
        (report(WALK, version=2), "not written by this version"),
        (report(WALK, whole=0), "not whole"),
        (report(WALK, instructions=31), "do not add up"),
        (report(rows_of((0x401680, 1, 1 << 60, 1))), "larger than any boot's"),
        (report(rows_of((0x401680, 4, 30, 1))), "before its caller"),
        (report(rows_of((0x401680, 1 << 63, 30, 1))), "before its caller"),
        (report([(0, 1, 0, 0), *WALK[1:]]), "before its caller"),
        (report(rows_of(*((0x401680, 3 + at, 1, 1) for at in range(4000)))), "nest deeper than 2048"),
    ],
    ids=itertools.count(),
)
def test_a_file_that_no_plugin_wrote_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(ProfileUnreadable, match=reason):
        read(tmp_path, data)


@pytest.mark.process
def test_the_plugins_parts_do_what_they_say(tmp_path: Path) -> None:
    sources = [path for path in NATIVE.glob("*.c") if path.name not in ("plugin.c", "report.c")]
    program = tmp_path / "native"
    own = Path(__file__).parent / "microscope_native.c"
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-fsanitize=address,undefined"]
    subprocess.run([*command, "-I", NATIVE, "-o", program, own, *sources], check=True)
    (tmp_path / "functions").write_text(function_lines(SYSTEM_MAP, PROGRAM_MAP))
    ended = subprocess.run([program, tmp_path / "functions"], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("all passed\n", "")


@pytest.mark.process
def test_a_table_with_a_line_that_is_none_is_refused_by_the_plugin(tmp_path: Path) -> None:
    plugin = compile_plugin(tmp_path)
    (tmp_path / "functions").write_text("ffffffff81002000 f\nffffffff81001000 f\n")
    argument = f"{plugin},functions={tmp_path / 'functions'},out={tmp_path / 'calls'}"
    ended = subprocess.run(
        ["qemu-system-x86_64", "-M", "none", "-display", "none", "-plugin", argument],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode != 0
    assert "no function: ffffffff81001000 f" in ended.stderr


def test_many_functions_are_read(tmp_path: Path) -> None:
    rows = rows_of(*((0x401680, 1, 1, 1) for _ in range((1 << 16) - ROOTS)))
    tree = read(tmp_path, report(rows))
    assert int(tree.instructions.sum()) == (1 << 16) - ROOTS


@pytest.mark.process
def test_a_disk_without_room_for_the_plugin_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the first exact boots of a new release would be lost for good."""
    compiler = tmp_path / "gcc"
    said = "fatal error: error writing to plugin.s: No space left on device"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = -v ] && exit\necho "{said}" >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ProgramDiskFull, match="QEMU's plugin") as caught:
        compile_plugin(tmp_path / "kept")
    assert caught.value.retry


@pytest.mark.process
def test_a_compiled_plugin_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since it is compiled once, one that a power cut left empty would end every later boot that needs it."""
    synced = inodes_synced(monkeypatch)
    assert compile_plugin(tmp_path).stat().st_ino in synced
