# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn uploaded files into mails: mboxes, patches, and tar archives of them, all in memory and within stated limits.

Nothing is written to disk. An archive is decompressed into a buffer, and refused if it does not fit, before a tar
reader sees any of it: that stops bombs, and headers that lie about a size.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kernels.diffs.safety import MAX_INPUT_BYTES, MAX_PATCHES
from kernels.errors import MailUnreadable, PatchRejected
from kernels.mails.letters import MBOX_LINE, read_letters
from kernels.mails.mbox import BOM
from kernels.mails.mime import unix_lines

# A cover letter beside the patches.
MAX_MEMBERS = MAX_PATCHES + 1
MAX_UPLOAD_BYTES = 8 * 1024 * 1024
MAX_UNPACKED_BYTES = MAX_INPUT_BYTES
SUFFIXES = (".patch", ".diff", ".mbox", ".mbx", ".eml", ".txt")

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
_TAR_MAGIC = slice(257, 262)
_XZ_MEMORY = 128 * 1024 * 1024
_STEP = 64 * 1024
_FROM = MBOX_LINE.encode() + b"\n"
_FROM_LINE = re.compile(rb"\A>?From \S+ ")


@dataclass(frozen=True, slots=True)
class Upload:
    """One file as it was sent, or as it was in an archive."""

    name: str
    data: bytes


def unpack(upload: Upload) -> tuple[Upload, ...]:
    """Return the files of an upload: its members if it is an archive, by name; else itself, decompressed.

    Raises PatchRejected, naming the file and the limit.
    """
    if len(upload.data) > MAX_UPLOAD_BYTES:
        raise PatchRejected(f"it is larger than {MAX_UPLOAD_BYTES >> 20} MiB", file=_shown(upload.name))
    data = _decompressed(upload)
    if data[_TAR_MAGIC] != b"ustar":
        return (Upload(re.sub(r"\.(gz|xz)$", "", upload.name), data),)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            return _members(upload.name, archive)
    except (
        tarfile.TarError,
        EOFError,
        ValueError,
        OSError,
        OverflowError,
        IndexError,
        RecursionError,
    ) as exc:
        raise PatchRejected(f"this archive cannot be read: {exc}", file=_shown(upload.name)) from exc


def join(files: Sequence[Upload]) -> bytes:
    """Return one mbox of several files, in their order; a bare mail or diff becomes a letter of its own.

    Raises MailUnreadable, naming the file.
    """
    return b"\n".join(_as_mbox(file) for file in files)


def one_series(files: Sequence[Upload]) -> bool:
    """Return whether several files are the parts of one series, judging by the n/m of their subjects."""
    try:
        letters = [letter for file in files for letter in read_letters(file.data)[:1]]
    except MailUnreadable:
        return False
    if len(files) < 2 or len(letters) < len(files):
        return False
    places = {letter.title.number for letter in letters}
    alike = {(letter.title.total, letter.title.version) for letter in letters}
    return len(alike) == 1 and letters[0].title.total > 1 and len(places) == len(letters)


def _decompressed(upload: Upload) -> bytes:
    try:
        if upload.data.startswith(_GZIP):
            return _inflated(upload, lambda: zlib.decompressobj(wbits=31))
        if upload.data.startswith(_XZ):
            return _inflated(upload, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))
    except (zlib.error, lzma.LZMAError, EOFError) as exc:
        raise PatchRejected(f"it cannot be decompressed: {exc}", file=_shown(upload.name)) from exc
    return upload.data


def _inflated(upload: Upload, make: Callable[[], zlib._Decompress | lzma.LZMADecompressor]) -> bytes:
    """Decompress step by step, including streams that follow one another. Raises PatchRejected above the limit."""
    out, rest = bytearray(), upload.data
    while rest.strip(b"\0"):
        stream = make()
        while not stream.eof:
            piece = stream.decompress(rest, _STEP)
            rest = getattr(stream, "unconsumed_tail", b"")
            if not piece and not rest and not stream.eof:
                raise EOFError("it ends in the middle")
            out += piece
            if len(out) > MAX_UNPACKED_BYTES:
                raise PatchRejected(
                    f"unpacked it is larger than {MAX_UNPACKED_BYTES >> 20} MiB; send the patches alone",
                    file=_shown(upload.name),
                )
        rest = stream.unused_data
    return bytes(out)


def _members(name: str, archive: tarfile.TarFile) -> tuple[Upload, ...]:
    members: list[tarfile.TarInfo] = []
    for member in archive:
        if member.isdir():
            continue
        _check_member(name, member)
        members.append(member)
        if len(members) > MAX_MEMBERS:
            raise PatchRejected(f"it holds more than {MAX_MEMBERS} files; split it", file=_shown(name))
    if not members:
        raise PatchRejected("there is no file in this archive", file=_shown(name))
    files = []
    for member in sorted(members, key=lambda tarinfo: tarinfo.name):
        body = archive.extractfile(member)
        files.append(Upload(PurePosixPath(member.name).name, body.read() if body else b""))
    return tuple(files)


def _check_member(name: str, member: tarfile.TarInfo) -> None:
    """Refuse anything but a plain patch file: links, devices, holes, and names that lead elsewhere."""
    where = _shown(f"{name}, {member.name}")
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise PatchRejected("only plain files are accepted, no links and no devices", file=where)
    parts = member.name.removeprefix("./").split("/")
    if len(parts) > 2 or any(part in ("", ".", "..") for part in parts):
        raise PatchRejected("its name is a path; put the patches side by side, in one folder", file=where)
    if not parts[-1].lower().endswith(SUFFIXES):
        raise PatchRejected(f"only files named {', '.join(SUFFIXES)} are accepted; leave it out", file=where)


def _as_mbox(file: Upload) -> bytes:
    data = unix_lines(file.data.removeprefix(BOM))
    if not _is_mail(file.name, data):
        subject = PurePosixPath(file.name).stem.encode("ascii", "replace").decode()
        data = f"From: \nSubject: {subject}\n\n---\n".encode() + data
    if not _FROM_LINE.match(data):
        data = _FROM + data.lstrip()
    return data.rstrip(b"\n") + b"\n\n"


def _is_mail(name: str, data: bytes) -> bool:
    try:
        return bool(read_letters(data))
    except MailUnreadable as exc:
        raise MailUnreadable(str(exc), file=_shown(name)) from exc


def _shown(name: str) -> str:
    return name[:200].encode("unicode_escape").decode("ascii")
