# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, ModuleSource
from kernels.builds.decode_oops import decode_oops
from kernels.tests.pretend import FAKELINUX, PretendKernel

pytestmark = pytest.mark.process


def added_place(line: str, decoded: str) -> tuple[str, int]:
    """The file and line that were added at the end of a line."""
    match = re.fullmatch(r" \(([\w/.-]+):(\d+)\)", decoded.removeprefix(line))
    assert match, decoded
    return match[1], int(match[2])


def lines_of(file: str) -> range:
    """From the first brace to the last."""
    lines = (FAKELINUX / file).read_text().splitlines()
    return range(lines.index("{"), len(lines) + 1)


def test_places_of_an_oops_get_file_and_line(builder: Builder, pretend: PretendKernel) -> None:
    artifact = builder.build(pretend.request())
    oops = [
        "[    1.23] BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "[    1.23] RIP: 0010:find_inode_fast+0x0/0x40",
        "[    1.23]  ? find_get_block+0x1/0x10",
        "[    1.23]  nobody_knows+0x1/0x10",
        "[    1.23]  of_no_module+0x1/0x10 [nothing]",
    ]
    decoded = decode_oops(oops, artifact)
    assert decoded[0] == oops[0]
    file, number = added_place(oops[1], decoded[1])
    assert (file, number in lines_of(file)) == ("fs/inode.c", True)
    file, number = added_place(oops[2], decoded[2])
    assert (file, number in lines_of(file)) == ("fs/buffer.c", True)
    assert decoded[3:] == oops[3:]


def test_several_places_of_one_line_are_all_told(builder: Builder, pretend: PretendKernel) -> None:
    artifact = builder.build(pretend.request())
    line = "RIP: find_get_block+0x0/0x10 after find_inode_fast+0x0/0x40."
    (decoded,) = decode_oops([line], artifact)
    assert decoded.count("(fs/") == 2
    assert decoded.endswith(".")


def test_places_in_a_module_are_told(builder: Builder, pretend: PretendKernel) -> None:
    source = b"int first(void)\n{\n\treturn 1;\n}\n\nint second(int a)\n{\n\treturn a * 5;\n}\n"
    modules = (ModuleSource("bh-lookup", {"bh-lookup.c": source}),)
    artifact = builder.build(replace(pretend.request(), modules=modules))
    line = "RIP: 0010:second+0x0/0x10 [bh_lookup]"
    file, number = added_place(line, decode_oops([line], artifact)[0])
    assert (file, number in (7, 8, 9)) == ("bh-lookup/bh-lookup.c", True)


def test_an_oops_is_shown_undecoded_when_the_kernel_is_gone(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    artifact = builder.build(pretend.request())
    line = "RIP: 0010:find_inode_fast+0x0/0x40"
    assert decode_oops([line], replace(artifact, directory=tmp_path)) == [line]
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF but not really")
    assert decode_oops([line], replace(artifact, directory=tmp_path)) == [line]


def test_a_console_of_nothing_but_places_takes_no_time(builder: Builder, pretend: PretendKernel) -> None:
    artifact = builder.build(pretend.request())
    lines = ["RIP: " + "a" * 100_000, *["x+0x1/0x2 " * 1000] * 50]
    assert decode_oops(lines, artifact) == lines
