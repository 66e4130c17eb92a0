# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workloads.errors import GuestNotMade
from workloads.guest import initramfs
from workloads.guest.initramfs import KEXEC, PROFILER, TOOLS, Initramfs, build_initramfs, kexec_archive
from workloads.guest.plan import Plan, Step

pytestmark = pytest.mark.process
BOOTSTRAP = Path(__file__).parents[2] / "bootstrap"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("initramfs")


@pytest.fixture(scope="module")
def made(root: Path) -> Initramfs:
    return build_initramfs(root, {})


def test_it_holds_the_agent_the_tools_and_their_libraries(made: Initramfs) -> None:
    packed = made.lean.read_bytes()
    for name in (
        b"init",
        b"bin/busybox",
        b"bin/sh",
        b"bin/cyclictest",
        b"bin/rdma",
        b"lib64/ld-linux-x86-64.so.2",
    ):
        assert name + b"\0" in packed


def test_equal_programs_make_the_same_file_once(made: Initramfs, root: Path) -> None:
    written = made.path.stat().st_mtime_ns
    assert build_initramfs(root, {}) == made
    assert made.path.stat().st_mtime_ns == written


def test_another_program_makes_another_file(made: Initramfs, root: Path, tmp_path: Path) -> None:
    program = tmp_path / "walk"
    program.write_bytes(b"a program")
    other = build_initramfs(root, {"stat-walk": program})
    assert other.sha256 != made.sha256
    assert b"programs/stat-walk\0" in other.lean.read_bytes()


@pytest.mark.parametrize(
    ("argv", "needs_perf"),
    [
        (("perf", "record", "-a"), True),
        (("/bin/perf", "stat"), True),
        (("sh", "-c", "sleep 1; perf record"), True),
        (("/programs/showgids",), False),
        (("/programs/perfect",), False),
    ],
)
def test_only_plans_that_use_perf_pay_for_it(
    made: Initramfs, argv: tuple[str, ...], needs_perf: bool
) -> None:
    path = made.for_plan(Plan((Step("s", argv, 1, "measure"),)))
    assert (b"bin/perf\0" in path.read_bytes()) == needs_perf


def test_what_starts_the_next_kernel_is_in_an_archive_of_its_own(made: Initramfs) -> None:
    assert b"bin/kexec\0" in kexec_archive()
    assert b"bin/kexec\0" not in made.path.read_bytes()


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(initramfs, "TOOLS", {"no-such-tool": "a-package"})
    with pytest.raises(GuestNotMade, match=r"no-such-tool.*apt-get install a-package"):
        build_initramfs(tmp_path, {})


def test_a_program_that_changes_is_packed_anew(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "walk"
    program.write_bytes(b"a program")
    old = build_initramfs(root, {"stat-walk": program})
    program.write_bytes(b"another one")
    assert build_initramfs(root, {"stat-walk": program}) != old


def test_a_file_that_was_removed_is_written_again(made: Initramfs, root: Path) -> None:
    made.lean.unlink()
    assert build_initramfs(root, {}).lean.exists()


def test_a_host_that_drives_machines_alone_is_told_every_package_that_it_takes() -> None:
    listed = subprocess.run(
        [BOOTSTRAP, "list", "initramfs"], check=True, capture_output=True, text=True, timeout=30
    )
    assert {*TOOLS.values(), *PROFILER.values(), *KEXEC.values()} <= set(listed.stdout.split())
