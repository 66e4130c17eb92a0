# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms of the kernel's reports, by the literal that each form contains: console_forms.tsv.

The forms come from the kernel's sources (bench/console_formats.py extracts them; golden/consoles/formats.tsv pins what
each one counts as), from 4.x to 6.19, x86, arm, arm64, riscv and the generic code. A literal is searched for in the
whole console, so there are few of them; the patterns are tried only where a literal is, at the literal itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

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
    "fs",
    "net",
    "hardware",
    "reboot",
    "more",
]
Place = Literal["anywhere", "start", "traced", "whole"]


@dataclass(frozen=True, slots=True)
class Form:
    """One form of report: its kind, how it reads from its literal on, and where in a message the literal may be (see the table)."""

    kind: Kind
    pattern: re.Pattern[bytes]
    place: Place


# A task's name: up to 15 bytes of anything, and the line breaks in it come with the console's own prefixes.
COMM = ".{0,48}?"
LOCKDEP = (
    r"possible (?:circular |recursive |irq |deadlock)|suspicious RCU usage|suspicious rcu_dereference"
    r"|inconsistent (?:\{[^}]{1,40}\} )?lock|bad unlock balance|bad contention|held lock freed|lock held (?:when|at)"
    r"|Nested lock was not taken|chain_key collision|\S{1,20}-safe -> \S{1,20}-(?:un)?safe lock"
    r"|@COMM@/\d+ (?:still has locks held|is leaving the kernel with locks|is exiting with locks)"
    r"|[Ii]nvalid wait context|possible reason|deadlock detected|circular locking deadlock|@COMM@ circular locking deadlock"
)
SANITIZERS = "BUG: (?:KASAN|KCSAN|KMSAN|KFENCE|KTSAN|KHWASAN)[ :]"

FORMS: dict[bytes, list[Form]] = {}
PAIRS: dict[bytes, bytes] = {}
"""The two bytes of each literal that are rarest in consoles; see console_search."""


def _read_table() -> None:
    for line in Path(__file__).with_name("console_forms.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, literal, pair, pattern, place = line.split("\t")
        for name, text in (("LOCKDEP", LOCKDEP), ("SANITIZERS", SANITIZERS), ("COMM", COMM)):
            pattern = pattern.replace(f"@{name}@", text)
        form = Form(cast(Kind, kind), re.compile(pattern.encode()), cast(Place, place))
        FORMS.setdefault(literal.encode(), []).append(form)
        PAIRS[literal.encode()] = pair.encode()


_read_table()
