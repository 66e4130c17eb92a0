# SPDX-License-Identifier: GPL-2.0-or-later
"""Artifacts through the store: whole and as they were built, or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS, METADATA, ArtifactStore
from kernels.errors import ArtifactCorrupt, ArtifactMissing, DiskFull
from lab.errors import StoreUnreachable
from lab.storage.artifacts import (
    PAPERS,
    drop_artifact,
    fetch_artifact,
    fetch_papers,
    in_store,
    is_kept,
    send_artifact,
)
from lab.storage.signing_keys import register_key
from lab.storage.store import Store
from lab.tests.made import files_of, key_of, make_artifact
from lab.tests.stores import directory_store
from lab.tests.stores import moto as moto
from lab.tests.stores import small_disk as small_disk
from lab.tests.stores import store as store

KEY = key_of(1)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> ArtifactStore:
    """Another machine of the same lab."""
    return ArtifactStore(tmp_path / "there" / "artifacts", Seal(tmp_path / "here" / KEYS))


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Store:
    return directory_store(settings, tmp_path / "store")


def nothing_of(artifacts: ArtifactStore) -> bool:
    """Return whether no file, whole or in part, is there."""
    return [path for path in artifacts.root.rglob("*") if path.is_file()] == []


@pytest.mark.process
def test_what_is_sent_is_fetched_byte_for_byte(store: Store, here: Path, there: ArtifactStore) -> None:
    made = make_artifact(here)
    assert not in_store(KEY)
    assert send_artifact(store, made) > 0
    assert in_store(KEY)
    assert is_kept(KEY, here.parent / "nowhere")
    fetched = fetch_artifact(store, there, KEY)
    assert files_of(fetched) == files_of(made)
    assert there.verify(KEY).metadata == made.metadata
    assert (fetched.vmlinux.stat().st_mode & 0o777, fetched.modules.stat().st_mode & 0o777) == (0o644, 0o755)
    assert list((there.root / ".coming").iterdir()) == []


def test_it_is_sent_once(folder: Store, here: Path) -> None:
    made = make_artifact(here)
    send_artifact(folder, made)
    assert send_artifact(folder, made) == 0


def test_it_is_not_there_before_its_metadata_is(
    folder: Store, here: Path, there: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, put = make_artifact(here), Store.put
    names: list[str] = []

    def breaks_off(self: Store, name: str, data: Any) -> None:
        if name.endswith(METADATA):
            raise StoreUnreachable("the network is gone")
        names.append(name)
        put(self, name, data)

    monkeypatch.setattr(Store, "put", breaks_off)
    with pytest.raises(StoreUnreachable):
        send_artifact(folder, made)
    assert len(names) == 8
    assert not in_store(KEY)
    with pytest.raises(ArtifactMissing, match="neither this machine nor the store"):
        fetch_artifact(folder, there, KEY)
    monkeypatch.undo()


@pytest.mark.process
def test_two_workers_that_made_it_at_once_do_not_mix_theirs(folder: Store, tmp_path: Path) -> None:
    makers = [make_artifact(tmp_path / str(n), log=f"made by {n}\n") for n in range(4)]
    has = Store.has
    try:
        # Each believes to be the first.
        Store.has = lambda self, name: False  # type: ignore[method-assign]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda made: send_artifact(folder, made), makers))
    finally:
        Store.has = has  # type: ignore[method-assign]
    there = ArtifactStore(tmp_path / "there", Seal(tmp_path / "keys", lambda public: True))
    fetched = fetch_artifact(folder, there, KEY)
    assert files_of(fetched) in [files_of(made) for made in makers]


@pytest.mark.process
def test_many_fetch_it_at_once_and_have_it(folder: Store, here: Path, there: ArtifactStore) -> None:
    made = make_artifact(here)
    send_artifact(folder, made)
    with ThreadPoolExecutor(6) as pool:
        fetched = list(pool.map(lambda _: fetch_artifact(folder, there, KEY), range(12)))
    assert all(files_of(artifact) == files_of(made) for artifact in fetched)


def blobs(store: Store) -> dict[str, Path]:
    """The files of the artifact in a directory store, by their names in the artifact."""
    top = Path(store.storage.location) / "artifacts" / KEY
    listed = json.loads((top / METADATA).read_bytes())["files"]
    return {name: top / entry[1] for name, entry in listed.items()} | {METADATA: top / METADATA}


@pytest.mark.process
@pytest.mark.parametrize(
    "name", ["vmlinux", "vmlinux.boot", "bzImage", "System.map", "config", "modules/lab_bh.ko"]
)
def test_a_changed_byte_anywhere_is_noticed(
    folder: Store, here: Path, there: ArtifactStore, name: str
) -> None:
    send_artifact(folder, make_artifact(here))
    blob = blobs(folder)[name]
    whole, drawn = blob.read_bytes(), random.Random(name)
    places = {0, 1, len(whole) // 2, len(whole) - 1, *(drawn.randrange(len(whole)) for _ in range(12))}
    for place in places:
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << drawn.randrange(8)
        blob.write_bytes(spoilt)
        refused = None
        try:
            # The head of a gzip file has bytes that say nothing: then what comes out is what was built.
            assert files_of(fetch_artifact(folder, there, KEY)) == files_of(make_artifact(here))
        except ArtifactCorrupt as exc:
            refused = exc
        if refused:
            assert (refused.blame, refused.retry) == ("lab", True)
            assert name in str(refused)
            assert nothing_of(there)
        there.remove(KEY)


@pytest.mark.process
@pytest.mark.parametrize("spoil", ["cut", "longer", "empty", "gone", "other"])
@pytest.mark.parametrize("name", ["vmlinux", "bzImage", "build.log"])
def test_a_file_that_is_not_whole_is_noticed(
    folder: Store, here: Path, there: ArtifactStore, name: str, spoil: str
) -> None:
    send_artifact(folder, make_artifact(here))
    blob = blobs(folder)[name]
    whole = blob.read_bytes()
    if spoil == "gone":
        blob.unlink()
    else:
        other = {"cut": whole[:-9], "longer": whole + whole, "empty": b"", "other": b"#!/bin/sh\n"}
        blob.write_bytes(other[spoil])
    if spoil == "longer" and name != "bzImage":
        # What follows a compressed file is never read.
        assert files_of(fetch_artifact(folder, there, KEY)) == files_of(make_artifact(here))
        return
    with pytest.raises(ArtifactCorrupt, match=name):
        fetch_artifact(folder, there, KEY)
    assert nothing_of(there)


@pytest.mark.process
def test_a_bomb_is_stopped_where_the_file_should_end(folder: Store, here: Path, there: ArtifactStore) -> None:
    made = make_artifact(here)
    send_artifact(folder, made)
    blobs(folder)["vmlinux"].write_bytes(gzip.compress(bytes(64 << 20), 9))
    with pytest.raises(ArtifactCorrupt, match=r"vmlinux: it is longer than the \d+ bytes that were built"):
        fetch_artifact(folder, there, KEY)
    assert nothing_of(there)


def hostile(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        record = json.loads(data)
        change(record)
        return json.dumps(record).encode()

    return changed


DIGEST = hashlib.sha256(b"").hexdigest()
HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "not JSON": lambda data: b"\0\xff",
    "cut": lambda data: data[:-20],
    "empty": lambda data: b"",
    "a list": lambda data: b"[]",
    "deep": lambda data: b"[" * 100_000,
    "a huge number": lambda data: b'{"files": ' + b"9" * 10_000 + b"}",
    "a path up": hostile(lambda r: r["files"].update({"../../evil": [0, DIGEST]})),
    "an absolute path": hostile(lambda r: r["files"].update({"/tmp/evil": [0, DIGEST]})),
    "a path below modules": hostile(lambda r: r["files"].update({"modules/../../evil": [0, DIGEST]})),
    "a hidden file": hostile(lambda r: r["files"].update({".evil": [0, DIGEST]})),
    "a zero byte": hostile(lambda r: r["files"].update({"a\0b": [0, DIGEST]})),
    "itself": hostile(lambda r: r["files"].update({METADATA: [0, DIGEST]})),
    "the folder": hostile(lambda r: r["files"].update({"modules": [0, DIGEST]})),
    "a huge file": hostile(lambda r: r["files"].update({"vmlinux": [1 << 60, DIGEST]})),
    "a negative size": hostile(lambda r: r["files"].update({"vmlinux": [-1, DIGEST]})),
    "too many bytes": hostile(lambda r: r["files"].update({f"f{n}": [2 << 30, DIGEST] for n in range(9)})),
    "too many files": hostile(lambda r: r["files"].update({f"f{n}": [0, DIGEST] for n in range(20_001)})),
    "no hash": hostile(lambda r: r["files"].update({"vmlinux": [5, "../../../etc/passwd"]})),
    "no pair": hostile(lambda r: r["files"].update({"vmlinux": "ab"})),
    "no kernel": hostile(lambda r: r["files"].pop("vmlinux.boot")),
    "another kernel": hostile(lambda r: r["metadata"].update(release="6.1.192-k000000000000")),
    "another key": hostile(lambda r: r.update(key=key_of(2))),
    "no signature": hostile(lambda r: r.pop("signature")),
    "another format": hostile(lambda r: r.update(format=1)),
    "a signature that is a list": hostile(lambda r: r.update(signature=[])),
    "another's signature": hostile(lambda r: r["signature"].update(key="f" * 64)),
    "a kernel with its hash": hostile(lambda r: r["files"].update({"vmlinux.boot": [0, DIGEST]})),
    "a release that is a list": hostile(lambda r: r["metadata"].update(release=["x"])),
    "a long release": hostile(lambda r: r["metadata"].update(release="x" * 10_000)),
    "more fields": hostile(lambda r: r["metadata"].update(extra="x")),
    "seconds that are none": hostile(lambda r: r["metadata"].update(seconds_cpu=True)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_metadata_that_no_build_writes_is_refused(
    folder: Store, here: Path, there: ArtifactStore, tmp_path: Path, what: str
) -> None:
    send_artifact(folder, make_artifact(here))
    metadata = blobs(folder)[METADATA]
    metadata.write_bytes(HOSTILE[what](metadata.read_bytes()))
    before = {path for path in tmp_path.rglob("*") if there.root not in path.parents}
    with pytest.raises(ArtifactCorrupt) as caught:
        fetch_artifact(folder, there, KEY)
    assert "\n" not in str(caught.value)
    assert nothing_of(there)
    assert {path for path in tmp_path.rglob("*") if there.root not in path.parents} - before <= {
        there.root.parent,
        there.root,
    }


@pytest.mark.process
def test_a_link_in_the_place_of_a_file_yields_no_other_bytes(
    folder: Store, here: Path, there: ArtifactStore
) -> None:
    send_artifact(folder, make_artifact(here))
    blob = blobs(folder)["bzImage"]
    blob.unlink()
    blob.symlink_to("/etc/passwd")
    with pytest.raises(ArtifactCorrupt, match="bzImage"):
        fetch_artifact(folder, there, KEY)


def test_a_file_that_was_spoilt_here_is_not_sent(folder: Store, here: Path) -> None:
    made = make_artifact(here)
    data = bytearray(made.vmlinux.read_bytes())
    data[7] ^= 1
    made.vmlinux.write_bytes(data)
    with pytest.raises(ArtifactCorrupt, match="vmlinux is not what was built"):
        send_artifact(folder, made)
    assert not in_store(KEY)


@pytest.mark.process
def test_one_that_is_removed_while_it_is_fetched_is_missing_not_corrupt(
    folder: Store, here: Path, there: ArtifactStore
) -> None:
    send_artifact(folder, make_artifact(here))
    with pytest.raises(ArtifactMissing, match="was just removed"):
        fetch_artifact(folder, there, KEY, lambda: None if not in_store(KEY) else drop(folder))


def drop(store: Store) -> None:
    assert drop_artifact(store, KEY) > 0
    assert list(store.entries()) == []


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_fills_up_while_it_is_fetched_keeps_no_part(
    folder: Store, here: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_artifact(folder, make_artifact(here, size=600_000))
    there = ArtifactStore(small_disk / "artifacts", Seal(here / KEYS))
    with pytest.raises(DiskFull, match=r"there are .* MiB free; free some space"):
        fetch_artifact(folder, there, KEY)
    monkeypatch.setattr("lab.storage.artifacts.free_bytes", lambda root: 1 << 40)
    with pytest.raises(DiskFull, match="filled up while an artifact was received"):
        fetch_artifact(folder, there, KEY)
    assert nothing_of(there)


@pytest.mark.process
def test_a_write_that_fails_keeps_no_part(
    folder: Store, here: Path, there: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_artifact(folder, make_artifact(here))
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("lab.storage.artifacts.os.fsync", full)
    with pytest.raises(DiskFull):
        fetch_artifact(folder, there, KEY)
    monkeypatch.undo()
    assert nothing_of(there)


@pytest.mark.process
@pytest.mark.django_db
def test_papers_come_without_the_kernel(folder: Store, here: Path, tmp_path: Path) -> None:
    made = make_artifact(here)
    register_key(here)
    send_artifact(folder, made)
    for _ in range(2):
        papers = fetch_papers(folder, tmp_path / "papers", KEY)
        assert papers.metadata == made.metadata
        assert set(files_of(papers)) == {*PAPERS, METADATA}
        assert papers.reproducer.read_bytes() == made.reproducer.read_bytes()
