# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives that lie about sizes, name odd files, or unpack to more than any kernel has."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest

from kernels.errors import TreeUnreadable
from kernels.tests.sources import FILES, MAKEFILE, make_archive
from kernels.trees import tarball as archive
from kernels.trees.tree import import_archive

pytestmark = [pytest.mark.hostile, pytest.mark.process]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def header(name: bytes, kind: bytes, size: bytes, data: bytes = b"") -> bytes:
    """A header as no program writes it; size: 12 bytes."""
    raw = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size + b"00000000000\0" + b" " * 8 + kind
    raw = raw.ljust(257, b"\0") + b"ustar\x0000"
    raw = raw.ljust(512, b"\0")
    checksum = b"%06o\0 " % sum(raw)
    raw = raw[:148] + checksum + raw[156:]
    return raw + data + b"\0" * (-len(data) % 512)


def refused(place: Path, file: Path, said: str) -> None:
    """Import the file: it is refused in these words, and no tree and no trace of it is there."""
    with pytest.raises(TreeUnreadable, match=said) as error:
        import_archive("t", file, place / "trees")
    assert str(error.value).isprintable()
    assert [path.name for path in (place / "trees").iterdir()] == [".t.lock"]


NAMES = [
    "../x", "l/../x", "/etc/passwd", "l/.git/config", "l/.GIT/config", "l/git~1/x", "l/.git /x", "l/.git.../x", "l/.git::$DATA",
    "l/.g\u200cit/x", "l//x", "l/..", "..", "l/..\\..\\x", "l/a\\.git\\x", "l/" + "n" * 300, "l/" + "d/" * 3000 + "x",
]  # fmt: skip


def test_an_archive_without_a_single_file_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w"):
        pass
    refused(tmp_path, tmp_path / "a.tar", "holds no files")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leaves_the_tree_is_refused(name: str, tmp_path: Path) -> None:
    file = make_archive(tmp_path / "a.tar", top="l/", extra=(member(name),))
    refused(tmp_path, file, "which would leave the tree")


@pytest.mark.parametrize("target", ["../x", "/etc/passwd", "l/.git/config", "l/nowhere", ""])
def test_a_hard_link_to_what_is_not_in_the_archive_is_refused(target: str, tmp_path: Path) -> None:
    file = make_archive(tmp_path / "a.tar", top="l/", extra=(member("l/x", tarfile.LNKTYPE, target),))
    refused(tmp_path, file, "is a hard link to|which would leave the tree")


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ((member("l/Makefile"),), '"l/Makefile" twice'),
        ((member("l/Makefile", tarfile.LNKTYPE, "l/fs/dir.c"),), '"l/Makefile" twice'),
        ((member("l/Makefile/x"),), '"l/Makefile" as a file and as a folder'),
        ((member("l/fs", tarfile.SYMTYPE, "/etc"),), '"l/fs" as a file and as a folder'),
        ((member("l/s", tarfile.SYMTYPE, "/etc"), member("l/s/x")), '"l/s" as a file and as a folder'),
        ((member("l/p", tarfile.FIFOTYPE),), "neither a file nor a link"),
        ((member("l/b", tarfile.BLKTYPE),), "neither a file nor a link"),
        ((member("l/h", tarfile.GNUTYPE_SPARSE),), "a file with holes"),
    ],
)
def test_entries_that_are_no_plain_tree_are_refused(
    extra: tuple[tarfile.TarInfo, ...], said: str, tmp_path: Path
) -> None:
    refused(tmp_path, make_archive(tmp_path / "a.tar", top="l/", extra=extra), said)


