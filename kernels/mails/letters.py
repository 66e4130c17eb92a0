# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails: split an mbox into letters, read author, title and date of each, and write a letter as a mail.

Headers and prose are text. A diff is bytes: it is not converted, whatever charset the mail names, as in `git mailinfo`.
In a string (see `diff_text`) bytes that are not UTF-8 are lone surrogates (PEP 383).
"""

import binascii
import re
from dataclasses import dataclass
from email.errors import MessageError
from email.utils import parsedate_to_datetime

from kernels.diffs.unified import parse_diff
from kernels.errors import MailUnreadable, PatchRejected
from kernels.mails.mbox import BOM, cut_mbox
from kernels.mails.mime import MailPart, header, read_mail, to_unicode, unflowed, unix_lines
from kernels.printable import clean_line, clean_text

# The line that git writes before each mail; its date never changes.
MBOX_LINE = "From kperflab Mon Sep 17 00:00:00 2001"
# The lengths that the tables can hold.
MAX_AUTHOR, MAX_ID, MAX_TITLE = 300, 900, 1_000
# "[PATCH RFC v4 1/2] title": what is in the brackets, piece by piece.
# What mailers in several languages write before an answered or forwarded subject.
_ANSWERED = r"(?:(?:re|aw|antw|sv|fwd?|wg)\s*:\s*)"
_BRACKET = re.compile(rf"\s*{_ANSWERED}*\[([^\]\[]{{0,200}})\]\s*", re.IGNORECASE)
_REPLY = re.compile(rf"\s*{_ANSWERED}+", re.IGNORECASE)
# Also written without a blank: [PATCHv2], [RFC-v2].
_VERSION = re.compile(r"(?:(?:rfc|patch)[-_/]?)*v([0-9]{1,4})", re.IGNORECASE)
_PLACE = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")
# A header at the head of a body, with the lines in which it goes on.
_IN_BODY = re.compile(r"(from|date|subject): (.*(?:\n[ \t]+.*)*)(?:\n|\Z)", re.IGNORECASE)
_HEADED = re.compile(r"(?:from|date|subject): ", re.IGNORECASE)
_DIFF_BEGINS = re.compile(rb"^(?:---[ ]?\r?$|diff --git |Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_DIFF = re.compile(rb"^(?:diff --git |Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
# Text that a description, a browser, JSON, TOML and every database hold unchanged.
_PLAIN = re.compile("[\t\n\f\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]*")
_QUOTED_HEAD = """\
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable
"""
# Without a header a text is not a mail.
_NO_SENDER = "From: \n"
_SKIPPED = {"text/html", "application/pgp-signature", "application/pgp-keys", "application/pkcs7-signature"}
# The standard library raises these for headers that no mailer writes.
_ODD = (
    MessageError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of a subject. number and total are 0 if it has no n/m; number 0 of n is the cover letter."""

    text: str
    version: int = 1
    number: int = 0
    total: int = 0
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail: `message` is the text before the diff, `rest` everything after it, the diff included."""

    title: Title
    author: str
    date: str
    message_id: str
    message: str
    rest: str

    @property
    def text(self) -> str:
        """Return the whole body."""
        return f"{self.message}\n{self.rest}" if self.message else self.rest


def read_letters(data: bytes) -> tuple[Letter, ...]:
    """Return all mails of an mbox or of one bare mail, in their order; none if this is not a mail.

    Raises MailUnreadable, naming the mail by its number.
    """
    return tuple(_numbered(number, raw) for number, raw in enumerate(cut_mbox(data), 1))


def diff_text(data: bytes) -> str:
    """Return a file that is not a mail as a string, with LF as line ends and without a byte-order mark."""
    return unix_lines(data.removeprefix(BOM)).decode("utf-8", "surrogateescape")


def is_plain(text: str) -> bool:
    """Return whether a description, a page and every database can store a text unchanged."""
    return _PLAIN.fullmatch(text) is not None


def as_text(data: bytes) -> str:
    """Return a submission as plain text that a description, a page and a database can store.

    Plain UTF-8 is returned unchanged, except for its line ends and a byte-order mark. Anything else becomes the same
    mails in quoted-printable, which give the same series here and in `git am`. Raises MailUnreadable.
    """
    text = diff_text(data)
    if is_plain(text):
        return text
    letters = read_letters(data) or (Letter(Title(""), "", "", "", "", text),)
    return "".join(write_letter(letter) for letter in letters)


def read_title(subject: str) -> Title:
    """Return the parts of a subject line: version and place in the series, and the title without them."""
    subject = clean_line(subject)
    reply = _REPLY.match(subject) is not None
    version, number, total, at = 1, 0, 0, 0
    while match := _BRACKET.match(subject, at):
        # The tag of a mailing list may stand before it: [list] Re: [PATCH] title.
        reply = reply or _REPLY.match(subject, at) is not None
        words = match[1].replace(",", " ").split()
        if at and not any(_VERSION.fullmatch(word) or _PLACE.fullmatch(word) for word in words):
            break
        for word in words:
            if mark := _VERSION.fullmatch(word):
                version = int(mark[1])
            elif mark := _PLACE.fullmatch(word):
                number, total = int(mark[1]), int(mark[2])
        at = match.end()
    text = _REPLY.sub("", subject[at:], count=1) if not at else subject[at:]
    return Title(" ".join(text.split())[:MAX_TITLE].rstrip(), version, number, total, reply)


def write_letter(letter: Letter) -> str:
    """Return a mail as git format-patch would write it, which read_letters reads back as it was.

    The result is plain text: a diff with other characters is written in quoted-printable.
    """
    title, place = letter.title, ""
    if title.total > 1:
        place = f" {title.number}/{title.total}"
    version = f" v{title.version}" if title.version > 1 else ""
    mark = f"{'Re: ' if title.reply else ''}[PATCH{version}{place}] "
    headers = {
        "From": letter.author,
        "Date": letter.date,
        "Subject": mark + title.text if title != Title("") else "",
        "Message-Id": f"<{letter.message_id}>" if letter.message_id else "",
    }
    head = "".join(f"{name}: {clean_line(value)}\n" for name, value in headers.items() if value)
    rest = letter.rest if letter.rest.startswith("---\n") or not letter.rest else f"---\n{letter.rest}"
    message = without_diffs(letter.message.encode("utf-8", "surrogateescape")).decode(
        "utf-8", "surrogateescape"
    )
    if _HEADED.match(message):
        # Lines that look like headers would count as such at the start of a message, so real headers go before them.
        message = f"From: {clean_line(letter.author)}\n\n{message}"
    body = f"{message}\n{rest}\n"
    if not is_plain(body):
        head, body = head + _QUOTED_HEAD, _quoted(body)
    return f"{MBOX_LINE}\n{head or _NO_SENDER}\n{body}"


def split_message(data: bytes) -> tuple[bytes, bytes]:
    """Return a body's message and the rest, which begins with the line `---` or with the first diff."""
    match = _DIFF_BEGINS.search(data)
    return (data[: match.start()], data[match.start() :]) if match else (data, b"")


