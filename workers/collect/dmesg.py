# SPDX-License-Identifier: GPL-2.0-or-later
"""Find what a guest's console says went wrong: panics, oopses, lockups, hung tasks, warnings and their kin.

A scan takes time in proportion to the text, whatever a guest prints (a console is written by the kernel under
judgement): bytes.find() looks for a few literals, and patterns are tried only there, on a bounded piece of one line.
A literal is given up after MAX_MISSES lines with it that are no reports, and the list says so.
`python -m bench.console` measures how much this sees on labelled consoles, and how quickly.
"""

from dataclasses import dataclass

from lab.runs import guest_limits
from workers.collect.console_frames import Shape, shape_of
from workers.collect.console_lines import (
    MAX_LINE,
    begins_message,
    may_hold_report,
    message_start,
    readable,
    unbroken,
)
from workers.collect.console_reboot import BOOT_PAIRS, MAX_BOOTS, TITLE, begins_boot, reboots
from workers.collect.console_rules import FORMS, PAIRS, Form, Kind
from workers.collect.console_search import Literals, newlines

FATAL = frozenset({"panic", "oops", "gpf", "bug", "memory"})
"""Kinds that can be the cause of a panic; the others may be older."""
PANIC = b"Kernel panic - not syncing"

EXCERPT_LINES = 60
EXCERPT_BYTES = 8192
REPORT_BYTES = 24_576
"""Bytes of a report that are searched for its stack."""
MAX_FINDINGS = guest_limits.FINDINGS
"""Even a kernel that reports for ever does not need a longer list."""
MAX_MISSES = 10_000
"""After this many misses a literal is not looked at again in this console."""
MAX_JOINED = 1000
"""After this many misses a literal's line is no longer joined with the next ones."""
MAX_TITLE = 240
LITERALS = Literals({**PAIRS, **BOOT_PAIRS})
RANKS = {literal: rank for rank, literal in enumerate(FORMS)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that went wrong: `line_no` counts from 1, `excerpt` is the console from there on.

    frame: the function that the report is about, "" if it names none. corrupted: the report is cut off or mixed with
    another, so that title and frame may be wrong.
    """

    kind: Kind
    title: str
    line_no: int
    excerpt: str
    frame: str = ""
    corrupted: bool = False


@dataclass(slots=True)
class _Hit:
    """A line that is a report: its offset, where the report's words begin, its form and its words."""

    line: int
    at: int
    rank: int
    form: Form
    words: bytes


class _Search:
    """One scan: the reports by the offset of their line, and how many more lines hold a literal that is given up."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.hits: dict[int, _Hit] = {}
        self.boots: set[int] = set()
        self._wanted_from = dict.fromkeys([*FORMS, *BOOT_PAIRS], 0)
        self._reports = dict.fromkeys(FORMS, 0)
        self._misses = dict.fromkeys(FORMS, 0)
        self._given_up: dict[bytes, int] = {}

    def run(self) -> None:
        """Enter every report, the first MAX_FINDINGS of each literal."""
        for at, literal in LITERALS.places(self.text, self._wanted_from):
            if literal in BOOT_PAIRS:
                self._enter_boot(at, literal)
            elif self._reports[literal] >= MAX_FINDINGS or self._misses[literal] >= MAX_MISSES:
                self._given_up[literal] = at
                self._wanted_from[literal] = len(self.text)
            else:
                self._look_at(at, literal)

    def unread(self) -> int:
        """Return how many further places contain a literal whose search was given up."""
        return sum(self.text.count(literal, at) for literal, at in self._given_up.items())

    def _enter_boot(self, at: int, literal: bytes) -> None:
        start = begins_boot(self.text, literal, at)
        if start is not None:
            self.boots.add(start)
        if len(self.boots) >= MAX_BOOTS:
            self._wanted_from.update(dict.fromkeys(BOOT_PAIRS, len(self.text)))

    def _look_at(self, at: int, literal: bytes) -> None:
        text = self.text
        line = text.rfind(b"\n", max(0, at - MAX_LINE), at) + 1
        too_far = line == 0 and at > MAX_LINE
        joined = self._misses[literal] < MAX_JOINED
        hit = None if too_far else _report(text, line, at, literal, joined)
        if hit:
            self._reports[literal] += 1
            known = self.hits.get(line)
            if known is None or (hit.at, hit.rank) < (known.at, known.rank):
                self.hits[line] = hit
        if hit or too_far:
            # One report a line, and none too far into one.
            self._wanted_from[literal] = text.find(b"\n", at) + 1 or len(text)
        else:
            self._misses[literal] += 1


def scan_console(text: bytes) -> list[Finding]:
    """Return the findings of a console in its order, one a line, at most MAX_FINDINGS; the last may count the rest."""
    search = _Search(text)
    search.run()
    fatal = sorted(start for start, hit in search.hits.items() if hit.form.kind in FATAL)
    again = set(reboots(text, search.boots, fatal)) - search.hits.keys()
    starts = sorted(search.hits.keys() | again)
    findings, line_no, seen = [], 1, 0
    for start in starts[: MAX_FINDINGS - 1]:
        line_no += newlines(text, seen, start)
        seen = start
        findings.append(
            Finding("reboot", TITLE, line_no, _excerpt(text, start))
            if start in again
            else _finding(text, search.hits[start], line_no)
        )
    rest = len(starts) - len(findings) + search.unread()
    if rest:
        title = f"{rest:,} more lines look like reports and are not listed"
        findings.append(Finding("more", title, line_no, ""))
    return findings


def _report(text: bytes, line: int, at: int, literal: bytes, joined: bool) -> _Hit | None:
    """Return the report that the literal at an offset belongs to, if any; joined: across line breaks too."""
    start = line + message_start(text[line:at])
    before = text[start:at]
    if not may_hold_report(before):
        return None
    window = text[start : at + MAX_LINE]
    skip = at - start
    physical = window[:skip] + window[skip:].partition(b"\n")[0].rstrip(b"\r")
    readings = (physical, window[:skip] + unbroken(window[skip:])) if joined else (physical,)
    for words in readings:
        for form in FORMS[literal]:
            match = form.pattern.match(words, skip)
            if match and (form.place in ("anywhere", "whole") or _begins(text, before, at, form)):
                end = max(match.end(), len(physical))
                whole = form.place == "whole"
                return _Hit(
                    line, start if whole else at, RANKS[literal], form, words[0 if whole else skip : end]
                )
    return None


def _begins(text: bytes, before: bytes, at: int, form: Form) -> bool:
    """Return whether a form's words begin the message, and a stack follows if the form needs one."""
    if not begins_message(before):
        return False
    return form.place == "start" or b"Call Trace" in text[at : at + 4 * MAX_LINE]


def _finding(text: bytes, hit: _Hit, line_no: int) -> Finding:
    excerpt = _excerpt(text, hit.line)
    title = " ".join(readable(hit.words).split())[:MAX_TITLE].removesuffix(" ]")
    report = readable(text[hit.line : hit.line + REPORT_BYTES])
    shape: Shape = shape_of(hit.form.kind, title, report)
    if shape.frame and hit.form.kind in {"oops", "gpf", "bug", "lockup"} and shape.frame not in title:
        title = f"{title} in {shape.frame}"
    return Finding(hit.form.kind, title, line_no, excerpt, shape.frame, shape.corrupted)


def _excerpt(text: bytes, start: int) -> str:
    lines = readable(text[start : start + EXCERPT_BYTES]).split("\n")
    return "\n".join(lines[:EXCERPT_LINES])
