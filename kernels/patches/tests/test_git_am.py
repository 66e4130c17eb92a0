# SPDX-License-Identifier: GPL-2.0-or-later
"""git's own `git am` is the judge: where it applies a mail, we apply it to the same tree, whatever bytes it holds."""

from __future__ import annotations

import base64
import os
import quopri
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.mails.letters import as_text
from kernels.patches.apply import apply_patches
from kernels.patches.series import read_range, read_series
from kernels.repair.intake import take_in
from kernels.trees.tree import SourceTree, read_file, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]

# Path → the file, and the file with the patch.
FILES: dict[str, tuple[bytes, bytes]] = {
    "plain.c": (b"int a;\nint b;\nint c;\n", b"int a;\nint d;\nint c;\n"),
    "utf8.c": ("/* größer */\nint b;\n".encode(), "/* größer */\nint höher;\n".encode()),
    "latin1.c": (b"/* gr\xf6\xdfer */\nint b;\n", b"/* gr\xf6\xdfer */\nchar h = '\xe9';\n"),
    "gb18030.c": ("/* 中国 */\nint b;\n".encode("gb18030"), "/* 中国 */\nint b; /* 国 */\n".encode("gb18030")),
    "iso2022.c": ("/* 山田 */\nint b;\n".encode("iso-2022-jp"), "/* 田 */\nint b;\n".encode("iso-2022-jp")),
    "mixed.c": (b"\xff\xfe\nint b;\n\xc3\xa9\n", b"\xff\xfe\nint d;\n\xc3\xa9\n\x80\n"),
    "formfeed.c": (b"int a;\n\x0c\nint b;\n", b"int a;\n\x0c\nint d;\n\x1b[1m\n"),
    "crlf.ini": (b"[a]\r\nb=1\r\n", b"[a]\r\nb=2\r\n"),
    "blanks.c": (b"int a; \n\t \nint b;\n", b"int a; \n\t \nint d;\t\n  \n"),
    "flowed.c": (b" int a; \n  x\n>y\nint b;\n", b" int a; \n  x\n>y\nint d; \n>z\nFrom me\n"),
    "noend.c": (b"int a;\nint b;", b"int a;\nint d;"),
}  # fmt: skip
IDENTITY = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (
    ("NAME", "Zoë"), ("EMAIL", "zoe@example.org"), ("DATE", "2024-06-11T19:38:22 +0200"))}  # fmt: skip
Wrap = Callable[[bytes, bytes], bytes]


