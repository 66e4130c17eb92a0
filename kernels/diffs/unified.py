# SPDX-License-Identifier: GPL-2.0-or-later
"""Unified diffs, strictly: text to values and back.

Git always gets the output of `render_diff`, never the text that was received: text that this parser
skips (unknown headers, text between diffs) cannot mean anything to git either. kernels.diffs.safety checks that
the values are harmless. Every step is linear in the length of the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kernels.diffs.file_names import RESEND, git_line_paths, has_time_0, name_of, unquote_path, without_prefix
from kernels.errors import PatchDamaged, PatchRejected

Kind = Literal["modified", "added", "deleted", "renamed", "copied"]

HUNK_HEADER = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@(?: (.*))?")
# Lines that diff(1), quilt and svn write between two files.
BETWEEN_DIFFS = ("diff ", "Index: ", "Only in ", "Binary files ")
UNKNOWN_INDEX = "0000000..0000000"
NO_NEWLINE = "\\ No newline at end of file"
_INDEX = re.compile(r"index ([0-9a-f]{4,64}\.\.[0-9a-f]{4,64})(?: ([0-7]{6}))?")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One changed place. `lines` keep their prefix (' ', '-', '+', or NO_NEWLINE), without line ends."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        """Return the hunk's first line, as git writes it."""
        section = f" {self.section}" if self.section else ""
        return f"@@ -{self.old_start},{self.old_count} +{self.new_start},{self.new_count} @@{section}"


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The change of one file. A mode is six octal digits, or "" where the diff does not name it."""

    kind: Kind
    old_path: str
    new_path: str
    old_mode: str
    new_mode: str
    index: str
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> str:
        """Return the file's name after the change (before it, for a deleted one)."""
        return self.new_path


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """Return all file diffs of a text; text around them is skipped.

    Raises PatchRejected for binary and combined diffs and for names that contradict each other, PatchDamaged
    where a hunk does not match its header.
    """
    return tuple(_Reader(text.removesuffix("\n").split("\n")).files())


def render_diff(files: Sequence[FileDiff]) -> str:
    """Return the diff as git writes it, with a/ and b/ before the paths."""
    return "".join(line + "\n" for file in files for line in _render_file(file))


def is_file_header(lines: Sequence[str], at: int) -> bool:
    """Return whether a file's diff begins at this line: `diff --git`, or `---` followed by `+++`."""
    line = lines[at]
    if line.startswith("diff --git "):
        return True
    return line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


@dataclass(slots=True)
class _Header:
    """The header lines of a file's diff, before its first hunk."""

    git_line: str = ""
    kind: Kind = "modified"
    old_mode: str = ""
    new_mode: str = ""
    index: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    minus: str = ""
    plus: str = ""


def read_file_header(lines: Sequence[str], at: int) -> tuple[FileDiff, int]:
    """Return the file diff whose header begins at this line, still without hunks, and the number of the line behind the header."""
    header = _Header()
    if lines[at].startswith("diff --git "):
        header.git_line = lines[at]
        at += 1
        while at < len(lines) and _read_extended(header, lines[at]):
            at += 1
    if at < len(lines) and lines[at].startswith(("GIT binary patch", "Binary files ")):
        name = header.git_line.removeprefix("diff --git ")
        raise PatchRejected("a binary file cannot be patched here; leave it out", file=name[:200])
    if at < len(lines) and lines[at].startswith("--- ") and is_file_header(lines, at):
        header.minus = name_of(lines[at].removeprefix("--- "))
        header.plus = name_of(lines[at + 1].removeprefix("+++ "))
        at += 2
        if header.kind == "modified":
            header.kind = _kind_by_names(header, lines, at)
    old_path, new_path = _paths(header)
    return FileDiff(header.kind, old_path, new_path, header.old_mode, header.new_mode, header.index, ()), at


