# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zlib

import pytest

from kernels.errors import PatchRejected
from kernels.mails import uploads as bundle
from kernels.mails.uploads import Upload, join, one_series, unpack
from kernels.patches.series import read_series

DIFF = "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n"


def mail(number: int, total: int = 2, version: int = 1) -> bytes:
    subject = f"[PATCH v{version} {number}/{total}] fs: part {number}"
    head = (
        "From "
        + "0" * 40
        + f" Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: {subject}\n\nwhy\n"
    )
    return f"{head}---\n{DIFF.format(name=f'f{number}.c')}-- \n2.39\n\n".encode()


def archive(files: dict[str, bytes], mode: str = "w", extra: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in extra:
            tar.addfile(member)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_is_its_patches_in_the_order_of_their_names(mode: str) -> None:
    data = archive({"out/0002-b.patch": mail(2), "out/0001-a.patch": mail(1)}, mode)
    files = unpack(Upload("series.tar", data))
    assert [file.name for file in files] == ["0001-a.patch", "0002-b.patch"]
    series = read_series(join(files))
    assert [patch.title for patch in series.patches] == ["fs: part 1", "fs: part 2"]


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress, lambda data: data])
def test_a_compressed_mbox_is_that_mbox(squeeze: object) -> None:
    data = mail(1) + mail(2)
    (file,) = unpack(Upload("t.mbox.gz", squeeze(data)))  # type: ignore[operator]
    assert (file.name, file.data) == ("t.mbox", data)


def test_files_of_one_series_are_known_by_their_numbers() -> None:
    first, second = Upload("a", mail(1)), Upload("b", mail(2))
    assert one_series([first, second])
    assert not one_series([first, first])
    assert not one_series([first])
    assert not one_series([first, Upload("b", mail(2, version=2))])
    assert not one_series([Upload("a", mail(1, 1)), Upload("b", DIFF.format(name="x").encode())])


def test_plain_diffs_are_joined_as_letters_named_after_their_files() -> None:
    files = [Upload(f"{name}.diff", DIFF.format(name=f"{name}.c").encode()) for name in ("one", "two")]
    series = read_series(join(files))
    assert [(patch.title, patch.files) for patch in series.patches] == [
        ("one", ("one.c",)),
        ("two", ("two.c",)),
    ]


def test_line_ends_that_belong_to_a_file_are_the_same_in_one_upload_and_in_several() -> None:
    other = mail(2).replace(b"\n-a\n+b\n", b"\n-a\r\n+b\r\n")
    (alone,) = read_series(other, partial=True).patches
    _, beside = read_series(join([Upload("1.patch", mail(1)), Upload("2.patch", other)])).patches
    assert "+b\r\n" in alone.diff
    assert beside.diff == alone.diff


@pytest.mark.parametrize("cut", [0, 2])
def test_line_ends_of_a_whole_upload_are_the_mailers(cut: int) -> None:
    mailed = mail(2).rstrip(b"\n").replace(b"\n", b"\r\n") + b"\r\n"
    files = [Upload("1.patch", mail(1)), Upload("2.patch", mailed[: len(mailed) - cut])]
    assert [patch.diff for patch in read_series(join(files)).patches] == [
        patch.diff for patch in read_series(mail(1) + mail(2)).patches
    ]


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type = kind
    for key, value in fields.items():
        setattr(header, key, value)
    return header


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (member("../../etc/cron.d/x.patch"), "is a path"),
        (member("/etc/x.patch"), "is a path"),
        (member("a/b/x.patch"), "is a path"),
        (member("x.patch", tarfile.SYMTYPE, linkname="/etc/passwd"), "no links"),
        (member("x.patch", tarfile.LNKTYPE, linkname="y.patch"), "no links"),
        (member("x.patch", tarfile.FIFOTYPE), "no links"),
        (member("x.patch", tarfile.CHRTYPE), "no links"),
        (member("run.sh"), "only files named"),
    ],
)
def test_what_is_no_plain_patch_file_is_refused(what: tarfile.TarInfo, said: str) -> None:
    with pytest.raises(PatchRejected, match=said):
        unpack(Upload("s.tar", archive({"0001-a.patch": mail(1)}, extra=(what,))))


def test_an_archive_of_too_many_files_is_refused() -> None:
    data = archive({f"{number:04}.patch": b"x" for number in range(bundle.MAX_MEMBERS + 1)})
    with pytest.raises(PatchRejected, match="more than 201 files"):
        unpack(Upload("s.tar", data))


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_before_it_is_unpacked(squeeze: object) -> None:
    bomb = squeeze(bytes(bundle.MAX_UNPACKED_BYTES + 1))  # type: ignore[operator]
    assert len(bomb) < 100_000
    with pytest.raises(PatchRejected, match="unpacked it is larger than 16 MiB"):
        unpack(Upload("bomb.tar.gz", bomb))


def test_a_bomb_of_many_streams_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_UNPACKED_BYTES", 10_000)
    with pytest.raises(PatchRejected, match="unpacked"):
        unpack(Upload("bomb.gz", gzip.compress(bytes(9_000)) * 2))


def test_a_bomb_within_a_bomb_stays_packed() -> None:
    (file,) = unpack(Upload("x.gz", gzip.compress(gzip.compress(b"diff"))))
    assert gzip.decompress(file.data) == b"diff"


def test_an_upload_over_its_size_is_refused_by_its_name() -> None:
    with pytest.raises(PatchRejected, match=r"big\.mbox: it is larger than 8 MiB"):
        unpack(Upload("big.mbox", bytes(bundle.MAX_UPLOAD_BYTES + 1)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"x" * 1000, mtime=0)[:20], "cannot be decompressed: it ends in the middle"),
        (b"\x1f\x8bnot gzip", "cannot be decompressed"),
        (b"\xfd7zXZ\0broken", "cannot be decompressed"),
        (zlib.compress(b"x")[:1] + b"\0" * 256 + b"ustar broken", "archive cannot be read: truncated header"),
    ],
)
def test_a_broken_archive_is_told_in_a_line(data: bytes, said: str) -> None:
    with pytest.raises(PatchRejected, match=said) as refused:
        read(Upload("s.tar.gz", data))
    assert "\n" not in str(refused.value)


def read(upload: Upload) -> None:
    read_series(join(unpack(upload)))


def test_a_tar_whose_header_lies_about_a_size_is_refused() -> None:
    data = archive({"0001.patch": b"x"})
    lying = data[:124] + b"77777777777\0" + data[136:]
    with pytest.raises(PatchRejected):
        read(Upload("s.tar", lying))


def test_headers_that_the_standard_library_fails_on_are_refused() -> None:
    long_name = member("x", tarfile.GNUTYPE_LONGNAME, size=1).tobuf(tarfile.GNU_FORMAT) + b"x" + bytes(511)
    holes = bytearray(member("x", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    holes[482] = 1  # the rest of the map follows
    holes[148:155] = b"%06o\0" % tarfile.calc_chksums(holes)[0]  # type: ignore[attr-defined]
    for data in (long_name * 2_000, bytes(holes)):
        with pytest.raises(PatchRejected, match="this archive cannot be read"):
            unpack(Upload("s.tar", data))