class Work:
    """A repository with a branch for each file, on which that file is changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        for name, (before, _) in FILES.items():
            (path / name).write_bytes(before)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "base")
        for name, (_, after) in FILES.items():
            self.git("checkout", "-q", "-b", f"with-{name}", "main")
            (path / name).write_bytes(after)
            self.git("commit", "-q", "-a", "-m", f"{name}: change größer\n\nWhy it is 'größer'.")
        self.git("checkout", "-q", "main")

    def git(self, *arguments: str, data: bytes = b"", check: bool = True) -> bytes:
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=clean | IDENTITY,
            capture_output=True,
            input=data,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if not done.returncode else b""

    def mail(self, name: str, *options: str) -> bytes:
        return self.git("format-patch", "--stdout", "--text", *options, f"main..with-{name}")

    def am(self, data: bytes) -> str:
        """The tree that git makes of a mail, "" where it refuses it."""
        self.git("checkout", "-q", "-f", "main")
        self.git("checkout", "-q", "--detach")
        self.git("am", "-q", data=data, check=False)
        applied = not (self.path / ".git" / "rebase-apply").exists()
        tree = self.git("rev-parse", "HEAD^{tree}").decode().strip()
        if not applied:
            self.git("am", "--abort")
        return tree if applied and tree != self.git("rev-parse", "main^{tree}").decode().strip() else ""

    @property
    def tree(self) -> SourceTree:
        return SourceTree("work", self.path / ".git", "main")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tmp_path_factory.mktemp("work"))


def typed(head: bytes, kind: bytes, encoding: bytes, body: bytes) -> bytes:
    kept = re.sub(rb"(?m)^(?:MIME-Version|Content-[A-Za-z-]+):[^\n]*\n", b"", head + b"\n").rstrip(b"\n")
    return (
        kept
        + b"\nMIME-Version: 1.0\nContent-Type: "
        + kind
        + b"\nContent-Transfer-Encoding: "
        + encoding
        + b"\n\n"
        + body
    )


def part(kind: bytes, body: bytes, encoding: bytes = b"8bit") -> bytes:
    return (
        b"--b\nContent-Type: " + kind + b"\nContent-Transfer-Encoding: " + encoding + b"\n\n" + body + b"\n"
    )


def mixed(head: bytes, *parts: bytes, kind: bytes = b"multipart/mixed") -> bytes:
    return typed(head, kind + b"; boundary=b", b"8bit", b"".join(parts) + b"--b--\n")


def flowed(head: bytes, body: bytes) -> bytes:
    lines = [
        b" " + line if line[:1] in (b" ", b">") or line.startswith(b"From ") else line
        for line in body.split(b"\n")
    ]
    return typed(head, b"text/plain; charset=utf-8; format=flowed", b"8bit", b"\n".join(lines))


JUNK = base64.encodebytes(b"\x1f\x8b\xff\x00" * 9)
WRAPS: dict[str, Wrap] = {
    "with two encodings": lambda head, body: (
        head + b"\nContent-Transfer-Encoding: 8bit\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(body)
    ),
    "as it is": lambda head, body: head + b"\n\n" + body,
    "declared as UTF-8": lambda head, body: typed(head, b"text/plain; charset=UTF-8", b"8bit", body),
    "declared as Latin-1": lambda head, body: typed(head, b'text/plain; charset="iso-8859-1"', b"8bit", body),
    "declared as gb18030": lambda head, body: typed(head, b"text/plain; charset=gb18030", b"8bit", body),
    "declared as ISO-2022-JP": lambda head, body: typed(head, b"text/plain; charset=ISO-2022-JP", b"8bit", body),
    "declared as nothing known": lambda head, body: typed(head, b"text/plain; charset=x-klingon", b"8bit", body),
    "quoted-printable": lambda head, body: typed(
        head, b"text/plain; charset=utf-8", b"quoted-printable", quopri.encodestring(body)
    ),
    "base64": lambda head, body: typed(head, b"text/plain; charset=utf-8", b"base64", base64.encodebytes(body)),
    "signed": lambda head, body: mixed(
        head, part(b"text/plain", body), part(b"application/pgp-signature", b"-----BEGIN"), kind=b"multipart/signed"
    ),
    "beside an attachment": lambda head, body: mixed(
        head, part(b"text/plain", body), part(b"application/gzip; name=config.gz", JUNK, b"base64")
    ),
    "as an attachment": lambda head, body: mixed(
        head, part(b"text/plain; charset=us-ascii", b"Why.\n"), part(b"text/x-patch; name=a.patch", body)
    ),
    "flowed": flowed,
    "with CRLF": lambda head, body: (head + b"\n\n" + body).replace(b"\n", b"\r\n"),
    "with a raw Latin-1 subject": lambda head, body: (
        re.sub(rb"(?m)^Subject: .*\n(?: .*\n)*", b"Subject: [PATCH] gr\xf6\xdfer\n", head) + b"\n\n" + body
    ),
    "with >From": lambda head, body: head + b"\n\n>From here on it is better.\n" + body,
    "under headers in the body": lambda head, body: head + b"\n\nFrom: Z <z@example.org>\nSubject: other\n\n" + body,
}  # fmt: skip


def wrapped(work: Work, how: str, name: str) -> bytes:
    head, _, body = work.mail(name).partition(b"\n\n")
    return WRAPS[how](head, body)


def ours(work: Work, data: bytes) -> str:
    base = resolve(work.tree, "main")
    return apply_patches(work.tree, base, read_series(data).patches).tree_id


def check(work: Work, how: str, name: str) -> None:
    data = wrapped(work, how, name)
    judged = work.am(data)
    if not judged:
        return
    assert ours(work, data) == judged
    text = as_text(data)
    assert ours(work, text.encode()) == judged, "what is stored of it is another patch"
    base = resolve(work.tree, "main")
    intake = take_in(data, lambda path: read_file(work.tree, base.tree_id, path))
    assert intake.repaired == (), "a patch that git applies needs no repair"
    # What we store can be handed to git itself.
    assert work.am(text.encode()) == judged


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["as it is", "quoted-printable"])
def test_each_kind_of_file_is_patched_as_git_am_patches_it(work: Work, how: str, name: str) -> None:
    check(work, how, name)


@pytest.mark.parametrize("how", WRAPS)
def test_each_kind_of_mail_is_applied_as_git_am_applies_it(work: Work, how: str) -> None:
    check(work, how, "latin1.c")


@pytest.mark.campaign
@pytest.mark.parametrize("how", WRAPS)
def test_every_mail_with_every_file_is_applied_as_git_am_applies_it(work: Work, how: str) -> None:
    for name in FILES:
        check(work, how, name)


def test_git_am_applies_most_of_them(work: Work) -> None:
    """A judge that refuses everything proves nothing."""
    judged = [bool(work.am(wrapped(work, how, "latin1.c"))) for how in WRAPS]
    assert sum(judged) >= len(WRAPS) - 3, dict(zip(WRAPS, judged, strict=True))


def test_files_without_signature_are_several_mails_behind_one_another(work: Work) -> None:
    """No blank line is at the end of what `git format-patch --no-signature` writes to a file."""
    mails = [work.mail(name, "--no-signature").rstrip(b"\n") + b"\n" for name in ("plain.c", "utf8.c")]
    both = b"".join(mails)
    assert work.am(both)
    assert len(read_series(both).patches) == 2


def test_a_byte_order_mark_before_an_mbox_loses_no_mail(work: Work) -> None:
    mbox = work.mail("plain.c") + work.mail("utf8.c")
    assert [len(read_series(mark + mbox).patches) for mark in (b"", b"\xef\xbb\xbf")] == [2, 2]


def test_an_author_in_the_body_needs_no_blank_line_behind_it(work: Work) -> None:
    head, _, body = work.mail("plain.c").partition(b"\n\n")
    data = head + b"\n\nFrom: Grace <grace@example.org>\nFrom: here on,\nwhy.\n" + body
    (patch,) = read_series(data).patches
    assert work.am(data)
    said = work.git("log", "-1", "--format=%an <%ae>%n%b").decode().split("\n")
    assert [patch.author, *patch.message.split("\n")[:2]] == said[:3]
    assert said[:2] == ["Grace <grace@example.org>", "From: here on,"]


def test_a_range_may_have_forked_before_its_base(work: Work) -> None:
    series = read_range(work.tree, "with-plain.c", "with-utf8.c")
    assert [patch.title for patch in series.patches] == ["utf8.c: change größer"]
