# SPDX-License-Identifier: GPL-2.0-or-later
"""The metadata.json of an artifact: its key, its inputs, its files, and its signature."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from kernels.artifacts.signature import Seal, Signature
from kernels.sandbox.take_files import FOLDER, MAX_FILE, MAX_FILES, MAX_TOTAL, PLAIN_NAME

METADATA = "metadata.json"
_FORMAT = 2
_PURPOSE = b"kperflab artifact\n"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class ArtifactMetadata:
    """The inputs of a build and its course.

    release: the output of `uname -r` in it. revision: commit. code_hash: equal for kernels whose loaded
    code and data are equal except for the release. layer: the key of the layer it was built over, "" if
    from nothing. Seconds are those of this build alone.
    """

    release: str
    tree: str
    revision: str
    tree_id: str
    base: str
    config_sha256: str
    toolchain: str
    toolchain_identity: str
    code_hash: str
    seconds_cpu: float
    seconds_wall: float
    layer: str
    built_at: str


@dataclass(frozen=True, slots=True)
class ArtifactRecord:
    """The contents of metadata.json. files: size in bytes and SHA-256 of each, by its path in the artifact."""

    metadata: ArtifactMetadata
    files: Mapping[str, tuple[int, str]]


def write_record(key: str, record: ArtifactRecord, seal: Seal) -> bytes:
    """Return the text of a metadata.json, signed. Raises HostUnfit."""
    said = {
        "format": _FORMAT,
        "key": key,
        "metadata": asdict(record.metadata),
        "files": {name: list(entry) for name, entry in record.files.items()},
    }
    return json.dumps({**said, "signature": asdict(seal.sign(_message(said)))}, indent=1).encode()


def is_signed(data: bytes) -> bool:
    """Return False for a metadata.json from before artifacts were signed, which counts as missing."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return True  # not a signature at all; the reader reports that
    return not isinstance(said, dict) or said.get("format") != 1


def read_record(data: bytes, key: str, seal: Seal) -> ArtifactRecord:
    """Read a metadata.json that anybody may have written.

    Raises ValueError if no machine of ours signed it for this key, and for content that no build of ours writes: names that
    lead elsewhere, or more and larger files than a build may produce.
    """
    try:
        said = json.loads(data)
        signature = said.pop("signature", None)
        if said["format"] != _FORMAT or signature is None:
            raise ValueError("it is not signed")
        if not all(isinstance(signature[field.name], str) for field in fields(Signature)):
            raise ValueError("its signature is malformed")
        seal.check(_message(said), Signature(signature["key"], signature["value"]))
        if said["key"] != key:
            raise ValueError(f"it was signed for artifact {str(said['key'])[:12]!a}")
        return _record(said["metadata"], said["files"])
    except (TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise ValueError("it is not a build's") from exc


def _message(said: Mapping[str, Any]) -> bytes:
    """Return the bytes to sign: all that was read, in one canonical form."""
    return _PURPOSE + json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def _record(content: Any, listed: Any) -> ArtifactRecord:
    wanted = {field.name: str if field.type == "str" else float for field in fields(ArtifactMetadata)}
    if not isinstance(content, dict) or set(content) != set(wanted) or not isinstance(listed, dict):
        raise ValueError("it has other fields than a build")
    metadata: dict[str, Any] = {name: _of_kind(content[name], kind) for name, kind in wanted.items()}
    if not all(isinstance(entry, list) and len(entry) == 2 for entry in listed.values()):
        raise ValueError("it gives a file other facts than size and hash")
    files = {name: (size, digest) for name, (size, digest) in listed.items()}
    if len(files) > MAX_FILES:
        raise ValueError(f"it lists {len(files)} files")
    for name, (size, digest) in files.items():
        if not PLAIN_NAME.fullmatch(name.removeprefix(f"{FOLDER}/")) or name in (METADATA, FOLDER):
            raise ValueError(f"it lists {name[:80]!a}")
        if type(size) is not int or not 0 <= size <= MAX_FILE or not isinstance(digest, str):
            raise ValueError(f"it gives {name[:80]!a} no size and hash")
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"it gives {name[:80]!a} no SHA-256")
    if sum(size for size, _ in files.values()) > MAX_TOTAL:
        raise ValueError("it lists more bytes than a build may hand out")
    return ArtifactRecord(ArtifactMetadata(**metadata), files)


def _of_kind(value: object, kind: type) -> object:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str) and len(value) <= _LONGEST:
        return value
    raise ValueError("it has a field of a type that no build writes")
