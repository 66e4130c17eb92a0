# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that the compiler front compiled of trusted bases, in the store for the lab's other builders: a pack for each build.

A pack lies at `compiled/<SHA-256 of its tar>`: the public key of the machine that made it, its signature, then the tar, whose members
have their names in the front's stores. Only packs that a machine of this lab signed since trust was last withdrawn are taken:
the withdrawal's token is part of what is signed.
"""

import hashlib
import io
import json
import logging
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kernels.artifacts.signature import Seal, Signature
from kernels.artifacts.store import KEYS
from kernels.builds.compiled_files import TRUSTED, CompiledFiles
from kernels.files.scratch import locked
from lab.errors import StoreLacks
from lab.storage.signing_keys import is_ours
from lab.storage.store import Store

log = logging.getLogger(__name__)

FOLDER = "compiled"
# Of one pack, and of all that are fetched before one build: the newest first.
LARGEST_PACK, MOST_AT_ONCE = 1 << 30, 4 << 30
# Digits of an Ed25519 key and of its signature.
_KEY, _VALUE = 64, 128
_CHUNK = 1 << 20


def send_packs(store: Store, home: Path, files: CompiledFiles) -> int:
    """Send what builds of this process have added to the trusted files; return how many files. Raises as Store.put, HostUnfit."""
    names = list(files.added)
    if not names:
        return 0
    with tempfile.TemporaryFile(prefix="kperflab-send-") as out:
        # Room for the signature, which is over what follows.
        out.write(bytes(_KEY + _VALUE))
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name in names:
                data = files.read(TRUSTED, name)
                about = tarfile.TarInfo(name)
                about.size = len(data)
                tar.addfile(about, io.BytesIO(data))
        out.seek(_KEY + _VALUE)
        digest = hashlib.file_digest(out, "sha256").hexdigest()
        seal = Seal(home / KEYS).sign(_message(digest, files.withdrawal))
        out.seek(0)
        out.write(f"{seal.key}{seal.value}".encode())
        out.seek(0)
        store.put(f"{FOLDER}/{digest}", out)
    _note(home, [digest])
    del files.added[: len(names)]
    return len(names)


def fetch_packs(store: Store, home: Path, files: CompiledFiles, on_wait: Callable[[], None]) -> int:
    """Take the packs that this machine has not seen into the trusted files; return how many files.

    A pack that is damaged or of no machine of this lab is refused, with a line in the log. Raises what the store raises.
    """
    seen, taken, room = _seen(home), 0, MOST_AT_ONCE
    for entry in sorted(store.entries(FOLDER), key=lambda entry: entry.written_at, reverse=True):
        digest = entry.name.removeprefix(f"{FOLDER}/")
        if digest in seen:
            continue
        room -= entry.size
        if room < 0:
            break
        on_wait()
        try:
            taken += _fetch(store, home, digest, files, on_wait)
        except StoreLacks:  # removed meanwhile
            continue
        except (ValueError, tarfile.TarError) as exc:
            log.warning("pack %s of compiled files is refused: %s", digest[:12], exc)
        _note(home, [digest])
    return taken


def _fetch(store: Store, home: Path, digest: str, files: CompiledFiles, on_wait: Callable[[], None]) -> int:
    """Take one pack. Raises ValueError and TarError for an invalid one."""
    with (
        store.reading(f"{FOLDER}/{digest}") as stream,
        tempfile.TemporaryFile(prefix="kperflab-fetch-") as file,
    ):
        size = 0
        while piece := stream.read(_CHUNK):
            on_wait()
            size += len(piece)
            if size > LARGEST_PACK:
                raise ValueError(f"it is larger than {LARGEST_PACK >> 20} MiB")
            file.write(piece)
        file.seek(0)
        head = file.read(_KEY + _VALUE).decode("ascii")
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise ValueError("it has other bytes than were sent")
        Seal(home / KEYS, is_ours).check(
            _message(digest, files.withdrawal), Signature(head[:_KEY], head[_KEY:])
        )
        file.seek(_KEY + _VALUE)
        return _unpack(file, files, on_wait)


def _unpack(file: IO[bytes], files: CompiledFiles, on_wait: Callable[[], None]) -> int:
    taken = 0
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            on_wait()
            content = tar.extractfile(member) if member.isreg() else None
            if content is None or not files.add_trusted(member.name, content.read()):
                raise ValueError(f"{member.name[:80]!a} is none of the front's files")
            taken += 1
    return taken


def _message(digest: str, withdrawal: str) -> bytes:
    return f"kperflab compiled files {digest}{' after ' * bool(withdrawal)}{withdrawal}".encode()


def _seen(home: Path) -> set[str]:
    """Return the packs that this machine has sent, taken or refused."""
    try:
        return set(json.loads(_list(home).read_text()))
    except (OSError, ValueError):
        return set()


def _note(home: Path, digests: list[str]) -> None:
    part = _list(home).with_suffix(".part")
    with locked(home / "objects" / "locks" / "compiled-packs"):
        part.write_text(json.dumps(sorted(_seen(home) | set(digests))))
        part.rename(_list(home))


def _list(home: Path) -> Path:
    return home / "objects" / "compiled-packs.json"
