# SPDX-License-Identifier: GPL-2.0-or-later
"""Any mail gives a series or a refusal that names the mail and what is wrong with it."""

from __future__ import annotations

import base64
import contextlib

import pytest

from bench.fuzz.mutations import mutated_mails
from bench.fuzz.sources import feed_damaged, feed_mail, feed_patch
from bench.fuzz.targets import check_refusal, corpus
from kernels.errors import MailUnreadable, PatchRejected
from kernels.mails.letters import MAX_AUTHOR, as_text, read_letters
from kernels.patches.series import Patch, read_series
from kernels.printable import clean_line, clean_text, shown, shown_line

pytestmark = pytest.mark.hostile
DIFF = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
SEEDS = [data for _, data in corpus("mail")]


def mail(head: bytes = b"", body: bytes = b"why\n---\n" + DIFF, subject: bytes = b"[PATCH] x: y") -> bytes:
    return b"From: A <a@example.org>\nSubject: " + subject + b"\n" + head + b"\n" + body


def only(data: bytes) -> Patch:
    (patch,) = read_series(data).patches
    assert (patch.files, patch.diff.splitlines()[-1]) == (("x",), "+b")
    return patch


def attached(kind: bytes, data: bytes, encoding: bytes = b"8bit") -> bytes:
    text = b"--b\nContent-Type: text/plain\n\nwhy\n---\n" + DIFF
    more = (
        b"--b\nContent-Type: "
        + kind
        + b"\nContent-Transfer-Encoding: "
        + encoding
        + b"\n\n"
        + data
        + b"\n--b--\n"
    )
    return mail(b"Content-Type: multipart/mixed; boundary=b\n", text + more)


@pytest.mark.parametrize(
    "data",
    [
        attached(b"application/octet-stream", b"\xff\xfe\x80"),
        attached(b"application/gzip", base64.encodebytes(b"\x1f\x8b\xff\x00"), b"base64"),
        attached(b"application/zip", b"PK\x03\x04!!!not base64", b"base64"),
        attached(b"application/x-patch; charset=utf-16", b"\xff\xd8"),
        attached(b"application/json; charset=undefined", b"{}\xff"),
        attached(b"text/plain; charset=idna", b"\xff..\xfe"),
        attached(b"text/plain; charset=zlib", b"\xff"),
        attached(b"text/plain; charset=rot13", b"abc"),
        attached(b"text/plain; charset*=utf-8''%00", b"abc"),
        attached(b"text/plain; charset*0*=x'y'%ff; charset*1*=%zz", b"abc"),
        attached(b"text/plain", b"=ZZ=", b"quoted-printable"),
        attached(b"text/plain", b"begin 644 x\nM!!!\n", b"x-uuencode"),
        attached(b"image/png", b"\x89PNG\r\n\x1a\n"),
        attached(b"multipart/mixed", b"--b2\n\nno boundary\n"),
        attached(b"message/rfc822", b"From: x\nSubject: y\n\nz"),
        attached(b"message/delivery-status", b"\xff"),
        attached(b"application/pgp-signature", b"\xe9"),
        attached(b"nonsense", b"\xe9"),
    ],
)
def test_an_odd_attachment_beside_a_good_patch_is_passed_over(data: bytes) -> None:
    only(data)


def test_a_multipart_mail_without_a_boundary_is_read_as_text() -> None:
    """Without one, the line before a signature would divide the mail, and the diff above it would be lost."""
    only(mail(b"Content-Type: multipart/mixed\n", b"why\n---\n" + DIFF + b"-- \n2.40.1\n"))


def test_a_robots_reply_with_an_odd_attachment_does_not_spoil_a_thread() -> None:
    line = b"From r Mon Sep 17 00:00:00 2001\n"
    robot = (
        attached(b"application/gzip", b"\x1f\x8b\xff")
        .replace(b"Subject: [", b"Subject: Re: [")
        .replace(DIFF, b"")
    )
    only(line + mail() + b"\n\n" + line + robot)


