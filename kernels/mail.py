# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails: an mbox to its letters, a letter to who wrote what under which title.

The standard library decodes headers and bodies. An mbox is cut apart here, because `mailbox` takes every line of a
commit message that begins with "From " for a new letter; git's own rule (such a line ends with a date) does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime

from kernels.errors import PatchRejected

MAX_HEADER = 4_000
# What git writes between mails; the date is always this one.
MBOX_LINE = "From kperflab Mon Sep 17 00:00:00 2001"
# "[PATCH RFC v4 1/2] title": what is in the brackets, piece by piece.
_BRACKET = re.compile(r"\s*(?:(?:re|fwd?)\s*:\s*)*\[([^\]\[]{0,200})\]\s*", re.IGNORECASE)
_REPLY = re.compile(r"\s*(?:(?:re|fwd?)\s*:\s*)+", re.IGNORECASE)
_VERSION = re.compile(r"v([0-9]{1,4})", re.IGNORECASE)
_PLACE = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")
_FROM_LINE = re.compile(
    rb"^>?From \S+\s.{0,100}?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?.{0,20}? [0-9]{4}(?: [-+][0-9]{4})?\r?$",
    re.MULTILINE,
)
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9-]{0,60}:[ \t]")
_HEADERS = re.compile(b"^" + _HEADER_LINE.pattern, re.MULTILINE)
_DIFF_BEGINS = re.compile(r"^(?:---[ ]?$|diff --git |Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Title:
    """A subject taken apart. number and total are 0 where it says no n/m; number 0 of n is the cover letter."""

    text: str
    version: int = 1
    number: int = 0
    total: int = 0
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail: `message` is what stands before the diff, `rest` everything from there on."""

    title: Title
    author: str
    date: str
    message_id: str
    message: str
    rest: str

    @property
    def text(self) -> str:
        """The whole body."""
        return self.message + self.rest


def read_letters(data: bytes) -> tuple[Letter, ...]:
    """All mails of an mbox or of one bare mail, in their order; none if this is no mail."""
    return tuple(_letter(raw) for raw in _cut(data))


def read_title(subject: str) -> Title:
    """Take a subject line apart: version and place in the series, and the title without them."""
    reply = _REPLY.match(subject) is not None
    version, number, total, at = 1, 0, 0, 0
    while match := _BRACKET.match(subject, at):
        words = match[1].replace(",", " ").split()
        if at and not any(_VERSION.fullmatch(word) or _PLACE.fullmatch(word) for word in words):
            break
        for word in words:
            if found := _VERSION.fullmatch(word.lower().removeprefix("patch")):
                version = int(found[1])
            elif found := _PLACE.fullmatch(word):
                number, total = int(found[1]), int(found[2])
        at = match.end()
    text = _REPLY.sub("", subject[at:], count=1) if not at else subject[at:]
    return Title(" ".join(text.split()), version, number, total, reply)


def write_letter(letter: Letter) -> str:
    """A mail as git format-patch would write it, which read_letters reads back as it was."""
    title, place = letter.title, ""
    if title.total > 1:
        place = f" {title.number}/{title.total}"
    version = f" v{title.version}" if title.version > 1 else ""
    headers = {
        "From": letter.author,
        "Date": letter.date,
        "Subject": f"[PATCH{version}{place}] {title.text}",
        "Message-Id": f"<{letter.message_id}>" if letter.message_id else "",
    }
    told = "".join(f"{name}: {value}\n" for name, value in headers.items() if value)
    rest = letter.rest if letter.rest.startswith("---\n") or not letter.rest else f"---\n{letter.rest}"
    return f"{MBOX_LINE}\n{told}\n{letter.message}\n{rest}\n"


def split_message(text: str) -> tuple[str, str]:
    """A body's message and the rest, which begins with the line `---` or with the first diff."""
    found = _DIFF_BEGINS.search(text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")


def iso_date(text: str) -> str:
    """A mail's date as ISO 8601; text that is no date is returned as it is."""
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError):
        return text


def to_text(data: bytes, charset: str = "utf-8") -> str:
    """Decode what a mail or a file holds. Raises PatchRejected if it is not what it says."""
    if data.endswith(b"\r\n") and data.count(b"\n") == data.count(b"\r\n"):
        data = data.replace(b"\r\n", b"\n")
    for name in ("utf-8", charset):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    line = data[: _first_bad_byte(data)].count(b"\n") + 1
    raise PatchRejected(
        f"line {line} is not UTF-8 text; convert the file, or send what git format-patch wrote"
    )


def _first_bad_byte(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _cut(data: bytes) -> Iterator[bytes]:
    starts = [found.start() for found in _FROM_LINE.finditer(data) if _begins_letter(data, found)]
    if not starts:
        if _is_bare(data.lstrip()[: 16 * MAX_HEADER]):
            yield data.lstrip()
        return
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        yield data[start:end].partition(b"\n")[2]


def _is_bare(data: bytes) -> bool:
    """Whether this is one mail without a From line: a block of headers, subject or sender among them, begins it.

    A page of an archive may begin with the subject alone, which is not enough.
    """
    head = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0]
    names = {found[0].rstrip(b": \t").lower() for found in _HEADERS.finditer(head)}
    return (
        _HEADER_LINE.match(head) is not None
        and len(names) > 1
        and not names.isdisjoint({b"subject", b"from"})
    )


def _begins_letter(data: bytes, found: re.Match[bytes]) -> bool:
    """Whether a From line starts a letter: headers follow it, and nothing but a blank line stands before it."""
    before = data[max(0, found.start() - 2) : found.start()]
    return before in (b"", b"\n\n", b"\r\n") and _HEADERS.match(data, found.end() + 1) is not None


def _letter(raw: bytes) -> Letter:
    mail = BytesParser().parsebytes(raw)
    text = _body(mail)
    author, date, subject = _header(mail, "From"), _header(mail, "Date"), _header(mail, "Subject")
    author, date, subject, text = _in_body(author, date, subject, text)
    message, rest = split_message(text)
    return Letter(
        read_title(subject),
        author,
        iso_date(date),
        _header(mail, "Message-Id").strip("<> "),
        message.strip(),
        rest,
    )


def _header(mail: Message, name: str) -> str:
    raw = next((value for key, value in mail.raw_items() if key.lower() == name.lower()), "")[:MAX_HEADER]
    # Headers may be plain UTF-8 (RFC 6532): b4 writes them so.
    raw = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        decoded = str(make_header(decode_header(raw)))
    except (HeaderParseError, UnicodeDecodeError, LookupError, ValueError):
        decoded = raw
    return " ".join(decoded.split())


def _body(mail: Message) -> str:
    """The text of a mail: its own, or that of all its parts that are text (patches come as attachments, too)."""
    parts = []
    for part in mail.walk():
        if part.is_multipart() or part.get_content_maintype() not in ("text", "application"):
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes) and part.get_content_type() not in (
            "text/html",
            "application/pgp-signature",
        ):
            parts.append(to_text(payload, part.get_content_charset("utf-8")))
    return "\n".join(parts)


def _in_body(author: str, date: str, subject: str, text: str) -> tuple[str, str, str, str]:
    """Headers that stand at the head of the body count more than the mail's own (git am's rule)."""
    found = {"from": author, "date": date, "subject": subject}
    lines = text.lstrip("\n").split("\n", 8)
    used = 0
    for line in lines[:8]:
        name, colon, value = line.partition(": ")
        if not colon or name.lower() not in found:
            break
        found[name.lower()] = value.strip()
        used += 1
    if not used or lines[used : used + 1] not in ([""], []):
        return author, date, subject, text
    return found["from"], found["date"], found["subject"], "\n".join(lines[used:])
