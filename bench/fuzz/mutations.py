# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutated mails: edits that keep the shape of a mail, so that they get past its first line.

Everything comes from the `random.Random` that is passed in: equal seeds give equal mails on every machine.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence

Edit = Callable[[bytes, random.Random], bytes]

CHARSETS = (
    b"utf-8", b"us-ascii", b"iso-8859-1", b"gb18030", b"iso-2022-jp", b"utf-7", b"utf-16", b"idna", b"punycode",
    b"rot13", b"zlib", b"undefined", b"unicode_escape", b"raw_unicode_escape", b"mbcs", b"\0", b"x" * 300,
    b"utf-8\0", b"nul\0l", b"", b"'utf-8''x'", b"unknown-8bit", b"hex", b"base64", b"bz2", b"uu", b"charmap",
)  # fmt: skip
ENCODINGS = (
    b"7bit",
    b"8bit",
    b"binary",
    b"base64",
    b"quoted-printable",
    b"x-uuencode",
    b"uue",
    b"\0",
    b"gzip",
    b"",
)
TYPES = (
    b"text/plain", b"text/x-patch", b"text/html", b"application/octet-stream", b"application/pgp-signature",
    b"application/x-zip-compressed", b"multipart/mixed", b"multipart/signed", b"multipart/alternative",
    b"message/rfc822", b"message/external-body", b"message/delivery-status", b"image/png", b"text", b"/", b"",
)  # fmt: skip
VALUES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"=?utf-8?q?=00=1b[31m?=", b"=?utf-8?b?////?=", b"=?x\0y?q?a?=", b"=??q?a?=",
    b"=?utf-8?q?a", b"=?idna?q?a=2E=2E?=", b"=?utf-7?q?+AAA-?=", b"Mon, 1 Jan 99999999999999999999 00:00:00 +0000",
    b"Mon, 1 Jan 0000 00:00:00 +0000", b"Mon, 99 Foo 2024 99:99:99 +9999999999", b"Mon, 1 Jan 2024 0:0:0 -2400",
    b"1 Jan 10000 00:00:00 +0000", b"\xe9\xe8", b"[PATCH v9999 9999/9999] x", b"[PATCH 0/0] x", b"[PATCH v0 2/1] x",
    b"[PATCH v3 2/5] x", b"Re: [PATCH] x", b"<>", b"a" * 5000, b"\x1b[2J\x1b]0;x\x07", "\u202eabc\u2066".encode(),
    "١/٢ [PATCH v١]".encode(), b"[red]x[/red]", b"@" * 50, b'"' * 9, b"(" * 200, b"\r\n x", b"\\", b"%s%n",
)  # fmt: skip
HEADERS = (
    b"From", b"Subject", b"Date", b"Message-Id", b"Content-Type", b"Content-Transfer-Encoding", b"MIME-Version",
    b"In-Reply-To", b"References", b"Content-Disposition", b"X-Patchwork-Submitter", b"List-Id", b"\xe9", b"From\0",
)  # fmt: skip
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")


def mutate_mail(data: bytes, rng: random.Random) -> bytes:
    """Return the mail after one to six edits."""
    for _ in range(rng.randint(1, 6)):
        data = rng.choice(EDITS)(data, rng)
    return data


