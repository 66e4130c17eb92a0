# SPDX-License-Identifier: GPL-2.0-or-later
"""An artifact is what its signed metadata.json says, or it is not there."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.artifacts.metadata import ArtifactMetadata, ArtifactRecord, _message, read_record, write_record
from kernels.artifacts.signature import Seal
from kernels.artifacts.store import METADATA, ArtifactStore
from kernels.artifacts.tests.test_store import METADATA as SAID
from kernels.errors import ArtifactCorrupt, ArtifactMissing

pytestmark = pytest.mark.hostile

KEY, OTHER = "ab" * 32, "cd" * 32
FILES = ("vmlinux", "vmlinux.boot", "bzImage", "System.map", "config", "build.log", "modules/a.ko")
DIGEST = "0" * 64


def made(root: Path, key: str = KEY) -> ArtifactStore:
    store = ArtifactStore(root / "artifacts")
    place = root / "made"
    (place / "modules").mkdir(parents=True)
    for name in FILES:
        (place / name).write_bytes(f"the bytes of {name}\n".encode() * 9)
    store.add(key, place, SAID)
    return store


def metadata_of(store: ArtifactStore) -> Path:
    return store.root / KEY / METADATA


def signed(change: Callable[[dict[str, Any]], object], seal: Seal) -> bytes:
    """A metadata.json that a machine of ours signed, and that says something no build says."""
    record = ArtifactRecord(SAID, {"vmlinux": (5, DIGEST)})
    said = json.loads(write_record(KEY, record, seal))
    del said["signature"]
    change(said)
    signature = seal.sign(_message(said))
    return json.dumps({**said, "signature": {"key": signature.key, "value": signature.value}}).encode()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0, -1])
def test_a_changed_byte_of_any_file_is_noticed_before_it_is_used(
    tmp_path: Path, name: str, place: int
) -> None:
    store = made(tmp_path)
    path = store.root / KEY / name
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactCorrupt, match=f"{name} is not what was built"):
        store.verify(KEY)


@pytest.mark.parametrize("name", ArtifactMetadata.__dataclass_fields__)
def test_a_changed_word_of_the_metadata_is_noticed(tmp_path: Path, name: str) -> None:
    store = made(tmp_path)
    said = json.loads(metadata_of(store).read_bytes())
    value = said["metadata"][name]
    said["metadata"][name] = value + (1.0 if isinstance(value, float) else "0")
    metadata_of(store).write_text(json.dumps(said))
    with pytest.raises(ArtifactCorrupt, match="its signature does not match its content"):
        store.get(KEY)


def test_files_and_hashes_that_were_changed_together_are_noticed(tmp_path: Path) -> None:
    """The author of a kernel can write its hash, too, but not the signature."""
    store, evil = made(tmp_path), b"another kernel, of its own hash"
    (store.root / KEY / "vmlinux.boot").write_bytes(evil)
    said = json.loads(metadata_of(store).read_bytes())
    said["files"]["vmlinux.boot"] = [len(evil), hashlib.sha256(evil).hexdigest()]
    metadata_of(store).write_text(json.dumps(said))
    with pytest.raises(ArtifactCorrupt, match="its signature does not match its content"):
        store.verify(KEY)


def test_metadata_of_another_artifact_is_refused(tmp_path: Path) -> None:
    """Both are signed, and all files of the other are as they were built: but it is not this kernel."""
    store = made(tmp_path)
    shutil.copytree(store.root / KEY, store.root / OTHER)
    with pytest.raises(ArtifactCorrupt, match="it was signed for artifact 'abababababab'"):
        store.get(OTHER)
    assert store.verify(KEY)


def test_a_key_of_nobody_we_know_is_refused_and_named(tmp_path: Path) -> None:
    theirs, ours = made(tmp_path / "theirs"), ArtifactStore(tmp_path / "ours" / "artifacts")
    shutil.copytree(theirs.root, ours.root)
    with pytest.raises(ArtifactCorrupt) as caught:
        ours.get(KEY)
    assert f"signed with key {theirs.seal.public()[:12]}, which no machine of this lab has" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [None, "", 0, [], {}, {"key": "x"}, {"key": 5, "value": []}, "ab" * 64])
def test_metadata_without_a_signature_is_refused(tmp_path: Path, given: object) -> None:
    store = made(tmp_path)
    said = json.loads(metadata_of(store).read_bytes())
    said["signature"] = given
    metadata_of(store).write_text(json.dumps(said))
    with pytest.raises(
        ArtifactCorrupt, match=r"it is not signed|its signature is malformed|it is not a build's"
    ):
        store.get(KEY)


@pytest.mark.process
def test_an_artifact_of_before_signatures_is_missing_and_gives_way_to_a_new_one(tmp_path: Path) -> None:
    store = made(tmp_path)
    said = json.loads(metadata_of(store).read_bytes())
    metadata_of(store).write_text(
        json.dumps({"format": 1, "metadata": said["metadata"], "files": said["files"]})
    )
    assert not store.has(KEY)
    with pytest.raises(ArtifactMissing, match="build it again"):
        store.get(KEY)
    made(tmp_path)
    assert store.verify(KEY).metadata == SAID


@pytest.mark.parametrize("claimed", [0, 1, 3, "2", None, [2], True])
def test_a_format_that_is_not_todays_is_not_believed_whoever_signed_it(
    tmp_path: Path, claimed: object
) -> None:
    seal = Seal(tmp_path / "keys")
    with pytest.raises(ValueError, match="it is not signed"):
        read_record(signed(lambda said: said.update(format=claimed), seal), KEY, seal)


@pytest.mark.parametrize("length", [0, 1, 10, 100, -1, -5])
def test_metadata_that_was_cut_is_refused(tmp_path: Path, length: int) -> None:
    store = made(tmp_path)
    metadata_of(store).write_bytes(metadata_of(store).read_bytes()[:length])
    with pytest.raises(ArtifactCorrupt):
        store.get(KEY)


@pytest.mark.parametrize(
    "data",
    [b"null", b"[]", b"7", b'"x"', b"{}", b"[" * 100_000, b'{"format": 2}', b"\xff\xfe", b"9" * 5000, b"NaN"],
    ids=lambda data: repr(data[:12]),
)
def test_metadata_of_another_shape_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_record(data, KEY, Seal(tmp_path / "keys"))


_ODD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no files": lambda said: said.pop("files"),
    "files that are a list": lambda said: said.update(files=[]),
    "no metadata": lambda said: said.pop("metadata"),
    "metadata that is a list": lambda said: said.update(metadata=[]),
    "a field more": lambda said: said["metadata"].update(extra="x"),
    "a field less": lambda said: said["metadata"].pop("layer"),
    "a number for a text": lambda said: said["metadata"].update(release=6.1),
    "a text for a number": lambda said: said["metadata"].update(seconds_cpu="1"),
    "true for a number": lambda said: said["metadata"].update(seconds_cpu=True),
    "a text too long": lambda said: said["metadata"].update(tree="x" * 4001),
    "a path up": lambda said: said["files"].update({"../evil": [0, DIGEST]}),
    "a path below modules": lambda said: said["files"].update({"modules/../../evil": [0, DIGEST]}),
    "itself": lambda said: said["files"].update({METADATA: [0, DIGEST]}),
    "a negative size": lambda said: said["files"].update(vmlinux=[-1, DIGEST]),
    "a size that is true": lambda said: said["files"].update(vmlinux=[True, DIGEST]),
    "a size that is a fraction": lambda said: said["files"].update(vmlinux=[1.5, DIGEST]),
    "no digest": lambda said: said["files"].update(vmlinux=[1, "x"]),
    "a digest that is a list": lambda said: said["files"].update(vmlinux=[1, [DIGEST]]),
    "three of a pair": lambda said: said["files"].update(vmlinux=[1, DIGEST, 2]),
    "too many files": lambda said: said["files"].update({f"f{n}": [0, DIGEST] for n in range(20_001)}),
    "too many bytes": lambda said: said["files"].update({f"f{n}": [2 << 30, DIGEST] for n in range(4)}),
    "no key": lambda said: said.pop("key"),
    "a key that is a list": lambda said: said.update(key=[KEY]),
}


@pytest.mark.parametrize("what", _ODD)
def test_what_no_build_says_is_refused_though_a_machine_of_ours_signed_it(tmp_path: Path, what: str) -> None:
    seal = Seal(tmp_path / "keys")
    with pytest.raises(ValueError, match=r"^it ") as caught:
        read_record(signed(_ODD[what], seal), KEY, seal)
    assert "\n" not in str(caught.value)
    assert read_record(signed(lambda said: None, seal), KEY, seal).metadata == SAID
