# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn a source tarball into one git commit, streaming: decompressor, tar reader, `git fast-import`.

The commit depends on nothing but the archive's files: the same paths, modes and bytes give the same commit id on every
machine. No work tree is written, so .gitignore and properties of the file system have no effect.
"""

import os
import re
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from kernels.errors import DiskFull, GitFailed, HostUnfit, TreeUnreadable
from kernels.files.paths import Places, check_path, shown
from kernels.processes.environment import minimal
from kernels.trees.git import DISK_FULL, IDENTITY, git_command, git_environment

Progress = Callable[[float], None]

MAX_FILES = 400_000
MAX_FILE_BYTES = 256 << 20
MAX_BYTES = 16 << 30
# Limit of a long path or a set of attributes before a member, which tarfile reads in one piece.
MAX_HEADER_BYTES = 1 << 20
MAKEFILE_BYTES = 64 << 10
LONGEST_TAG = 100
DEADLINE_S = 1800.0
PROGRESS_EVERY_S = 0.2

# magic bytes → decompressor; -T0 helps with archives of many blocks, as Debian's are: 4 s instead of 8
DECOMPRESSORS: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
    (b"\xfd7zXZ\0", ("xz", "-dc", "-T0"), "xz-utils"),
    (b"\x1f\x8b", ("gzip", "-dc"), "gzip"),
    (b"BZh", ("bzip2", "-dc"), "bzip2"),
    (b"\x28\xb5\x2f\xfd", ("zstd", "-dcq"), "zstd"),
)
_VERSION = re.compile(rb"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*([\w.-]*)[ \t]*$", re.M)


_EXTENDED = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)


class _Member(tarfile.TarInfo):
    """A header that is refused if its size is invalid or would fill the memory, or if it describes a file with holes."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        most = MAX_HEADER_BYTES if self.type in _EXTENDED else MAX_BYTES
        if not 0 <= self.size <= most:
            raise TreeUnreadable(
                f"the archive has a header that names {self.size} bytes, at most {most} are read: this is not a kernel tree"
            )
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise _holes()
        return cast(tarfile.TarInfo, super()._proc_member(tar))  # type: ignore[misc]

    def _refuse_holes(self, *_: object) -> None:
        raise _holes()

    # tarfile reads the maps of such files without checking where they end.
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_holes


def _holes() -> TreeUnreadable:
    return TreeUnreadable("the archive holds a file with holes: a source tree has none")


@dataclass(slots=True)
class _Contents:
    """The archive's contents sent so far; blobs are known by mark, as fast-import counts them."""

    entries: dict[str, tuple[str, int]] = field(default_factory=dict)  # path → (mode, mark)
    places: Places = field(default_factory=Places)
    makefiles: dict[str, bytes] = field(default_factory=dict)
    total: int = 0


@dataclass(slots=True)
class _Watched:
    """A stream that counts the bytes read and remembers the end of the last one that is not zero."""

    stream: BinaryIO
    length: int = 0
    used: int = 0

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        if filled := len(data.rstrip(b"\0")):
            self.used = self.length + filled
        self.length += len(data)
        return data