def mutated_mails(seeds: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield `count` mutated mails, the seeds in turn."""
    rng = random.Random(seed)
    for number in range(count):
        yield mutate_mail(seeds[number % len(seeds)], rng)


def _lines(data: bytes) -> list[bytes]:
    return _LINE.findall(data)


def _flip_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice(
                (0, 10, 13, 27, 128, 233, 255, rng.randrange(256))
            )
    return bytes(changed)


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((*VALUES, *CHARSETS, b"\n", b"\n\n", b"\n--- a/x\n+++ b/x\n")) + data[at:]


def _cut_out(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randint(0, len(data))
    return data[:begin] + data[begin + rng.choice((1, 2, 10, 100, 1000)) :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _repeat_lines(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    begin = rng.randint(0, len(lines))
    end = min(len(lines), begin + rng.randint(1, 30))
    at = rng.randint(0, len(lines))
    return b"".join([*lines[:at], *lines[begin:end], *lines[at:]])[: 1 << 18]


def _drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    if len(lines) > 1:
        first, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[first], lines[other] = lines[other], lines[first]
    return b"".join(lines)


def _header_value(data: bytes, rng: random.Random) -> bytes:
    """Replace or extend the value of one header."""
    spots = list(re.finditer(rb"^[A-Za-z-]{2,40}:[ \t]*([^\n]*)", data, re.MULTILINE))[:40]
    if not spots:
        return data
    begin, end = rng.choice(spots).span(1)
    value = rng.choice(VALUES)
    if rng.random() < 0.5:
        begin = end = rng.randint(begin, end)
    return data[:begin] + value + data[end:]


def _add_header(data: bytes, rng: random.Random) -> bytes:
    name = rng.choice(HEADERS)
    value = rng.choice(VALUES)
    if name == b"Content-Type":
        value = rng.choice(TYPES) + b"; charset=" + rng.choice(CHARSETS)
        value += (
            b"; boundary=" + rng.choice((b"b", b'"--"', b'""', b"\0", b'"b')) if rng.random() < 0.4 else b""
        )
    elif name == b"Content-Transfer-Encoding":
        value = rng.choice(ENCODINGS)
    lines = _lines(data)
    at = rng.choice((0, 1, rng.randint(0, min(len(lines), 12))))
    return b"".join([*lines[:at], name + b": " + value + b"\n", *lines[at:]])


def _parameter(data: bytes, rng: random.Random) -> bytes:
    """Replace a charset, a type, an encoding or a boundary where the mail names one."""
    name, values = rng.choice(((rb"charset=", CHARSETS), (rb"Encoding: ", ENCODINGS), (rb"Type: ", TYPES)))
    spots = list(re.finditer(name + rb'"?([^";\n]*)', data))
    if not spots:
        return _add_header(data, rng)
    begin, end = rng.choice(spots).span(1)
    return data[:begin] + rng.choice(values) + data[end:]


def _attach(data: bytes, rng: random.Random) -> bytes:
    """Wrap the body into a multipart beside a part that may be undecodable."""
    head, blank, body = data.partition(b"\n\n")
    junk = bytes(rng.randrange(256) for _ in range(rng.randint(0, 60)))
    part = b"Content-Type: " + rng.choice(TYPES) + b"; charset=" + rng.choice(CHARSETS) + b"\n"
    part += b"Content-Transfer-Encoding: " + rng.choice(ENCODINGS) + b"\n\n" + junk
    parts = [b"Content-Type: text/plain; charset=" + rng.choice(CHARSETS) + b"\n\n" + body, part]
    rng.shuffle(parts)
    whole = b"".join(b"--b\n" + each + b"\n" for each in parts)
    return head + b"\nContent-Type: multipart/mixed; boundary=b" + (blank or b"\n\n") + whole + b"--b--\n"


def _line_ends(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n")))


def _prefix(data: bytes, rng: random.Random) -> bytes:
    marks = (
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\n",
        b"\r\n",
        b">",
        b" ",
        b"From x Mon Sep 17 00:00:00 2001\n",
        b"\0",
        b">From x\n",
    )
    return rng.choice(marks) + data


def _wrap(data: bytes, rng: random.Random) -> bytes:
    width = rng.choice((20, 60, 76))
    return re.sub(rb"([^\n]{%d}[^\n ]*) " % width, rb"\1 \n", data)


def _wide(data: bytes, rng: random.Random) -> bytes:
    return data.decode("latin-1").encode(rng.choice(("utf-16", "utf-8-sig", "utf-8", "utf-16-be")))


EDITS: tuple[Edit, ...] = (
    _flip_bytes, _flip_bytes, _insert, _insert, _cut_out, _truncate, _repeat_lines, _drop_line, _swap_lines,
    _header_value, _header_value, _header_value, _add_header, _add_header, _parameter, _parameter, _attach,
    _line_ends, _prefix, _wrap, _wide,
)  # fmt: skip
