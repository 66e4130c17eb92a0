# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions get the file and line where their code begins, from line tables that gcc wrote."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact
from kernels.artifacts.tests.test_store import METADATA
from kernels.builds.builder import Builder, ModuleSource
from kernels.builds.function_lines import function_lines
from kernels.tests.pretend import FAKELINUX, PretendKernel

pytestmark = pytest.mark.process

WALK = """\
static inline __attribute__((always_inline)) int inner(int *p)
{
\treturn *p + 1;
}

int link_walk(int *p)
{
\treturn inner(p);
}

static __attribute__((noinline)) int twice(int a)
{
\treturn a * 3;
}

int first(int a) { return twice(a); }
"""
OPEN = """\
static __attribute__((noinline)) int twice(int a)
{
\treturn a * 5;
}

int start(int a) { return twice(a); }
"""


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    """A small ELF file of two sources in the folder of the kernel's, as a build has it."""
    source = tmp_path / "build" / "linux" / "fs"
    source.mkdir(parents=True)
    (source / "walk.c").write_text(WALK)
    (source / "open.c").write_text(OPEN)
    flags = ["-g1", "-O2", "-ffreestanding", "-nostdlib", "-static", "-e", "start"]
    flags.append(f"-ffile-prefix-map={tmp_path}/build=/build")
    command = ["gcc", *flags, "-o", f"{tmp_path}/vmlinux", f"{source}/walk.c", f"{source}/open.c"]
    subprocess.run(command, check=True, timeout=60)
    return Artifact("ab" * 32, tmp_path, METADATA)


def test_a_function_is_where_its_code_begins_and_not_what_is_inlined_there(artifact: Artifact) -> None:
    places = function_lines(
        ["link_walk", "first", "nobody", "[unknown]", "a b", "start [no_module]"], artifact
    )
    file, _, line = places.pop("link_walk").partition(":")
    # gcc may count from the name or from the brace.
    assert (file, int(line) in (6, 7, 8)) == ("fs/walk.c", True)
    assert places == {"first": "fs/walk.c:16"}


def test_functions_of_one_name_in_two_files_are_left_out(artifact: Artifact) -> None:
    assert function_lines(["twice", "start"], artifact) == {"start": "fs/open.c:6"}


@pytest.mark.parametrize("spoilt", [["--strip-debug"], ["--strip-all"]])
def test_a_kernel_without_line_tables_or_symbols_tells_nothing(artifact: Artifact, spoilt: list[str]) -> None:
    subprocess.run(["objcopy", *spoilt, artifact.vmlinux], check=True, timeout=60)
    assert function_lines(["first", "start"], artifact) == {}


@pytest.mark.parametrize("text", [b"", b"\x7fELF but not really"])
def test_a_file_that_is_no_kernel_tells_nothing(artifact: Artifact, text: bytes) -> None:
    artifact.vmlinux.write_bytes(text)
    assert function_lines(["first"], artifact) == {}
    artifact.vmlinux.unlink()
    assert function_lines(["first"], artifact) == {}


@pytest.mark.hostile
def test_a_path_that_is_no_path_of_a_source_is_left_out(artifact: Artifact, tmp_path: Path) -> None:
    source = tmp_path / "<img src=x onerror=alert(1)>.c"
    source.write_text("int start(int a) { return a; }\n")
    prefix = f"-ffile-prefix-map={tmp_path}=/build/linux"
    command = [
        "gcc",
        "-g1",
        prefix,
        "-nostdlib",
        "-static",
        "-e",
        "start",
        "-o",
        f"{artifact.vmlinux}",
        f"{source}",
    ]
    subprocess.run(command, check=True, timeout=60)
    assert function_lines(["start"], artifact) == {}


def test_a_builds_kernel_and_its_modules_have_the_lines_of_their_functions(
    builder: Builder, pretend: PretendKernel
) -> None:
    source = b"int first(void)\n{\n\treturn 1;\n}\n\nint second(int a)\n{\n\treturn a * 5;\n}\n"
    modules = (ModuleSource("bh-lookup", {"bh-lookup.c": source}),)
    artifact = builder.build(replace(pretend.request(), modules=modules))
    places = function_lines(["find_inode_fast", "second [bh_lookup]", "second"], artifact)
    lines = (FAKELINUX / "fs" / "inode.c").read_text().splitlines()
    file, _, line = places["find_inode_fast"].partition(":")
    begins = next(number for number, text in enumerate(lines, 1) if "*find_inode_fast(" in text)
    # A loop's first instruction may be the function's.
    assert (file, begins <= int(line) <= begins + 5) == ("fs/inode.c", True)
    assert places.keys() == {"find_inode_fast", "second [bh_lookup]"}
    assert places["second [bh_lookup]"] in {f"bh-lookup/bh-lookup.c:{line}" for line in (6, 7, 8)}