def without_diffs(message: bytes) -> bytes:
    """Return a message in which no line begins the rest of a mail or a diff: such a line gets a blank before it."""
    return _DIFF_BEGINS.sub(rb" \g<0>", message)


def iso_date(text: str) -> str:
    """Return a mail's date as ISO 8601; text that is no date is returned as it is."""
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return text


def _quoted(body: str) -> str:
    lines = body.encode("utf-8", "surrogateescape").split(b"\n")
    quoted = b"\n".join(binascii.b2a_qp(line, istext=False) for line in lines).decode("ascii")
    return re.sub("^From ", "=46rom ", quoted, flags=re.MULTILINE)


def _numbered(number: int, raw: bytes) -> Letter:
    try:
        return _letter(raw)
    except PatchRejected as exc:
        raise MailUnreadable(f"mail {number}: {exc}") from exc
    except _ODD as exc:
        reason = f"its headers cannot be read ({type(exc).__name__}); send what git format-patch wrote"
        raise MailUnreadable(f"mail {number}: {reason}") from exc


def _letter(raw: bytes) -> Letter:
    mail = read_mail(raw)
    author, date, subject = (header(mail.head, name) for name in ("From", "Date", "Subject"))
    message, rest = _body([part for part in mail.parts if _is_text(part)])
    author, date, subject, message = _in_body(author, date, subject, message)
    return Letter(
        read_title(subject),
        clean_line(author)[:MAX_AUTHOR],
        iso_date(clean_line(date)),
        clean_line(header(mail.head, "Message-Id")).strip("<> ")[:MAX_ID],
        clean_text(message).strip(),
        rest.decode("utf-8", "surrogateescape"),
    )


def _is_text(part: MailPart) -> bool:
    """Return whether a part may hold prose or a diff: attachments may be patches or other files."""
    if part.type in _SKIPPED or part.type.partition("/")[0] not in ("text", "application"):
        return False
    if part.type.startswith("application/"):
        return b"\0" not in part.data and _DIFF.search(part.data) is not None
    return True


def _body(parts: list[MailPart]) -> tuple[str, bytes]:
    """Return the message of all parts and, from the first diff on, their bytes."""
    prose, rest = [], b""
    for part in parts:
        data = _as_sent(part)
        if rest:
            rest += b"\n" + data
            continue
        message, rest = split_message(data)
        prose.append(to_unicode(message, part.charset))
    return "\n".join(prose), rest


def _as_sent(part: MailPart) -> bytes:
    """Return a part's text. Mailers mark even untouched diffs as format=flowed, so the reading with a whole diff wins."""
    if not part.flowed:
        return part.data
    flowed = unflowed(part)
    return flowed if _is_whole(flowed) or not _is_whole(part.data) else part.data


def _is_whole(data: bytes) -> bool:
    try:
        return bool(parse_diff(diff_text(data)))
    except PatchRejected:
        return False


def _in_body(author: str, date: str, subject: str, text: str) -> tuple[str, str, str, str]:
    """Return the headers, overridden by any at the head of the body (git am's rule), and the text without those."""
    named = {"from": author, "date": date, "subject": subject}
    text = text.lstrip("\n")
    seen, at = set[str](), 0
    while (match := _IN_BODY.match(text, at)) and match[1].lower() not in seen:
        seen.add(match[1].lower())
        named[match[1].lower()] = match[2]
        at = match.end()
    return named["from"], named["date"], named["subject"], text[at:]
