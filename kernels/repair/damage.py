# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the diffs in a text that an archive or a mailer has damaged, as far as the text alone tells.

Nothing is repaired here: a hunk's lines are kept unchanged, as `pieces`, some of which may be halves of lines; the last
ones may be other text. kernels.repair.hunk_place reads them with the base.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kernels.diffs.unified import (
    BETWEEN_DIFFS,
    FileDiff,
    is_file_header,
    is_no_newline,
    is_signature,
    parse_hunk_header,
    read_file_header,
)
from kernels.errors import PatchRejected
from kernels.mails.letters import Letter, iso_date, read_title
from kernels.repair.base_text import squash

# A longer line is not a title, author or date but a mail that lost its line ends.
GIANT_LINE = 2_500
# How many more pieces than lines a hunk may have: wrapped lines and doubled blank lines.
SPARE_PIECES = 24
# Files and hunks of a submission that is repaired; archived mails have some dozens.
MAX_PARTS = 1_000
MAX_QUOTES = 4
_QUOTE = re.compile(r"(?:(?<=\s)|^)>(?=\s|$)")
_SUBJECT = re.compile(r"(?:subject: )?((?:re: )?\[[^\]]{0,80}patch[^\]]{0,80}\] .{1,300})", re.IGNORECASE)
_AUTHOR = re.compile(r"(?:From: |by )(.{1,200})")
_DATE = re.compile(r"(?:Date: (.{1,80})|([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?::[0-9]{2})?))")
_MESSAGE_ID = re.compile(r"Message-id ?[|:] ?<?([^\s<>]{1,200}@[^\s<>]{1,200})", re.IGNORECASE)
# The longest line of most diffs, wrapped between its two names.
_WRAPPED_NAMES = re.compile(r"^(diff --git a/\S+) *\n(b/\S+)$", re.MULTILINE)
_SEPARATOR = re.compile("|".join(BETWEEN_DIFFS) + "|={60,}$")
_WROTE = re.compile(r"On [^\n]{5,60}[0-9][, ]{1,2}([^\n,0-9]{2,60}) wrote:")


@dataclass(frozen=True, slots=True)
class DamagedHunk:
    """A hunk's header, and the pieces after it. `joiner` is the text that joins two pieces of one line."""

    header: str
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    pieces: tuple[str, ...]
    joiner: str = " "


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """One file's diff: `diff` holds its names and modes, but no hunks."""

    diff: FileDiff
    hunks: tuple[DamagedHunk, ...]

    @property
    def parts(self) -> int:
        """Return the number of its parts: itself, and its hunks."""
        return 1 + len(self.hunks)

    @property
    def text(self) -> str:
        """Return all its text without blanks."""
        parts = [part for hunk in self.hunks for part in (hunk.header, *hunk.pieces)]
        return squash("".join(parts))


def find_diffs(text: str) -> tuple[tuple[DamagedFile, ...], ...]:
    """Return the diffs of a text: more than one if they change the same places, so that one of them must be chosen.

    Raises PatchRejected where a diff is binary or its headers contradict each other.
    """
    chunks: list[tuple[DamagedFile, ...]] = []
    parts = 0
    for lines, joiner in _sheets(_WRAPPED_NAMES.sub(r"\1 \2", text)):
        files = list(islice(_files(lines, joiner), MAX_PARTS + 1))
        parts += sum(file.parts for file, _ in files)
        check_parts(parts)
        chunks += [tuple(chunk) for chunk in _chunks(files)]
    if any(_overlap(chunk, other) for at, chunk in enumerate(chunks) for other in chunks[:at]):
        return tuple(chunks)
    together = tuple(file for chunk in chunks for file in chunk)
    return (together,) if together else ()


def check_parts(number: int) -> None:
    """Refuse more files and hunks than are repaired. Raises PatchRejected."""
    if number > MAX_PARTS:
        raise PatchRejected(
            f"a damaged diff of more than {MAX_PARTS} files and hunks is not repaired; send it undamaged"
        )


def flat_diffs(text: str) -> tuple[str, ...]:
    """Lines that hold a whole diff with no trace of its line ends, from its first hunk on."""
    return tuple(
        squash(line[line.index("@@ -") :])
        for line in text.split("\n")
        if "diff --git " in line and "@@ -" in line and not _is_quoted(line)
    )


def archived_letter(text: str) -> Letter:
    """Return the title, author, date and id of a mail from an archive's page, as far as they are readable."""
    lines = [line for line in text.split("\n", 60)[:60] if len(line) < GIANT_LINE]
    title = next((match[1] for line in lines if (match := _SUBJECT.match(line.lstrip("> ")))), "")
    author = next((match[1] for line in lines[:40] if (match := _AUTHOR.match(line))), "")
    wrote = _WROTE.search(text[:GIANT_LINE])
    date = next((match[1] or match[2] for line in lines if (match := _DATE.match(line))), "")
    message_id = next((match[1] for line in lines if (match := _MESSAGE_ID.match(line))), "")
    begins = text.find("diff --git ")
    message = text[: max(begins, 0)].strip()
    author = author or (wrote[1].strip() if wrote else "")
    return Letter(read_title(title), author, iso_date(date.replace(" - ", " ")), message_id, message, text)


