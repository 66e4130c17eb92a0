# SPDX-License-Identifier: GPL-2.0-or-later
"""From what a guest sent to what is recorded of its profile."""

from __future__ import annotations

import dataclasses
import lzma
import shutil
from pathlib import Path

import pytest

from kernels.artifact import Artifact
from kernels.elf import read_build_id
from kernels.errors import ArtifactCorrupt
from kernels.tests.test_artifact import METADATA
from lab.rawprofiles import raw_path
from workers.errors import ProfileUnreadable
from workers.run import Bench, _profile
from workers.tests.test_perfdata import GOLDEN
from workloads.guest.records import Record
from workloads.step import PERF_DATA

RELEASE = "6.1.192-ke3b61b3e121b"
WHOLE = lzma.decompress((GOLDEN / "perf.data.xz").read_bytes())


def artifact(directory: Path, release: str = RELEASE) -> Artifact:
    directory.mkdir()
    shutil.copy(GOLDEN / "System.map", directory)
    # Any ELF file will do: this perf.data tells no build id to hold against it.
    shutil.copy("/usr/bin/true", directory / "vmlinux")
    return Artifact("ab" * 32, directory, dataclasses.replace(METADATA, release=release))


def sent(data: bytes) -> tuple[Record, ...]:
    """In pieces, as the agent does, and with an empty one at the end."""
    pieces = [data[at : at + 32768] for at in range(0, len(data), 32768)] + [b""]
    return tuple(Record(seq, "file", PERF_DATA, piece) for seq, piece in enumerate(pieces, 1))


def test_a_profile_is_read_with_the_artifacts_symbols_and_its_file_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    taken = _profile(sent(WHOLE), artifact(tmp_path / "artifact"), Bench(tmp_path, {}), run)
    assert taken.tree.samples == 787
    assert raw_path(tmp_path, taken.perf_data_sha256).read_bytes() == WHOLE
    assert raw_path(tmp_path, taken.perf_data_sha256).samefile(run / "perf.data")


def test_a_second_attempt_leaves_the_first_ones_file_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    kernel, bench = artifact(tmp_path / "artifact"), Bench(tmp_path, {})
    first = _profile(sent(WHOLE), kernel, bench, run)
    second = _profile(sent(WHOLE[:-20000]), kernel, bench, run)
    assert "ends" in second.truncated
    assert raw_path(tmp_path, first.perf_data_sha256).read_bytes() == WHOLE


def test_a_profile_of_another_kernel_is_unreadable_and_its_file_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(ProfileUnreadable, match="of another kernel: its release is"):
        _profile(sent(WHOLE), artifact(tmp_path / "artifact", "6.1.1"), Bench(tmp_path, {}), run)
    assert len(list((tmp_path / "profiles").glob("*/*"))) == 1


def test_a_guest_that_sent_no_perf_data_is_told_as_an_empty_file(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(ProfileUnreadable, match="it is empty"):
        _profile((), artifact(tmp_path / "artifact"), Bench(tmp_path, {}), run)


def test_a_build_id_is_read_from_an_elf_files_notes(tmp_path: Path) -> None:
    assert len(read_build_id(Path("/usr/bin/true"))) == 40
    (tmp_path / "vmlinux").write_bytes(b"none")
    with pytest.raises(ArtifactCorrupt):
        read_build_id(tmp_path / "vmlinux")
