# SPDX-License-Identifier: GPL-2.0-or-later
"""The inside of one mail: its headers, and its parts with their bytes, as `git mailinfo` reads them.

The standard library is used for headers only. Parts are found here: its parser takes hours for a deeply nested mail,
and decodes a whole body by its charset, but the bytes of a diff must not change.
"""

import binascii
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import HeaderParser

from kernels.errors import MailUnreadable

MAX_HEADER = 4_000
MAX_HEAD = 256 * 1024
MAX_DEPTH = 8
MAX_PARTS = 200
_BLANK_LINE = re.compile(rb"(?:\A|\n)\r?\n")
_CHARSET = re.compile(rb"charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
# Text in these charsets consists of ASCII bytes: UTF-8 would accept it, and show its escapes.
_STATEFUL = re.compile(r"iso2022|utf7|hz")
# Codecs that are not for text, or take quadratic time.
_NO_CHARSETS = {
    *("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "rot13", "mbcs", "oem"),
}
_FLOWED = re.compile(rb"(?P<stuffing> ?)(?P<text>[^\n]*?)(?P<cr>\r?)\n")


@dataclass(frozen=True, slots=True)
class MailPart:
    """One part that contains no other parts. data: its bytes without transfer encoding, line ends as LF."""

    type: str
    charset: str
    flowed: bool
    delete_space: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail's headers and its parts in their order."""

    head: Message
    parts: tuple[MailPart, ...]


def read_mail(raw: bytes) -> Mail:
    """Take a mail apart. Raises MailUnreadable where it is nested too deeply or has too many parts."""
    head, body = _split(raw)
    parts: list[MailPart] = []
    for part in _parts(head, body, 0):
        parts.append(part)
        if len(parts) > MAX_PARTS:
            raise MailUnreadable(f"it has more than {MAX_PARTS} parts; send the patch as plain text")
    return Mail(head, tuple(parts))


def header(head: Message, name: str) -> str:
    """Return a header's text, encoded words decoded; "" if there is none."""
    raw = next((str(value) for key, value in head.raw_items() if key.lower() == name.lower()), "")[
        :MAX_HEADER
    ]
    try:
        pieces = decode_header(" ".join(raw.split()))
    except (HeaderParseError, ValueError, LookupError):
        return raw
    return "".join(
        piece if isinstance(piece, str) else to_unicode(piece, charset or "") for piece, charset in pieces
    )


def to_unicode(data: bytes, charset: str) -> str:
    """Decode prose: as UTF-8 if it is valid, else by its charset, else as Latin-1, which decodes every byte.

    Text with NULs is not UTF-8: letters in UTF-16 have them.
    """
    named = _known_charset(charset)
    by_charset = b"\0" in data or _STATEFUL.search(named.replace("-", "").replace("_", ""))
    order = (named, "utf-8") if by_charset else ("utf-8", named)
    for codec in order:
        try:
            if codec:
                return data.decode(codec)
        except (ValueError, LookupError):
            continue
    return data.decode("latin-1")


def unix_lines(data: bytes) -> bytes:
    """Return text with LF instead of CRLF if all line ends are CRLF; a mixture stays, since a CR may belong to a file."""
    if data.count(b"\n") == data.count(b"\r\n"):
        return data.replace(b"\r\n", b"\n")
    return data


def unflowed(part: MailPart) -> bytes:
    """Return the text of a part with `format=flowed` (RFC 3676) as its author saw it, by git's rules."""
    lines: list[bytes] = []
    pending = bytearray()
    for match in _FLOWED.finditer(part.data if part.data.endswith(b"\n") else part.data + b"\n"):
        text = match["text"]
        if match["stuffing"] == b"" and text == b"-- ":
            lines += [bytes(pending)] if pending else []
            lines.append(text)
            pending.clear()
        elif text.endswith(b" "):
            pending += text[:-1] if part.delete_space else text
        else:
            lines.append(bytes(pending) + text)
            pending.clear()
    if pending:
        lines.append(bytes(pending))
    return b"".join(line + b"\n" for line in lines)


def _known_charset(name: str) -> str:
    """Return the name of a codec for text, "" for none."""
    try:
        known = codecs.lookup(name).name.replace("_", "-") if name.isascii() and len(name) < 40 else ""
    except (LookupError, ValueError):
        return ""
    return "" if known in _NO_CHARSETS else known


def _split(raw: bytes) -> tuple[Message, bytes]:
    """Return headers and body, which a blank line divides."""
    blank = _BLANK_LINE.search(raw)
    head, body = (raw[: blank.start() + 1], raw[blank.end() :]) if blank else (raw, b"")
    if len(head) > MAX_HEAD:
        raise MailUnreadable(
            f"its headers are larger than {MAX_HEAD >> 10} KiB; send what git format-patch wrote"
        )
    text = re.sub(r"\r(?!\n)|\0", " ", _head_text(head)).replace("\r\n", "\n")
    return HeaderParser().parsestr(text + "\n"), body


def _head_text(head: bytes) -> str:
    """Decode the head: plain UTF-8 is allowed (RFC 6532, and b4 writes it); else by the charset it names."""
    named = _CHARSET.search(head)
    return to_unicode(head, named[1].decode("ascii") if named else "")


def _parts(head: Message, body: bytes, depth: int) -> Iterator[MailPart]:
    if depth > MAX_DEPTH:
        raise MailUnreadable(f"its parts are nested more than {MAX_DEPTH} deep; send the patch as plain text")
    kind = head.get_content_type()
    if kind.startswith("multipart/"):
        inner = _between(body, _parameter(head, "boundary"))
        for piece in inner:
            yield from _parts(*_split(piece), depth + 1)
        if inner:
            return
        kind = "text/plain"
    data, charset = _decoded(_encoding(head), body), _parameter(head, "charset")
    if re.match(r"utf-(16|32)", _known_charset(charset)):
        data, charset = to_unicode(data, charset).encode("utf-8", "replace"), "utf-8"
    data = unix_lines(data)
    if kind == "message/rfc822":
        yield from _parts(*_split(data), depth + 1)
        return
    flowed = _parameter(head, "format").lower() == "flowed"
    yield MailPart(kind, charset, flowed, _parameter(head, "delsp").lower() == "yes", data)


def _between(body: bytes, boundary: str) -> list[bytes]:
    """Return the parts that a boundary separates; text before the first and behind the last is dropped."""
    if not boundary or len(boundary) > MAX_HEADER:
        return []
    mark = re.escape(boundary.encode("utf-8", "surrogateescape"))
    lines = list(re.finditer(rb"(?:\A|(?<=\n))--" + mark + rb"(--)?[ \t]*(?:\r?\n|\Z)", body))
    pieces = []
    for place, line in enumerate(lines[: MAX_PARTS + 1]):
        if line[1]:
            break
        end = lines[place + 1].start() if place + 1 < len(lines) else len(body)
        pieces.append(body[line.end() : end])
    return pieces


def _parameter(head: Message, name: str) -> str:
    """Return a parameter of Content-Type, "" if there is none that can be read."""
    try:
        # The standard library takes quadratic time for a long one.
        value = head.get_param(name, "") if len(str(head.get("content-type", ""))) <= MAX_HEADER else ""
    except (LookupError, ValueError, TypeError, AttributeError):
        return ""
    # A value that names its own charset (RFC 2231) comes in three pieces.
    return str(value[2] if isinstance(value, tuple) else value).strip()


def _encoding(head: Message) -> str:
    """Return the transfer encoding; if a gateway left several, the last counts, as for git."""
    return str((head.get_all("Content-Transfer-Encoding") or [""])[-1]).lower()


def _decoded(encoding: str, body: bytes) -> bytes:
    if "base64" in encoding:
        return _from_base64(body)
    if "quoted-printable" in encoding:
        return binascii.a2b_qp(body)
    return body


def _from_base64(body: bytes) -> bytes:
    """Decode base64 as mailers do: skip characters that are not digits, and cut off a broken end."""
    digits = re.sub(rb"[^A-Za-z0-9+/]", b"", body.partition(b"=")[0])
    usable = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(usable + b"=" * (-len(usable) % 4))