HEADERS = {
    "a path of a gigabyte": (header(b"l/x", b"L", b"10000000000\0"), "names 1073741824 bytes"),
    "attributes of a gigabyte": (header(b"l/x", b"x", b"10000000000\0"), "names 1073741824 bytes"),
    "attributes of all of a gigabyte": (header(b"l/x", b"g", b"10000000000\0"), "names 1073741824 bytes"),
    "a link's target of a gigabyte": (header(b"l/x", b"K", b"10000000000\0"), "names 1073741824 bytes"),
    "a file of less than nothing": (header(b"l/x", b"0", b"\xff" * 12), "names -1 bytes"),
    "a file of exabytes": (header(b"l/x", b"0", b"\x80" + b"\x7f" * 11), "at most 17179869184 are read"),
    "a file of 300 MiB": (header(b"l/x", b"0", b"02260000000\0"), "larger than 256 MiB"),
    "attributes about themselves": (header(b"l/x", b"x", b"00000000001\0", b"x") * 3, "whole tar file|cut short"),
    "a thousand sets of attributes": (
        header(b"l/x", b"x", b"00000000013\0", b"11 path=ab\n") * 3000, "whole tar file",
    ),
    "a file with a map of holes": (
        header(b"l/x", b"x", b"00000000050\0", b"22 GNU.sparse.major=1\n18 GNU.sparse.mi"), "whole tar file|cut short|holes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_that_lies_is_refused(kind: str, tmp_path: Path) -> None:
    raw, said = HEADERS[kind]
    first = make_archive(tmp_path / "a.tar", top="l/").read_bytes().rstrip(b"\0")
    padded = first + b"\0" * (-len(first) % 512)
    (tmp_path / "b.tar").write_bytes(padded + raw + bytes(1024))
    refused(tmp_path, tmp_path / "b.tar", said)


@pytest.mark.parametrize("packed", ["gz", "xz", "zst"])
def test_an_archive_that_unpacks_to_more_than_any_kernel_ends_at_the_limit(
    packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 MiB of zeros stand for 16 GiB: a few KiB packed."""
    monkeypatch.setattr(archive, "MAX_BYTES", 8 << 20)
    tar = make_archive(tmp_path / "a.tar", {**FILES, "bomb": bytes(16 << 20)}, top="l/").read_bytes()
    file = tmp_path / f"a.tar.{packed}"
    if packed == "zst":
        subprocess.run(["zstd", "-q", "-o", str(file)], input=tar, check=True)
    else:
        file.write_bytes(gzip.compress(tar) if packed == "gz" else lzma.compress(tar))
    assert file.stat().st_size < 64 << 10
    refused(tmp_path, file, "names 16777216 bytes, at most 8388608 are read")


def test_more_files_than_any_kernel_are_refused_hard_links_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 20)
    links = tuple(member(f"l/{number}", tarfile.LNKTYPE, "l/Makefile") for number in range(20))
    refused(tmp_path, make_archive(tmp_path / "a.tar", top="l/", extra=links), "more than 20 files")


@pytest.mark.parametrize("extra", [b"..", b"-a..b", b".lock", b"x" * 200, b"."])
def test_a_version_that_is_no_name_of_a_tag_is_refused(extra: bytes, tmp_path: Path) -> None:
    makefile = MAKEFILE.replace(b"EXTRAVERSION =", b"EXTRAVERSION = " + extra)
    file = make_archive(tmp_path / "a.tar", {**FILES, "Makefile": makefile})
    refused(tmp_path, file, "which cannot be the name of a tag")


def test_a_name_that_speaks_to_git_or_to_a_terminal_is_only_a_name(tmp_path: Path) -> None:
    """fast-import reads commands line by line; a name with line breaks stays one name."""
    name = 'a"\nreset refs/heads/main\nfrom :1\n\x1b[2J'
    tree = import_archive("t", make_archive(tmp_path / "a.tar", {**FILES, name: b"x"}), tmp_path / "trees")
    listed = subprocess.run(
        ["git", f"--git-dir={tree.repository}", "ls-tree", "-r", "-z", "--name-only", tree.default_revision],
        check=True,
        capture_output=True,
    )
    assert name.encode() in listed.stdout.split(b"\0")


def test_a_stream_without_an_end_is_refused(tmp_path: Path) -> None:
    pipe, stream = io.BytesIO(), io.BytesIO(make_archive(tmp_path / "a.tar").read_bytes()[:2048])
    with pytest.raises(TreeUnreadable, match=r"cut short|whole tar file"):
        archive.send_archive(stream, pipe)
