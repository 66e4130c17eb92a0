# SPDX-License-Identifier: GPL-2.0-or-later
"""Broken and hostile trees get nowhere. The fake tree's `trouble` file selects the attack."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.errors import ArtifactRefused, BuildOutOfMemory, BuildTimedOut, CompileFailed, DiskFull
from kernels.tests.hanging import runs_in_sandbox
from kernels.tests.pretend import PretendKernel

pytestmark = pytest.mark.process


def attempt(builder: Builder, pretend: PretendKernel, trouble: str) -> list[str]:
    lines: list[str] = []
    builder.build(pretend.request(pretend.variant({"trouble.h": trouble})), on_line=lines.append)
    return lines


def limited(builder: Builder, **limits: float) -> Builder:
    return Builder(builder.home, Limits(**{"seconds": 30, "cores": 2, **limits}))  # type: ignore[arg-type]


@pytest.mark.parametrize("trouble", ["hang", "hang-detached"])
def test_a_build_that_hangs_is_stopped_with_all_it_started(
    builder: Builder, pretend: PretendKernel, trouble: str
) -> None:
    builder.build(pretend.request())
    with pytest.raises(BuildTimedOut, match="stopped after") as caught:
        attempt(limited(builder, seconds=1), pretend, trouble)
    assert caught.value.log is not None
    assert caught.value.log.exists()
    assert not runs_in_sandbox(builder.home)


def test_a_build_that_prints_without_end_is_stopped(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(CompileFailed, match="printed more than 1 MiB"):
        attempt(limited(builder, log_bytes=1 << 20), pretend, "noise")
    assert not runs_in_sandbox(builder.home, "^yes all work")


def test_a_build_that_is_refused_memory_says_so(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(CompileFailed, match="out of memory allocating"):
        attempt(builder, pretend, "memory")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a control group")
def test_many_processes_meet_a_memory_limit_together(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(BuildOutOfMemory, match="256 MiB for all"):
        attempt(limited(builder, total_memory=256 << 20), pretend, "memory-together")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/kperflab-build.*.{os.getpid()}.*"))


def test_a_build_that_says_that_the_disk_is_full_is_not_believed(
    builder: Builder, pretend: PretendKernel
) -> None:
    with pytest.raises(CompileFailed, match="No space left on device"):
        attempt(builder, pretend, "disk")


def test_a_disk_without_room_is_noticed_before_a_build_from_nothing(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder(tmp_path, Limits(seconds=30))
    builder.key(pretend.request())
    monkeypatch.setattr("kernels.builds.layers.free_bytes", lambda path: 1 << 30)
    with pytest.raises(DiskFull, match=r"need 2\.0 GiB free under .*, there are 1\.0 GiB"):
        builder.build(pretend.request())


def test_a_build_is_stopped_while_there_is_still_some_room(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises(DiskFull):
        attempt(limited(builder, reserve=1 << 60), pretend, "hang")


def test_links_instead_of_results_are_refused(builder: Builder, pretend: PretendKernel) -> None:
    with pytest.raises((ArtifactRefused, CompileFailed)):
        attempt(builder, pretend, "link")
    name = Path("/etc/hostname").read_bytes()
    for path in (builder.home / "artifacts").rglob("bzImage"):
        assert path.read_bytes() != name


def test_a_link_in_place_of_a_directory_leads_nowhere(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    """The files that were in it are marked as deleted: in the variant's layer, not where the link leads."""
    builder.build(pretend.request(pretend.variant({"drivers": tmp_path})))
    assert list(tmp_path.iterdir()) == []


def test_a_build_sees_no_network_no_process_and_no_secret(
    builder: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_SECRET", "token")
    seen = dict(line.split(" ", 1) for line in attempt(builder, pretend, "look") if " " in line)
    assert seen["uid"] != "0"
    assert seen["capabilities"] == "0000000000000000"
    assert int(seen["processes"]) < 15
    assert seen["interfaces"] == "lo"
    assert seen["environment"] == "0"


def test_control_characters_never_reach_the_log(builder: Builder, pretend: PretendKernel) -> None:
    lines = attempt(builder, pretend, "escape")
    assert "a [31mred[0m line \ufffd\ufffd and \ufffd" in lines or any(
        line.startswith("a [31mred[0m line") for line in lines
    )
    assert not any(char in line for line in lines for char in "\x1b\x9b")


def test_a_build_dies_with_the_process_that_asked_for_it(
    builder: Builder, pretend: PretendKernel, tmp_path: Path
) -> None:
    builder.build(pretend.request())
    revision = pretend.variant({"trouble.h": "hang-detached"})
    program = f"""
import sys
from pathlib import Path
from kernels.builds.builder import Builder, BuildRequest, Limits
from kernels.tests.pretend import CONFIG
from kernels.builds.toolchain import detect_toolchain
from kernels.trees.tree import NamedRevision, SourceTree
tree = SourceTree("pretend", Path({str(pretend.tree.repository)!r}), "main")
base = NamedRevision({pretend.base.commit!r}, {pretend.base.tree_id!r}, "base")
revision = NamedRevision({revision.commit!r}, {revision.tree_id!r}, "variant")
request = BuildRequest(tree, base, revision, CONFIG, detect_toolchain())
Builder(Path({str(builder.home)!r}), Limits(seconds=60)).build(request, on_progress=lambda *told: print("beat", flush=True))
"""
    victim = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not runs_in_sandbox(builder.home):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    victim.kill()
    victim.wait(10)
    while runs_in_sandbox(builder.home):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    scratch = builder.home / "objects" / "tmp"
    assert len(list(scratch.iterdir())) == 1
    again = Builder(builder.home, builder.limits)
    assert list(scratch.iterdir()) == []
    assert again.build(pretend.request()).key