@pytest.mark.parametrize(
    "head",
    [
        b"Date: Mon, 1 Jan 99999999999999999999 00:00:00 +0000\n",
        b"Date: Mon, 1 Jan 0000 00:00:00 +0000\n",
        b"Date: Mon, 1 Jan 2024 00:00:00 +99999999999\n",
        b"Date: Mon, 1 Jan 2024 00:00:00 -2400\n",
        b"Date: =?utf-8?q?=00=1b[2J?=\n",
        b'Content-Type: text/plain; charset="nul=?utf-8?q?=00?=l"\n',
        b"Content-Type: text/plain; charset=" + b"x" * 5_000 + b"\n",
        b"Content-Type: text/plain; charset=\xff\xfe\n",
        b"Content-Type: " + b";" * 3_000 + b"\n",
        b"Content-Type: text/plain; format=flowed; delsp=\xe9\n",
        b"Content-Type: multipart/mixed\n",
        b'Content-Type: multipart/mixed; boundary=""\n',
        b"Content-Type: multipart/mixed; boundary=" + b"(" * 3_000 + b"\n",
        b"Content-Transfer-Encoding: \xff\n",
        b"Message-Id: <" + b"<" * 2_000 + b"\n",
        b"X: " + b"=?utf-8?b?" * 900 + b"\n",
        b"\xe9: x\n",
        b": x\n",
    ],
)
def test_an_odd_header_does_not_spoil_a_good_patch(head: bytes) -> None:
    patch = only(mail(head))
    assert patch.date.isprintable()
    assert len(patch.message_id) <= 900


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        (b"[PATCH] =?utf-8?q?=00a=1b[31mb?=", "a[31mb"),
        (b"[PATCH] =?idna?q?a=2E=2E?=b", "a..b"),
        (b"[PATCH] =?a b?q?c?=", "c"),
        (b"[PATCH] =?utf-8?b?a?= b", "=?utf-8?b?a?= b"),
        (b"[PATCH] gr\xf6\xdfer", "größer"),
        ("[PATCH] größer".encode(), "größer"),
        (b"[PATCH] =?gb18030?B?1tC5+g==?=", "中国"),
        (b"[PATCH] =?iso-2022-jp?B?GyRCOzNFRBsoQg==?=", "山田"),
        ("[PATCH] a\u202eb\u2066c\u200dd".encode(), "abcd"),
        ("[PATCH] a\u2028b\u00a0c".encode(), "a b c"),
        (b"[PATCH] a\x7fb\x9bc", "abc"),
        (b"[PATCH] a\r\n b", "a b"),
    ],
)
def test_a_title_is_one_printable_line(subject: bytes, title: str) -> None:
    patch = only(mail(subject=subject))
    assert patch.title == title
    assert patch.title.isprintable()


def test_an_author_is_cut_where_no_table_holds_more() -> None:
    assert len(only(b"From: " + b"a" * 3_000 + b"\nSubject: [PATCH] x\n\n---\n" + DIFF).author) == MAX_AUTHOR


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b"".join(b"From: a\nContent-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(12)),
            "mail 1: its parts are nested more than 8 deep; send the patch as plain text",
        ),
        (
            mail(b"Content-Type: multipart/mixed; boundary=b\n", b"--b\n\n\n" * 300),
            "mail 1: it has more than 200 parts; send the patch as plain text",
        ),
        (
            mail(b"".join(b"X-%d: y\n" % number for number in range(40_000))),
            "mail 1: its headers are larger than 256 KiB; send what git format-patch wrote",
        ),
        (
            b"From x Mon Sep 17 00:00:00 2001\n" + mail() + b"\n\nFrom x Mon Sep 17 00:00:00 2001\n"
            + mail(b"".join(b"Content-Type: message/rfc822\n\n" for _ in range(12))),
            "mail 2: its parts are nested more than 8 deep; send the patch as plain text",
        ),
    ],
)  # fmt: skip
def test_a_mail_that_no_mailer_builds_is_refused_by_its_number(data: bytes, said: str) -> None:
    with pytest.raises(MailUnreadable) as refused:
        read_series(data)
    assert str(refused.value) == said


def test_a_diff_with_a_nul_byte_inside_base64_is_refused() -> None:
    body = base64.encodebytes(DIFF.replace(b"+b", b"+b\0"))
    with pytest.raises(PatchRejected, match=r"^x, @@ -1,1 \+1,1 @@: a line holds a NUL byte"):
        read_series(mail(b"Content-Transfer-Encoding: base64\n", body))


@pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "utf-16be", "utf-32le"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_mail_in_utf_16_is_read_with_and_without_a_byte_order_mark(charset: str, ends: str) -> None:
    """Without the mark, ASCII text in UTF-16 is valid UTF-8, too: with a NUL beside each letter."""
    text = f"why\n---\n{DIFF.decode()}".replace("\n", ends)
    head = f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: base64\n"
    patch = only(mail(head.encode(), base64.encodebytes(text.encode(charset))))
    assert (patch.message, "\r" in patch.diff) == ("why", False)


@pytest.mark.parametrize("body", [b"why\n---\n", b"whyy\n---\n"])
def test_a_mail_that_names_utf_16_wrongly_is_read(body: bytes) -> None:
    only(mail(b"Content-Type: text/plain; charset=utf-16\n", body + DIFF))


@pytest.mark.parametrize(
    "data",
    [DIFF.replace(b"+b", b"+\xe9\r\x1b"), mail(body=b"gr\xf6\xdfer\n---\n" + DIFF.replace(b"+b", b"+\xe9"))],
)
def test_what_is_stored_of_a_mail_is_plain_text_and_the_same_patch(data: bytes) -> None:
    text = as_text(data)
    assert text.isascii() or text.isprintable()
    assert as_text(text.encode()) == text
    (first,), (second,) = read_series(data).patches, read_series(text.encode()).patches
    assert first == second


@pytest.mark.parametrize("part", ["\udce9", "\x1b[31m", "\u202e", "\ufeff", "\x9b", "\U000e0041", "\0", "\r"])
def test_harmful_characters_are_shown_as_escapes_and_kept_out_of_names(part: str) -> None:
    text = f"a{part}b\tc\nd"
    assert all(c.isprintable() or c in "\t\n" for c in shown(text))
    assert shown_line(text).isprintable()
    assert clean_line(text).isprintable()
    clean_text(text).encode()
    error = PatchRejected(text, detail=text)
    assert str(error).isprintable()
    error.detail.encode()


@pytest.mark.parametrize("data", [b"[red]x[/red]", b"=?utf-8?q?=1b]0;x=07?=", "\u202e".encode()])
def test_no_refusal_echoes_what_a_terminal_obeys(data: bytes) -> None:
    with pytest.raises(PatchRejected) as refused:
        read_series(mail(body=b"--- a/x\n+++ b/x\n@@ -1,9 +1 @@" + data + b"\n-a\n", subject=data))
    check_refusal(refused.value)


# What the fuzzers found; each was a crash or another patch than the one that was sent.
FOUND = {
    "a path that ends with a blank": b'--- "a/x "\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n',
    "a path of a thousand letters": b"--- a/"
    + b"x" * 4_000
    + b"\n+++ b/"
    + b"x" * 4_000
    + b"\n@@ -1 +1 @@\n-a\n+b\n+c\n",
    "a subject as long as a header may be": mail(subject=b"a" * 5_000),
    "a blank line before the first From line": b"\n>From x Mon Sep 17 00:00:00 2001\n" + mail(),
    "a message that begins like a header": mail(
        body=b"From: b\n\nSubject: c\n\n---\n" + DIFF.replace(b"+b", b"+\xe9")
    ),
    "an attachment in no known charset": attached(b"text/plain; charset=\xff\xfe", b"\xe9"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_the_fuzzers_found_is_read_or_refused_now(name: str) -> None:
    with contextlib.suppress(PatchRejected):
        feed_mail(FOUND[name])
    with contextlib.suppress(PatchRejected):
        feed_patch(FOUND[name])
    try:
        read_series(FOUND[name])
    except PatchRejected as exc:
        check_refusal(exc)


def survive(mails: list[bytes]) -> int:
    """Feed mails to the reader and to the repair; return how many were accepted."""
    accepted = 0
    for data in mails:
        for feed in (feed_mail, feed_damaged):
            with contextlib.suppress(PatchRejected):
                feed(data)
                accepted += 1
        with contextlib.suppress(MailUnreadable):
            read_letters(data)
    return accepted


def test_three_hundred_mutated_mails_give_a_series_or_a_refusal() -> None:
    assert survive(list(mutated_mails(SEEDS, 300))) > 20


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 8))
def test_six_thousand_mutated_mails_give_a_series_or_a_refusal(seed: int) -> None:
    assert survive(list(mutated_mails(SEEDS, 1_000, seed))) > 60
