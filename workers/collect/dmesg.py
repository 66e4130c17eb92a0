# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's console says went wrong: panics, oopses, lockups, hung tasks and their kin.

Every rule is a literal that bytes.find() can look for, then a pattern anchored at it on its one line, so a scan
takes linear time whatever a guest prints (a console is written by the kernel under judgement).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "panic", "oops", "gpf", "bug", "warning", "lockup", "hung-task", "rcu-stall", "memory", "locking"
]

EXCERPT_LINES = 60
MAX_LINE = 512
"""So much of a line is looked at; the kernel's own lines are shorter."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that went wrong: `line_no` counts from 1, `excerpt` is the console from there on."""

    kind: Kind
    title: str
    line_no: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`literal` finds candidates; `pattern` must match from there to make it a finding."""

    kind: Kind
    literal: bytes
    pattern: re.Pattern[bytes]


def _rule(kind: Kind, literal: str, rest: str = "") -> Rule:
    return Rule(kind, literal.encode(), re.compile(re.escape(literal).encode() + rest.encode()))


RULES = (
    _rule("panic", "Kernel panic - not syncing"),
    _rule("oops", "BUG: unable to handle"),
    _rule("oops", "BUG: kernel NULL pointer"),
    _rule("oops", "Oops: "),
    _rule("gpf", "general protection fault"),
    _rule("lockup", "watchdog: BUG: soft lockup"),
    _rule("hung-task", "INFO: task ", r"\S+ blocked for more than"),
    _rule("rcu-stall", "rcu: INFO: rcu_"),
    _rule("bug", "kernel BUG at "),
    _rule("bug", "BUG: "),
    _rule("warning", "WARNING: "),
)
PANIC = b"Kernel panic - not syncing"
FATAL = frozenset({"panic", "oops", "gpf", "bug"})
"""Kinds that can be the cause of a panic; the others may be older."""


def scan_console(text: bytes) -> list[Finding]:
    """All findings of a console, in its order, at most one a line."""
    found: dict[int, tuple[Rule, int]] = {}
    for rule in RULES:
        at = text.find(rule.literal)
        while at >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            if at - start < MAX_LINE and start not in found and rule.pattern.match(text, at, at + MAX_LINE):
                found[start] = (rule, at)
            at = text.find(rule.literal, at + len(rule.literal))
    return [_finding(text, start, *found[start]) for start in sorted(found)]


def _finding(text: bytes, start: int, rule: Rule, at: int) -> Finding:
    title = text[at : at + MAX_LINE].split(b"\n", 1)[0].decode(errors="replace").strip()
    lines = text[start : start + EXCERPT_LINES * MAX_LINE].decode(errors="replace").splitlines()
    return Finding(rule.kind, title, text.count(b"\n", 0, start) + 1, "\n".join(lines[:EXCERPT_LINES]))