def _kind_by_names(header: _Header, lines: Sequence[str], at: int) -> Kind:
    """Return the kind of a change whose `---` and `+++` lines end before this line: one side may not be there."""
    if header.minus == "/dev/null":
        return "added"
    if header.plus == "/dev/null":
        return "deleted"
    numbers = parse_hunk_header(lines[at]) if at < len(lines) else None
    _, old_count, _, new_count, _ = numbers or (0, 1, 0, 1, "")
    if not old_count and has_time_0(lines[at - 2]):
        return "added"
    if not new_count and has_time_0(lines[at - 1]):
        return "deleted"
    return "modified"


class _Reader:
    """Walks over the lines of a text; `at` is the next line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def files(self) -> Iterator[FileDiff]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(("diff --cc ", "diff --combined ", "@@@ ")):
                raise PatchRejected(
                    "this is the combined diff of a merge; send the commits it merges", detail=line
                )
            if is_file_header(self.lines, self.at):
                yield self._file()
            elif line.startswith("@@ -"):
                raise PatchDamaged("a hunk that belongs to no file; " + RESEND, hunk=line[:120])
            else:
                self.at += 1

    def _file(self) -> FileDiff:
        file, self.at = read_file_header(self.lines, self.at)
        hunks = tuple(self._hunks(file.path))
        if not hunks and file.kind == "modified" and file.old_mode == file.new_mode:
            raise PatchDamaged("its diff has no hunk; " + RESEND, file=file.path)
        return replace(file, hunks=hunks)

    def _hunks(self, path: str) -> Iterator[Hunk]:
        while self.at < len(self.lines) and self.lines[self.at].startswith("@@ -"):
            yield self._hunk(path)
        if self.at < len(self.lines) and not is_file_header(self.lines, self.at):
            self._check_end(path)

    def _check_end(self, path: str) -> None:
        """Refuse text behind a file's last hunk if it may belong to the hunk."""
        line = self.lines[self.at]
        if is_signature(line) or not line.strip() or line.startswith(BETWEEN_DIFFS):
            return
        if line.startswith((" ", "+", "-")):
            reason = "lines follow that its last hunk does not count; "
            raise PatchDamaged(reason + RESEND, file=path, detail=line[:200])
        if self.lines[self.at - 1].startswith("+"):
            reason = "text follows right behind an added line and may be the other half of it; "
            raise PatchDamaged(reason + RESEND, file=path, detail=line[:200])

    def _hunk(self, path: str) -> Hunk:
        header = self.lines[self.at]
        numbers = parse_hunk_header(header)
        if numbers is None:
            raise PatchDamaged("the hunk's header cannot be read; " + RESEND, file=path, hunk=header[:120])
        old_start, old_count, new_start, new_count, section = numbers
        self.at += 1
        body: list[str] = []
        old = new = 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if is_no_newline(line) and body:
                body.append(NO_NEWLINE)
            elif (old == old_count and new == new_count) or line[:1] not in ("", " ", "+", "-"):
                break
            else:
                # git, too, reads an empty line as an empty line of context
                body.append(line or " ")
                old += line[:1] != "+"
                new += line[:1] != "-"
            self.at += 1
        if (old, new) != (old_count, new_count):
            raise PatchDamaged(
                f"the header counts {old_count} old and {new_count} new lines, there are {old} and {new}; {RESEND}",
                file=path,
                hunk=header[:120],
                detail="\n".join(body[-5:] + self.lines[self.at : self.at + 1])[:2000],
            )
        if not ends_well(body):
            raise PatchDamaged(
                "a line without a newline is not its last; " + RESEND, file=path, hunk=header[:120]
            )
        return Hunk(old_start, old_count, new_start, new_count, section, tuple(body))


def ends_well(body: Sequence[str]) -> bool:
    """Return whether only the last line of a side is marked as having no newline."""
    markers = [at for at, line in enumerate(body) if line == NO_NEWLINE]
    if len(markers) > 2:
        return False
    for at in markers:
        sides = {" ": " -+", "-": " -", "+": " +"}.get(body[at - 1][0], NO_NEWLINE[0])
        if any(line[0] in sides for line in body[at + 1 :]):
            return False
    return True


