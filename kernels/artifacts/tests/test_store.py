# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.artifacts.elf import code_hash, read_release
from kernels.artifacts.store import ArtifactMetadata, ArtifactStore
from kernels.builds.builder import Builder
from kernels.errors import ArtifactCorrupt, ArtifactMissing, ArtifactRefused
from kernels.files.scratch import remove_tree
from kernels.sandbox import take_files as handout
from kernels.tests.pretend import PretendKernel

KEY = "ab" * 32
METADATA = ArtifactMetadata(
    release="6.1.7-k",
    tree="pretend",
    revision="1" * 40,
    tree_id="2" * 40,
    base="3" * 40,
    config_sha256="4" * 64,
    toolchain="gcc",
    toolchain_identity="5",
    code_hash="6",
    seconds_cpu=1.0,
    seconds_wall=2.0,
    layer="",
    built_at="2026-01-01T00:00:00+00:00",
)


def handed_out(folder: Path) -> Path:
    (folder / "out" / "modules").mkdir(parents=True)
    (folder / "out" / "vmlinux").write_bytes(b"kernel")
    (folder / "out" / "modules" / "a.ko").write_bytes(b"module")
    return folder / "out"


def test_files_are_taken_over_as_they_are(tmp_path: Path) -> None:
    handout.take(handed_out(tmp_path), tmp_path / "taken")
    assert (tmp_path / "taken" / "vmlinux").read_bytes() == b"kernel"
    assert (tmp_path / "taken" / "modules" / "a.ko").read_bytes() == b"module"


def _link(out: Path) -> None:
    (out / "System.map").symlink_to("/etc/passwd")


def _link_to_folder(out: Path) -> None:
    remove_tree(out / "modules")
    (out / "modules").symlink_to("/etc")


def _pipe(out: Path) -> None:
    os.mkfifo(out / "bzImage")


def _socket(out: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        here = Path.cwd()
        os.chdir(out)  # a socket's path may have only 107 characters
        unix.bind("s")
        os.chdir(here)


def _folder(out: Path) -> None:
    (out / "deeper").mkdir()


def _odd_name(out: Path) -> None:
    (out / "modules" / "-rf \n.ko").write_bytes(b"")


def _hidden(out: Path) -> None:
    (out / ".hidden").write_bytes(b"")


def _itself(out: Path) -> None:
    remove_tree(out)
    out.symlink_to("/etc")


@pytest.mark.process
@pytest.mark.parametrize(
    "spoil",
    [_link, _link_to_folder, _pipe, _socket, _folder, _odd_name, _hidden, _itself],
    ids=lambda f: f.__name__,
)
def test_what_no_build_makes_is_refused(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    out = handed_out(tmp_path)
    spoil(out)
    with pytest.raises(ArtifactRefused):
        handout.take(out, tmp_path / "taken")


def test_too_large_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = handed_out(tmp_path)
    with (out / "vmlinux").open("wb") as file:
        file.truncate(3 << 20)
    monkeypatch.setattr(handout, "MAX_FILE", 2 << 20)
    with pytest.raises(ArtifactRefused, match="larger than 2 MiB"):
        handout.take(out, tmp_path / "taken")
    monkeypatch.setattr(handout, "MAX_FILE", 4 << 20)
    monkeypatch.setattr(handout, "MAX_TOTAL", 2 << 20)
    with pytest.raises(ArtifactRefused, match="hands out 3 MiB; at most 2 are taken"):
        handout.take(out, tmp_path / "taken again")


def stored(tmp_path: Path) -> ArtifactStore:
    store = ArtifactStore(tmp_path / "store")
    handout.take(handed_out(tmp_path), tmp_path / "taken")
    store.add(KEY, tmp_path / "taken", METADATA)
    return store


def test_an_artifact_comes_back_as_it_was_added(tmp_path: Path) -> None:
    store = stored(tmp_path)
    assert store.has(KEY)
    assert store.get(KEY).metadata == METADATA
    assert store.verify(KEY).vmlinux.read_bytes() == b"kernel"


def test_the_first_of_two_equal_artifacts_stays(tmp_path: Path) -> None:
    store = stored(tmp_path)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "vmlinux").write_bytes(b"other")
    assert store.add(KEY, tmp_path / "again", replace(METADATA, release="y")).metadata == METADATA


@pytest.mark.parametrize("key", ["cd" * 32, "../../etc", "", "AB" * 32])
def test_an_unknown_key_is_missing(tmp_path: Path, key: str) -> None:
    with pytest.raises(ArtifactMissing):
        stored(tmp_path).get(key)


def test_a_file_that_lost_bytes_is_noticed(tmp_path: Path) -> None:
    store = stored(tmp_path)
    (store.root / KEY / "vmlinux").write_bytes(b"kernal")
    assert store.get(KEY)
    with pytest.raises(ArtifactCorrupt, match="vmlinux is not what was built"):
        store.verify(KEY)
    (store.root / KEY / "vmlinux").write_bytes(b"kern")
    with pytest.raises(ArtifactCorrupt):
        store.get(KEY)
    (store.root / KEY / "metadata.json").write_text("{")
    with pytest.raises(ArtifactCorrupt):
        store.get(KEY)


@pytest.mark.process
def test_a_damaged_artifact_is_built_again(builder: Builder, pretend: PretendKernel) -> None:
    artifact = builder.build(pretend.request())
    artifact.vmlinux.write_bytes(b"")
    assert builder.build(pretend.request()).vmlinux.stat().st_size > 0
    assert builder.artifacts.verify(artifact.key)


def test_a_file_that_is_no_kernel_has_no_hash(tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    for data in (b"", b"\x7fELF", b"\x7fELF" + bytes(range(256)) * 8):
        path.write_bytes(data)
        with pytest.raises(ArtifactCorrupt):
            code_hash(path, [], "6.1")
        with pytest.raises(ArtifactCorrupt):
            read_release(path)


@pytest.mark.process
def test_a_module_counts_by_its_code_alone(builder: Builder, pretend: PretendKernel, tmp_path: Path) -> None:
    artifact = builder.build(pretend.request())
    release = artifact.metadata.release

    def hashed(source: str) -> str:
        (tmp_path / "m.c").write_text(source)
        assert os.system(f"cd {tmp_path} && gcc -g1 -ffreestanding -c m.c && ld -r -o m.ko m.o") == 0
        return code_hash(artifact.vmlinux, [tmp_path / "m.ko"], release)

    plain = hashed("int other(void); int f(void) { return other(); }")
    assert hashed("\n\n/* c */ int other(void); int f(void) { return other(); }") == plain
    assert hashed("int third(void); int f(void) { return third(); }") != plain
    assert code_hash(artifact.vmlinux, [], release) != plain
