# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's console says went wrong: panics, oopses, lockups, hung tasks and their kin.

A scan takes time in proportion to the text, whatever a guest prints (a console is written by the kernel under
judgement): bytes.find() looks for a few literals, and patterns are tried only there, on a bounded piece of one line.
`python -m bench.console` says how much this sees on a labelled corpus, and how quickly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Kind = Literal[
    "panic",
    "oops",
    "gpf",
    "bug",
    "memory",
    "lockup",
    "hung-task",
    "rcu-stall",
    "locking",
    "warning",
    "leak",
    "oom",
]
FATAL = frozenset({"panic", "oops", "gpf", "bug", "memory"})
"""Kinds that can be the cause of a panic; the others may be older."""
PANIC = b"Kernel panic - not syncing"

EXCERPT_LINES = 60
MAX_LINE = 512
"""So far into a line a finding may begin, and so much of it is looked at; the kernel's own lines are shorter."""
MAX_FINDINGS = 200
"""A kernel that goes on for ever needs no longer list."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that went wrong: `line_no` counts from 1, `excerpt` is the console from there on."""

    kind: Kind
    title: str
    line_no: int
    excerpt: str


# What to look for → what it must be the beginning of to count, and as which kind; the first that fits decides.
# Words that user space prints too ("WARNING: ...") count only in the forms that the kernel has for them.
_PATTERNS: dict[bytes, list[tuple[Kind, bytes]]] = {
    PANIC: [("panic", rb"")],
    b"PANIC": [("panic", rb"PANIC: double fault")],
    b"BUG": [
        ("memory", rb"BUG: K(?:A|M|C)SAN: |BUG: KFENCE: |BUG: Bad (?:page|rss)|BUG [\w:-]+ +\("),
        ("lockup", rb"BUG: (?:soft lockup|workqueue lockup|spinlock lockup|rwlock.* lockup)"),
        ("oops", rb"BUG: (?:unable to handle|kernel NULL pointer|stack guard page)"),
        ("oops", rb"BUG: (?:TASK stack guard|IRQ stack|\S+ stack guard) page was hit"),
        (
            "locking",
            rb"BUG: (?:sleeping function|scheduling while atomic|using |bad unlock|held lock|still has)",
        ),
        ("bug", rb"BUG at |BUG: [^ \d#]"),
    ],
    b"Oops": [("oops", rb"Oops(?:: | - )")],
    b"[#": [("oops", rb"\[#\d+\]")],
    b"Internal error: ": [("oops", rb"")],
    b"Unhandled fault: ": [("oops", rb"")],
    b"general protection fault": [("gpf", rb"general protection fault(?:, |: )")],
    b"LOCKUP": [("lockup", rb"LOCKUP on cpu")],
    b"INFO:": [
        ("hung-task", rb"INFO: task \S.{,60} (?:blocked (?:for more than|in I/O wait)|can't die for)"),
        ("rcu-stall", rb"INFO: rcu\w{,20} (?:self-)?detected (?:expedited )?stall"),
        (
            "locking",
            rb"INFO: (?:possible |suspicious RCU|inconsistent lock|trying to register non-static)",
        ),
        ("locking", rb"INFO: (?:HARDIRQ|SOFTIRQ|RECLAIM|bad unlock)"),
        ("memory", rb"INFO: (?:Allocated|Freed|Slab|Object) (?:in )?"),
    ],
    b"WARNING": [
        ("warning", rb"WARNING: (?:CPU: \d+ PID: \d+ )?at \S|WARNING: \S+:\d+ at \S"),
        (
            "locking",
            rb"WARNING: (?:possible |suspicious RCU|inconsistent lock|bad unlock|held lock|lock held)",
        ),
        (
            "locking",
            rb"WARNING: (?:\S+ still has locks|still has|Nested lock|\S+-safe -> \S+-unsafe|chain )",
        ),
        ("warning", rb"WARNING: (?:kernel stack|zero-size|stack recursion)"),
    ],
    b"UBSAN": [("memory", rb"UBSAN: ([A-Za-z-]+ )?[a-z-]+ in ")],
    b"refcount_t": [("memory", rb"refcount_t: (?:underflow|addition|increment|decrement|saturated)")],
    b"unreferenced object": [("leak", rb"unreferenced object 0x")],
    b"list_add": [("memory", rb"list_add corruption")],
    b"list_del": [("memory", rb"list_del corruption")],
    b"Busy inodes": [("warning", rb"Busy inodes after unmount")],
    b"Out of memory: ": [("oom", rb"Out of memory: Kill")],
}
RULES = {
    literal: tuple((kind, re.compile(pattern)) for kind, pattern in patterns)
    for literal, patterns in _PATTERNS.items()
}


def scan_console(text: bytes) -> list[Finding]:
    """The findings of a console in its order, one a line, the first MAX_FINDINGS of them."""
    found: dict[int, tuple[int, Kind]] = {}
    for literal, patterns in RULES.items():
        # More of one rule could not be among the first of all.
        for start, at, kind in islice(_hits(text, literal, patterns), MAX_FINDINGS):
            if start not in found or at < found[start][0]:
                found[start] = (at, kind)
    findings, line_no, seen = [], 1, 0
    for start in sorted(found)[:MAX_FINDINGS]:
        line_no += text.count(b"\n", seen, start)
        seen = start
        at, kind = found[start]
        findings.append(Finding(kind, _title(text, at), line_no, _excerpt(text, start)))
    return findings


def _hits(
    text: bytes, literal: bytes, patterns: tuple[tuple[Kind, re.Pattern[bytes]], ...]
) -> Iterator[tuple[int, int, Kind]]:
    """Start of line, place and kind of what one literal finds, one a line."""
    at = text.find(literal)
    while at >= 0:
        line = text.rfind(b"\n", max(0, at - MAX_LINE), at) + 1
        beyond = at + len(literal)
        deep = line == 0 and at > MAX_LINE
        # No letter before it: DEBUG is no BUG.
        if not deep and not text[at - 1 : at].isalpha():
            for kind, pattern in patterns:
                if pattern.match(text, at, at + MAX_LINE):
                    yield line, at, kind
                    beyond = at + len(text[at : at + MAX_LINE].partition(b"\n")[0])
                    break
        at = text.find(literal, beyond)


def _title(text: bytes, at: int) -> str:
    return text[at : at + MAX_LINE].partition(b"\n")[0].decode(errors="replace").strip()


def _excerpt(text: bytes, start: int) -> str:
    lines = text[start : start + EXCERPT_LINES * MAX_LINE].decode(errors="replace").splitlines()
    return "\n".join(lines[:EXCERPT_LINES])