def parse_hunk_header(line: str) -> tuple[int, int, int, int, str] | None:
    """Old start and count, new start and count, and the section's name; None if this is not a hunk header."""
    match = HUNK_HEADER.fullmatch(line)
    if match is None:
        return None
    old_start, old_count, new_start, new_count, section = match.groups()
    return int(old_start), int(old_count or 1), int(new_start), int(new_count or 1), (section or "").rstrip()


def is_no_newline(line: str) -> bool:
    """Return whether the line marks the previous line as having no newline: git's text, or diff(1)'s in any language."""
    return line.startswith("\\ ") and len(line) >= 12


def is_signature(line: str) -> bool:
    """Return whether the line is the `-- ` that mailers put before a signature (archives eat its blank)."""
    return line.rstrip() == "--"


def _read_extended(header: _Header, line: str) -> bool:
    """Take in one of git's extended header lines; return False if it is none."""
    word, _, rest = line.partition(" ")
    match word, rest.partition(" ")[0]:
        case ("old", "mode"):
            header.old_mode = line.removeprefix("old mode ").strip()
        case ("new", "mode"):
            header.new_mode = line.removeprefix("new mode ").strip()
        case ("new", "file"):
            header.kind, header.new_mode = "added", line.removeprefix("new file mode ").strip()
        case ("deleted", "file"):
            header.kind, header.old_mode = "deleted", line.removeprefix("deleted file mode ").strip()
        case ("rename" | "copy", "from" | "to" as side):
            header.kind = "renamed" if word == "rename" else "copied"
            header.renamed[side] = unquote_path(rest.removeprefix(side + " "))
        case ("similarity" | "dissimilarity", "index"):
            pass
        case ("index", _):
            match = _INDEX.fullmatch(line.rstrip())
            if match:
                header.index = match[1]
                header.old_mode = header.old_mode or match[2] or ""
                header.new_mode = header.new_mode or match[2] or ""
        case _:
            return False
    return True


def _paths(header: _Header) -> tuple[str, str]:
    """Return the file's old and new path from all lines that name it, which must agree."""
    if header.renamed:
        if set(header.renamed) != {"from", "to"}:
            raise PatchRejected(
                "a rename that does not say from where or to where; " + RESEND, detail=header.git_line
            )
        named = (header.renamed["from"], header.renamed["to"])
        if header.minus and without_prefix(header.minus, header.plus) != named:
            raise PatchRejected("its headers name different files; " + RESEND, file=named[1])
        return named
    if header.minus:
        return without_prefix(header.minus, header.plus)
    return git_line_paths(header.git_line)


def _render_file(file: FileDiff) -> Iterator[str]:
    yield f"diff --git a/{file.old_path} b/{file.new_path}"
    if file.kind == "added":
        yield f"new file mode {file.new_mode or '100644'}"
    elif file.kind == "deleted":
        yield f"deleted file mode {file.old_mode or '100644'}"
    elif file.old_mode != file.new_mode:
        yield f"old mode {file.old_mode}"
        yield f"new mode {file.new_mode}"
    if file.kind in ("renamed", "copied"):
        word = "rename" if file.kind == "renamed" else "copy"
        yield f"{word} from {file.old_path}"
        yield f"{word} to {file.new_path}"
    changed_mode = file.old_mode != file.new_mode
    if file.kind in ("added", "deleted") or changed_mode:
        if file.index:
            yield f"index {file.index}"
    elif file.hunks:
        # Written even if the diff has no mode: without one git would patch a symlink's target.
        yield f"index {file.index or UNKNOWN_INDEX} {file.old_mode or '100644'}"
    if file.hunks:
        yield "--- /dev/null" if file.kind == "added" else f"--- a/{file.old_path}"
        yield "+++ /dev/null" if file.kind == "deleted" else f"+++ b/{file.new_path}"
    for hunk in file.hunks:
        yield hunk.header
        yield from hunk.lines
