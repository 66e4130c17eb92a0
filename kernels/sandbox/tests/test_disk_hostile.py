# SPDX-License-Identifier: GPL-2.0-or-later
"""A build fills the disk, or hands out what would: it is stopped for it, and the disk of the lab stays as it is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.builds.builder import Builder
from kernels.builds.lab_faults import refuse_lacks
from kernels.errors import ArtifactRefused, BuildTooLarge, DiskFull
from kernels.files.scratch import remove_tree
from kernels.sandbox.command import Layer, SandboxPlace
from kernels.sandbox.disk_quota import DiskUse, Quota
from kernels.sandbox.take_files import take
from kernels.tests.cases import cases
from kernels.tests.inside import LIMITS, attempt, gone, new_place, own
from kernels.tests.pretend import FAKELINUX, PretendKernel

pytestmark = [pytest.mark.hostile, pytest.mark.process]


@pytest.fixture(autouse=True)
def _removed(tmp_path: Path) -> Iterator[None]:
    """Remove what a build left, since pytest's own removal recurses and 20,000 folders are deeper than that."""
    yield
    remove_tree(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> SandboxPlace:
    return new_place(tmp_path)


FILLS = {
    "many files": "i=0; while [ $i -lt 200 ]; do mkdir d$i; (cd d$i; seq 1 100 | xargs touch); i=$((i+1)); done",
    "many folders": "seq 1 20000 | xargs mkdir",
    "many links": "python3 -c 'import os; [os.symlink(\"x\", str(n)) for n in range(20000)]'",
    "deep folders": 'python3 -c \'import os; [(os.mkdir("d"), os.chdir("d")) for n in range(20000)]\'',
    "large files": "for i in 1 2 3 4 5 6 7 8; do head -c 16M /dev/zero >f$i; done",
    "one large file": "head -c 200M /dev/zero >f",
    "large files handed out": "for i in 1 2 3 4 5 6 7 8; do head -c 16M /dev/zero >/build/out/f$i; done",
    "fallocated": "fallocate -l 200M f",
}


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("what", cases(FILLS, ("many files", "one large file")))
def test_a_build_that_fills_the_disk_is_stopped_for_it(
    tmp_path: Path, what: str, layered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = new_place(tmp_path)
    if layered:
        (tmp_path / "upper").mkdir()
        (tmp_path / "upper").chmod(0o777)
        place = replace(place, objects=Layer(place.objects.lower, tmp_path / "upper"))
    monkeypatch.setattr("kernels.sandbox.disk_quota._LEAST_BYTES", 0)
    monkeypatch.setattr("kernels.sandbox.disk_quota._LEAST_FILES", 0)
    limits = replace(LIMITS, disk=64 << 20, files=3000, seconds=60)
    seen = attempt(place, f"{FILLS[what]} 2>/dev/null; sleep {own(4714)}", limits=limits)
    assert seen.ended.stopped == "quota"
    with pytest.raises(
        BuildTooLarge, match=r"the build filled more than 0\.0625 GiB .*, or made more than 3000 files"
    ) as raised:
        refuse_lacks(seen.ended, seen.lines, limits, what="the build", home=tmp_path)
    assert (raised.value.blame, raised.value.retry) == ("submission", False)
    assert gone(4714)


def test_a_folder_that_hides_what_is_in_it_counts_as_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = Quota([tmp_path], DiskUse(1 << 30, 1000))
    monkeypatch.setattr("kernels.sandbox.disk_quota._EVERY_S", 0.0)
    quota._next = 0.0
    assert not quota.exceeded()

    def refuse(root: int, path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("kernels.sandbox.disk_quota._look", refuse)
    quota._next = 0.0
    assert quota.exceeded()


def test_a_file_larger_than_any_of_a_kernel_cannot_be_written(place: SandboxPlace) -> None:
    limits = replace(LIMITS, file_bytes=1 << 20)
    seen = attempt(place, "head -c 2M /dev/zero >f; stat -c %s f", limits=limits)
    assert seen.lines[-1] == str(1 << 20)


def test_a_disk_of_the_lab_that_is_nearly_full_is_no_fault_of_a_build(
    place: SandboxPlace, tmp_path: Path
) -> None:
    for limits in (replace(LIMITS, reserve=1 << 60), replace(LIMITS, reserve_files=1 << 59)):
        seen = attempt(place, "sleep 4715", limits=limits)
        assert seen.ended.stopped == "disk"
        with pytest.raises(DiskFull):
            refuse_lacks(seen.ended, seen.lines, limits, what="the build", home=tmp_path)


def handout(folder: Path) -> Path:
    (folder / "modules").mkdir(parents=True)
    (folder / "vmlinux").write_bytes(b"kernel")
    return folder


def _sparse(folder: Path) -> None:
    with (folder / "vmlinux").open("wb") as file:
        file.truncate(1 << 30)


def _many_sparse(folder: Path) -> None:
    for number in range(5):
        with (folder / "modules" / f"m{number}.ko").open("wb") as file:
            file.truncate((2 << 30) - 1)


def _huge(folder: Path) -> None:
    with (folder / "vmlinux").open("wb") as file:
        file.truncate(1 << 40)


def _modules_elsewhere(folder: Path) -> None:
    (folder / "modules").rmdir()
    (folder / "modules").symlink_to("/etc")


HANDED: dict[str, tuple[Callable[[Path], object], str]] = {
    "holes": (_sparse, "files of holes are refused"),
    "many files of holes": (_many_sparse, r"hands out 10240 MiB; at most 6144"),
    "a terabyte of holes": (_huge, "larger than 2048 MiB"),
    "a link": (lambda folder: (folder / "bzImage").symlink_to("/etc/shadow"), "a link or nothing"),
    "a fifo": (lambda folder: os.mkfifo(folder / "bzImage"), "something else than a plain file"),
    "a folder": (lambda folder: (folder / "bzImage").mkdir(), "something else than a plain file"),
    "a socket": (lambda folder: socket.socket(socket.AF_UNIX).bind(str(folder / "s")), "a link or nothing"),
    "an odd name": (lambda folder: (folder / "a b\n").write_text(""), "odd name"),
    "a hidden name": (lambda folder: (folder / ".config").write_text(""), "odd name"),
    "modules that are a link": (
        _modules_elsewhere,
        "something else than a directory",
    ),
}


@pytest.mark.parametrize("what", HANDED)
def test_what_no_kernel_build_hands_out_is_refused_before_anything_is_copied(
    tmp_path: Path, what: str
) -> None:
    folder = handout(tmp_path / "out")
    change, reason = HANDED[what]
    change(folder)
    before = os.statvfs(tmp_path).f_bavail
    with pytest.raises(ArtifactRefused, match=reason):
        take(folder, tmp_path / "taken")
    assert before - os.statvfs(tmp_path).f_bavail < (256 << 20) // 4096
    assert not list((tmp_path / "taken").glob("modules/*"))


def test_a_disk_without_room_for_what_is_handed_out_is_told_before_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernels.sandbox.take_files.free_room", lambda folder: DiskUse(1 << 20, 1000))
    with pytest.raises(DiskFull, match="there are 1 MiB free"):
        take(handout(tmp_path / "out"), tmp_path / "taken")
    assert not (tmp_path / "taken").exists()


def test_a_tree_whose_makefile_uses_every_inode_is_refused_as_the_submissions_fault(
    builder: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack by which this was noticed."""
    monkeypatch.setattr("kernels.sandbox.disk_quota._LEAST_FILES", 0)
    makefile = (FAKELINUX / "Makefile").read_text()
    filling = "\t@mkdir m; cd m; i=0; while :; do i=$$((i + 1)); : >$$i; done\n"
    revision = pretend.variant({"Makefile": makefile.replace("trouble-none:\n", "trouble-none:\n" + filling)})
    limited = Builder(builder.home, replace(builder.limits, files=2000, seconds=120))
    with pytest.raises(
        BuildTooLarge, match=r"the build filled .* or made more than 2000 files, and was stopped"
    ):
        limited.build(pretend.request(revision))
    assert not list((builder.home / "objects" / "tmp").iterdir())
    assert builder.build(pretend.request()).key