def import_tar(archive: Path, repository: Path, on_progress: Progress) -> str:
    """Add the archive's files to a bare repository as a parentless commit; return its tag, such as v6.1.192.

    The tag is read from the archive's own top Makefile. `on_progress` gets the fraction done, 0 to 1.
    Raises TreeUnreadable, DiskFull, HostUnfit, GitFailed. No ref is changed unless it succeeds.
    """
    with tempfile.TemporaryFile() as complaints, _decompressed(archive) as (stream, position):
        importer = subprocess.Popen(
            git_command(
                f"--git-dir={repository}", "fast-import", "--quiet", "--force", "--depth=0", "--done"
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=git_environment(),
        )
        try:
            with cast(IO[bytes], importer.stdin) as pipe:  # closed without "done", it changes no ref
                tag = send_archive(stream, pipe, lambda: on_progress(position()))
        except BrokenPipeError:
            tag = ""  # fast-import died first; its status and complaints say why
        finally:
            status = importer.wait(timeout=DEADLINE_S)
        if status or not tag:
            complaints.seek(0)
            raise _import_failed(complaints.read().decode(errors="replace"), status)
    on_progress(1.0)
    return tag


def send_archive(stream: BinaryIO, pipe: IO[bytes], tick: Callable[[], None] = lambda: None) -> str:
    """Turn a tar stream into the commands of `git fast-import`; return the tag of its commit. Raises TreeUnreadable."""
    return _send_commit(_send_blobs(stream, pipe, tick), pipe)


def _import_failed(complaints: str, status: int) -> DiskFull | GitFailed:
    if DISK_FULL.search(complaints):
        return DiskFull(
            "the disk filled up while a source tree was imported: free some space, then try again"
        )
    return GitFailed(f"git fast-import ended with status {status}", complaints)


@contextmanager
def _decompressed(archive: Path) -> Iterator[tuple[BinaryIO, Callable[[], float]]]:
    """Yield the archive's tar stream, and a function that returns how far (0 to 1) its file has been read."""
    try:
        file = archive.open("rb")
    except OSError as exc:
        raise TreeUnreadable(f"the archive {archive} cannot be read: {exc.strerror}") from exc
    with file:
        size = max(1, os.fstat(file.fileno()).st_size)

        def position() -> float:
            # The child shares our open file description, so we see its offset.
            return min(1.0, os.lseek(file.fileno(), 0, os.SEEK_CUR) / size)

        magic = file.read(8)
        file.seek(0)
        for start, command, package in DECOMPRESSORS:
            if magic.startswith(start):
                with _piped(command, package, file, archive) as stream:
                    yield stream, position
                return
        yield file, position


@contextmanager
def _piped(command: tuple[str, ...], package: str, file: BinaryIO, archive: Path) -> Iterator[BinaryIO]:
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command, stdin=file, stdout=subprocess.PIPE, stderr=complaints, env=minimal()
            )
        except FileNotFoundError as exc:
            raise HostUnfit(f"{command[0]} is not installed: apt-get install {package}") from exc
        try:
            with cast(BinaryIO, process.stdout) as stream:
                yield stream
                while stream.read(
                    1 << 20
                ):  # skip padding after the end mark; closing early would look like a failure
                    pass
        except BaseException:
            process.kill()
            raise
        finally:
            status = process.wait(timeout=DEADLINE_S)
        if status:
            complaints.seek(0)
            detail = complaints.read().decode(errors="replace")
            raise TreeUnreadable(
                f"the archive {archive} is damaged: {command[0]} ended with status {status}", detail
            )


def _send_blobs(stream: BinaryIO, pipe: IO[bytes], tick: Callable[[], None]) -> _Contents:
    """Send every file's content to fast-import, in the archive's order."""
    contents, ends, due = _Contents(), time.monotonic() + DEADLINE_S, 0.0
    watched = _Watched(stream)
    try:
        with tarfile.open(
            fileobj=cast(BinaryIO, watched), mode="r|", bufsize=1 << 20, tarinfo=_Member
        ) as tar:
            for member in tar:
                _send_member(tar, member, contents, pipe)
                tar.members.clear()  # type: ignore[attr-defined]  # else it keeps all 80,000 headers
                now = time.monotonic()
                if now > ends:
                    raise TreeUnreadable(f"the import did not end within {DEADLINE_S:g} s")
                if now >= due:
                    tick()
                    due = now + PROGRESS_EVERY_S
            _check_end(watched, tar.offset)
    except (tarfile.TarError, ValueError, OverflowError, EOFError, IndexError, RecursionError) as exc:
        raise TreeUnreadable(f"the archive is not a whole tar file: {exc}") from exc
    if not contents.entries:
        raise TreeUnreadable("the archive holds no files")
    return contents


def _check_end(watched: _Watched, end: int) -> None:
    """Check that only zeros follow the end: tarfile takes a broken or missing header for the end, too."""
    while watched.read(1 << 20):
        pass
    if watched.used > end or watched.length < end + tarfile.BLOCKSIZE:
        raise TreeUnreadable(f"the archive is cut short or damaged {end} bytes into its tar stream")