def _is_quoted(line: str) -> bool:
    """Return whether this line is a quoted diff that has lost its line ends."""
    return "> @@ -" in line and ("> diff --git " in line or "> --- a/" in line)


def _sheets(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the lines of each kind of text, with the text that joins two halves of one line in it."""
    plain: list[str] = []
    for line in text.split("\n"):
        if _is_quoted(line):
            yield [piece.strip() for piece in _QUOTE.split(line)], " > "
        elif "diff --git " not in line or "@@ -" not in line:
            plain.append(line)
    yield _unquoted(plain), " "


def _unquoted(lines: list[str]) -> list[str]:
    """Return the lines without the quote marks of a reply, if the diff is in the quoted text."""
    for _ in range(MAX_QUOTES):
        if any(is_file_header(lines, at) for at in range(len(lines))):
            break
        if not any(
            line.startswith((">diff --git ", "> diff --git ", ">--- ", "> --- ", ">>", "> >"))
            for line in lines
        ):
            break
        # a comment between quoted lines is not part of the diff
        lines = [line[1:].removeprefix(" ") for line in lines if line.startswith(">")]
    return lines


def _files(lines: Sequence[str], joiner: str) -> Iterator[tuple[DamagedFile, bool]]:
    """All file diffs, each with whether other text stands between it and the next."""
    at = 0
    while at < len(lines):
        if not is_file_header(lines, at):
            at += 1
            continue
        diff, at = read_file_header(lines, at)
        hunks, noise = _without_header(lines, at, joiner), False
        while at < len(lines) and not is_file_header(lines, at):
            at += 1
            if not lines[at - 1].startswith("@@ -"):
                continue
            # an unreadable diff is kept, so that it can be refused by name
            numbers = parse_hunk_header(lines[at - 1]) or (0, 0, 0, 0, "")
            begin = at
            while at < len(lines) and not lines[at].startswith("@@ -") and not is_file_header(lines, at):
                at += 1
            end = _without_separators(lines, begin, at)
            most = numbers[1] + numbers[3] + SPARE_PIECES
            pieces = tuple(lines[begin : min(end, begin + most)])
            hunks.append(DamagedHunk(lines[begin - 1], *numbers, pieces, joiner))
            noise = _has_other_text(lines[begin:end], hunks[-1])
        yield DamagedFile(replace(diff, index=""), tuple(hunks)), noise


def _without_header(lines: Sequence[str], at: int, joiner: str) -> list[DamagedHunk]:
    """Return changed lines right behind a file's header as a hunk, so that it can be refused: its own header is lost."""
    begin = at
    if not lines[at - 1].startswith("+++ "):
        return []
    while at < len(lines) and not lines[at].startswith("@@ -") and not is_file_header(lines, at):
        at += 1
    pieces = [line for line in lines[begin:at] if not is_signature(line)]
    if not any(piece.startswith(("+", "-")) for piece in pieces):
        return []
    return [DamagedHunk(pieces[0], 0, 0, 0, 0, "", tuple(pieces[1:SPARE_PIECES]), joiner)]


def _without_separators(lines: Sequence[str], begin: int, end: int) -> int:
    """Return where a hunk ends: before the lines that diff(1), quilt and svn write above the next file's header."""
    if end < len(lines) and lines[end].startswith("--- "):
        while begin < end and _SEPARATOR.match(lines[end - 1]):
            end -= 1
    return end


def _has_other_text(pieces: Sequence[str], hunk: DamagedHunk) -> bool:
    """Return whether text that is not a diff follows a hunk: after a blank line, or more than wrapping explains."""
    used = count_pieces(hunk)
    rest = [piece for piece in pieces[used:] if not is_signature(piece)]
    words = [piece for piece in rest if piece.strip()]
    return len(words) > SPARE_PIECES // 4 or (bool(words) and not rest[0].strip())


def count_pieces(hunk: DamagedHunk) -> int:
    """Return the number of pieces that the header's counts cover, if no line was wrapped or lost."""
    old = new = 0
    for at, piece in enumerate(hunk.pieces):
        if (old, new) == (hunk.old_count, hunk.new_count) and not is_no_newline(piece):
            return at
        if not is_no_newline(piece):
            old += piece[:1] != "+"
            new += piece[:1] != "-"
    return len(hunk.pieces)


def _chunks(files: Sequence[tuple[DamagedFile, bool]]) -> Iterator[list[DamagedFile]]:
    """Yield files that stand together; other text, or a place that is changed again, begins the next chunk."""
    chunk: list[DamagedFile] = []
    for file, noise in files:
        if _overlap(chunk, [file]):
            yield chunk
            chunk = []
        chunk.append(file)
        if noise:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _overlap(first: Sequence[DamagedFile], other: Sequence[DamagedFile]) -> bool:
    """Return whether two diffs change the same place of the same file."""
    places: dict[str, list[tuple[int, int]]] = {}
    for file in first:
        places.setdefault(file.diff.old_path, []).extend(_ranges(file))
    return any(
        begin < known_end and known_begin < end
        for file in other
        for begin, end in _ranges(file)
        for known_begin, known_end in places.get(file.diff.old_path, ())
    )


def _ranges(file: DamagedFile) -> list[tuple[int, int]]:
    return [(hunk.old_start, hunk.old_start + max(hunk.old_count, 1)) for hunk in file.hunks]
