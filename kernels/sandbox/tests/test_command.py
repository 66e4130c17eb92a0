# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernels.builds.builder import Builder
from kernels.builds.toolchain import detect_toolchain
from kernels.errors import HostUnfit, SandboxFailed
from kernels.sandbox.command import NICE, Layer, Limits, SandboxPlace, run
from kernels.tests.pretend import FAKELINUX, PretendKernel

pytestmark = pytest.mark.process

ENVIRONMENT = {"PATH": "/usr/bin"}


def place(folder: Path) -> SandboxPlace:
    for name in ("source", "objects", "out", "work"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    return SandboxPlace(Layer(folder / "source"), Layer(folder / "objects"), folder / "out", folder / "work")


def test_the_status_of_a_command_is_told(tmp_path: Path) -> None:
    assert run(["sh", "-c", "exit 7"], place(tmp_path), ENVIRONMENT, Limits()).status == 7


def test_a_build_lets_others_go_first(tmp_path: Path) -> None:
    lines: list[str] = []
    script = "nice; cat /proc/self/autogroup"
    run(["sh", "-c", script], place(tmp_path), ENVIRONMENT, Limits(), on_line=lines.append)
    assert int(lines[0]) >= NICE
    # A kernel without groups of sessions has no such file.
    assert not Path("/proc/self/autogroup").exists() or lines[1].endswith(f"nice {NICE}")


def test_the_cpu_time_of_all_that_ran_is_told(tmp_path: Path) -> None:
    loop = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
    ended = run(["sh", "-c", f"sh -c '{loop}'; true"], place(tmp_path), ENVIRONMENT, Limits())
    assert 0.02 < ended.cpu_seconds < 30


def test_a_command_that_prints_our_marks_fools_nobody_but_itself(tmp_path: Path) -> None:
    lines: list[str] = []
    script = "echo kperflab-sandbox:; echo 9m9.0s 9m9.0s; echo seen"
    ended = run(["sh", "-c", script], place(tmp_path), ENVIRONMENT, Limits(), on_line=lines.append)
    assert lines == ["seen"]
    assert ended.cpu_seconds < 60


def test_a_last_line_without_an_end_and_a_very_long_one_arrive(tmp_path: Path) -> None:
    lines: list[str] = []
    script = "head -c 10000 /dev/zero | tr '\\0' x; echo; printf end"
    run(["sh", "-c", script], place(tmp_path), ENVIRONMENT, Limits(), on_line=lines.append)
    assert "".join(lines) == "x" * 10000 + "end"
    assert max(map(len, lines)) <= 2 * 4096


def test_a_directory_that_cannot_be_a_layer_is_named(tmp_path: Path) -> None:
    odd = tmp_path / "a,b"
    odd.mkdir()
    with pytest.raises(SandboxFailed, match="a,b"):
        run(["true"], place(odd), ENVIRONMENT, Limits())


def test_a_sandbox_that_cannot_start_says_why(tmp_path: Path) -> None:
    where = place(tmp_path)
    (tmp_path / "source").rmdir()
    with pytest.raises(SandboxFailed, match="needs bubblewrap"):
        run(["true"], where, ENVIRONMENT, Limits())


def test_a_compiler_that_is_not_there_is_named() -> None:
    with pytest.raises(HostUnfit, match="gcc-99"):
        detect_toolchain("gcc-99")
    with pytest.raises(HostUnfit, match="not a program name"):
        detect_toolchain("gcc;id")


AS_NOBODY = """
import os, subprocess, sys
from pathlib import Path
from kernels.builds.builder import Builder, Limits
from kernels.tests.pretend import FAKELINUX, PretendKernel
from kernels.trees.tree import NamedRevision
home = Path(sys.argv[1])
pretend = PretendKernel(home)
revision = pretend.variant({"fs/buffer.c": None, "fs/Makefile": sys.argv[2]})
subprocess.run(["chown", "-R", "65534:65534", home], check=True)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
builder = Builder(home / "state", Limits(seconds=60))
for each in (None, revision):
    artifact = builder.build(pretend.request(each))
    print(artifact.metadata.code_hash, artifact.metadata.layer)
assert not list((home / "state" / "objects" / "tmp").iterdir())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user: all the other tests show it")
def test_an_ordinary_user_builds_as_root_does(builder: Builder, pretend: PretendKernel) -> None:
    makefile = (FAKELINUX / "fs/Makefile").read_text().replace(" fs/buffer.o", "")
    ours = builder.build(pretend.request(pretend.variant({"fs/buffer.c": None, "fs/Makefile": makefile})))
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, home, makefile],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=Path(__file__).parents[3],
        )
    assert done.returncode == 0, done.stderr
    (first, *no_layer), (second, *layer) = (line.split() for line in done.stdout.splitlines())
    assert first == builder.build(pretend.request()).metadata.code_hash
    assert second == ours.metadata.code_hash
    assert (len(no_layer), len(layer)) == (0, 1)