def _send_member(tar: tarfile.TarFile, member: tarfile.TarInfo, contents: _Contents, pipe: IO[bytes]) -> None:
    if member.isdir():
        return  # git knows no empty directories
    path = _checked_path(member.name)
    contents.places.add(path)
    if len(contents.entries) >= MAX_FILES:
        raise TreeUnreadable(f"the archive holds more than {MAX_FILES:,} files: this is not a kernel tree")
    if member.islnk():
        target = _checked_path(member.linkname)
        if target not in contents.entries:
            raise TreeUnreadable(
                f'"{shown(path)}" is a hard link to "{shown(target)}", which is not in the archive before it'
            )
        contents.entries[path] = contents.entries[target]
        return
    if member.issym():
        mode, data = "120000", os.fsencode(member.linkname)
    elif member.isreg():
        mode, data = ("100755" if member.mode & 0o100 else "100644"), _content(tar, member)
    else:
        raise TreeUnreadable(
            f'"{shown(path)}" is neither a file nor a link: a source tree has no devices or pipes'
        )
    mark = len(contents.entries) + 1
    contents.total += len(data)
    if contents.total > MAX_BYTES:
        raise TreeUnreadable(f"the archive holds more than {MAX_BYTES >> 30} GiB: this is not a kernel tree")
    contents.entries[path] = (mode, mark)
    if path.split("/")[-1] == "Makefile" and path.count("/") <= 1:
        contents.makefiles[path] = data[:MAKEFILE_BYTES]
    pipe.write(b"blob\nmark :%d\ndata %d\n%s\n" % (mark, len(data), data))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > MAX_FILE_BYTES:
        raise TreeUnreadable(
            f"{shown(member.name)} is larger than {MAX_FILE_BYTES >> 20} MiB: this is not a kernel tree"
        )
    return cast(IO[bytes], tar.extractfile(member)).read()


def _checked_path(name: str) -> str:
    path = "/".join(part for part in name.split("/") if part != ".")
    try:
        check_path(path)
    except TreeUnreadable as exc:
        raise TreeUnreadable(
            f'the archive holds a file named "{shown(name)}", which would leave the tree: {exc}'
        ) from exc
    return path


def _send_commit(contents: _Contents, pipe: IO[bytes]) -> str:
    """Send the one commit that names all blobs; return the tag it got."""
    tops = {path.split("/", 1)[0] for path in contents.entries}
    strip = len(tops) == 1 and all("/" in path for path in contents.entries)
    top = f"{tops.pop()}/" if strip else ""
    tag = _version(contents.makefiles.get(f"{top}Makefile", b""))
    message = f"Source of {tag}, from a tarball\n".encode()
    pipe.write(b"commit refs/tags/%s\nmark :%d\n" % (tag.encode(), len(contents.entries) + 1))
    pipe.write(b"committer %s 0 +0000\ndata %d\n%s\n" % (IDENTITY.encode(), len(message), message))
    for path, (mode, mark) in contents.entries.items():
        quoted = path[len(top) :].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        pipe.write(b'M %s :%d "%s"\n' % (mode.encode(), mark, os.fsencode(quoted)))
    pipe.write(b"\nreset refs/heads/main\nfrom :%d\n\ndone\n" % (len(contents.entries) + 1))
    return tag


def _version(makefile: bytes) -> str:
    """Return the tag for the version in a kernel's top Makefile. Raises TreeUnreadable if it names none."""
    parts = {key.decode(): value.decode() for key, value in _VERSION.findall(makefile)}
    numbers = [parts.get(key, "") for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(number.isdigit() for number in numbers):
        raise TreeUnreadable(
            "the archive is not a kernel source: its top Makefile names no VERSION, PATCHLEVEL and SUBLEVEL"
        )
    tag = f"v{'.'.join(numbers)}{parts.get('EXTRAVERSION', '')}"
    if len(tag) > LONGEST_TAG or ".." in tag or tag.endswith((".", ".lock")):
        raise TreeUnreadable(f'the archive calls itself "{shown(tag)}", which cannot be the name of a tag')
    return tag
