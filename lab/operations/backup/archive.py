# SPDX-License-Identifier: GPL-2.0-or-later
"""The file of a backup: a zip with a manifest of every member's size and SHA-256.

It holds rows and files, never statements or programs: restoring one cannot run code that somebody put into it. Reading trusts nothing:
names are of a few forms, members are plain files, none is longer than the manifest says, and all are checked before one is used.
"""

import hashlib
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lab.errors import BackupRefused
from lab.one_line import error_line

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SECRET: Final = "secret.key"  # noqa: S105  a name
PIECE: Final = 1 << 20
# A manifest of a million files is smaller.
_LONGEST_MANIFEST: Final = 256 << 20
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,199}"
_NAME: Final = re.compile(
    rf"secret\.key|tables/[a-z][a-z0-9_]{{0,62}}|files/(?:runs|artifacts|profiles)/{_PART}(?:/{_PART}){{0,6}}"
)


class Closed(BaseModel):
    """A model that accepts its own fields alone, of exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Member(Closed):
    """One file of the archive."""

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class TableDump(Closed):
    """The columns of one table in the order of its rows, and how many there are."""

    columns: list[str]
    rows: int = Field(ge=0)


class Manifest(Closed):
    """The origin of a backup. migrations: `app.name` of all that its tables had; vendor: postgresql or sqlite."""

    format: int
    made_at: str
    version: str
    vendor: str
    home: str
    migrations: list[str]
    settings: dict[str, str]
    tables: dict[str, TableDump]
    members: dict[str, Member]


class Writer:
    """Writes members one after another; `finish` adds the manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.members: dict[str, Member] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Add one member of any length, and record its size and SHA-256."""
        digest, size = hashlib.sha256(), 0
        with self._archive.open(name, "w", force_zip64=True) as member:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                member.write(piece)
        self.members[name] = Member(size=size, sha256=digest.hexdigest())

    def finish(self, **about: Any) -> Manifest:
        """Write the manifest. about: its fields besides the members."""
        manifest = Manifest(format=FORMAT, members=self.members, **about)
        self._archive.writestr(MANIFEST, manifest.model_dump_json())
        return manifest


@contextmanager
def writing(file: Path) -> Iterator[Writer]:
    """Write an archive, readable by its owner alone, that appears whole or not at all."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as plain:
            with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                yield Writer(archive)
            plain.flush()
            os.fsync(plain.fileno())
        draft.replace(file)
    except OSError as exc:
        raise BackupRefused(f"cannot write {file}: {exc.strerror or exc}") from exc
    finally:
        draft.unlink(missing_ok=True)


class Reader:
    """An archive whose manifest and list of members are well-formed."""

    def __init__(self, file: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self.file, self.manifest = file, manifest
        self._archive = archive

    def verify(self) -> int:
        """Read everything once and compare. Returns the number of bytes. Raises BackupRefused."""
        return sum(len(piece) for name in self.manifest.members for piece in self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes. Raises BackupRefused at its end unless they are what the manifest says."""
        wanted = self.manifest.members[name]
        digest, left = hashlib.sha256(), wanted.size
        with _translated(self.file), self._archive.open(name) as member:
            while piece := member.read(PIECE):
                left -= len(piece)
                if left < 0:
                    raise BackupRefused(f"{self.file}: {name} is longer than its manifest says")
                digest.update(piece)
                yield piece
        if left or digest.hexdigest() != wanted.sha256:
            raise BackupRefused(f"{self.file}: {name} is damaged: its SHA-256 is not the manifest's")

    def files(self) -> Iterator[str]:
        """The names of members that are files of the home."""
        return (name for name in self.manifest.members if name.startswith("files/"))


@contextmanager
def reading(file: Path) -> Iterator[Reader]:
    """Open an archive and check its form. Raises BackupRefused."""
    with _translated(file), file.open("rb") as plain, zipfile.ZipFile(plain) as archive:
        names = _plain_names(file, archive)
        manifest = _manifest(file, archive)
        if names != manifest.members.keys():
            odd = sorted(names ^ manifest.members.keys())[0]
            raise BackupRefused(f"{file}: {odd[:200]!r} is not both in the archive and in its manifest")
        if SECRET not in names or manifest.members[SECRET].size > 4096:
            raise BackupRefused(f"{file}: holds no secret key")
        yield Reader(file, archive, manifest)


@contextmanager
def _translated(file: Path) -> Iterator[None]:
    """Translate the library's errors into ours."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as exc:
        raise BackupRefused(f"{file} is not a complete backup of a lab: {error_line(exc)}") from exc
    except OSError as exc:
        raise BackupRefused(f"cannot read {file}: {exc.strerror or exc}") from exc


def _plain_names(file: Path, archive: zipfile.ZipFile) -> set[str]:
    """The members beside the manifest: known forms of names, plain files, each once."""
    names: set[str] = set()
    for member in archive.infolist():
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or member.is_dir() or member.flag_bits & 1:
            raise BackupRefused(f"{file}: {member.filename[:200]!r} is not a regular file")
        if member.filename in names:
            raise BackupRefused(f"{file}: {member.filename[:200]!r} appears twice")
        if member.filename != MANIFEST and not _NAME.fullmatch(member.filename):
            raise BackupRefused(f"{file}: {member.filename[:200]!r} is not a name of a file in a backup")
        names.add(member.filename)
    if MANIFEST not in names:
        raise BackupRefused(f"{file} is not a backup of a lab: it has no {MANIFEST}")
    return names - {MANIFEST}


def _manifest(file: Path, archive: zipfile.ZipFile) -> Manifest:
    with archive.open(MANIFEST) as member:
        text = _at_most(member, _LONGEST_MANIFEST)
    try:
        raw = json.loads(text)
        # This code cannot judge what a later format adds, so the format's number is checked first.
        if isinstance(raw, dict) and isinstance(raw.get("format"), int) and raw["format"] > FORMAT:
            raise BackupRefused(
                f"{file} has a newer format ({raw['format']}) than this code knows: update kperflab first"
            )
        return Manifest.model_validate(raw)
    except (ValidationError, RecursionError, json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise BackupRefused(f"{file}: its manifest is not valid: {error_line(exc)}") from exc


def _at_most(member: IO[bytes], limit: int) -> bytes:
    text = member.read(limit + 1)
    if len(text) > limit:
        raise BackupRefused("its manifest is longer than any backup's")
    return text
