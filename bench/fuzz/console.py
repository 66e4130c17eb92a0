# SPDX-License-Identifier: GPL-2.0-or-later
"""Consoles: nothing is refused, the list is bounded and in order, and its text can be shown anywhere."""

import random
from functools import cache

from workers.collect.console_rules import FORMS
from workers.collect.dmesg import EXCERPT_BYTES, MAX_FINDINGS, scan_console

REFUSALS: tuple[type[Exception], ...] = ()


def feed(data: bytes) -> None:
    """Scan a console and check what holds of every list of findings."""
    found = scan_console(data)
    assert len(found) <= MAX_FINDINGS, "more findings than allowed"
    numbers = [finding.line_no for finding in found]
    assert numbers == sorted(numbers), "findings out of order"
    assert not numbers or 1 <= numbers[0] <= numbers[-1] <= data.count(b"\n") + 1, "a line that is not there"
    for finding in found:
        shown = finding.title + finding.frame + finding.excerpt.replace("\n", "").replace("\t", "")
        assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown), "control"
        assert len(finding.excerpt) <= EXCERPT_BYTES, "a long excerpt"


@cache
def _words() -> tuple[bytes, ...]:
    return (
        *FORMS,
        b"[    1.000000] ",
        b"[   T31] ",
        b"\r\n",
        b"\x1b[31m",
        b"Linux version ",
        b"+0x1/0x2",
        b": ",
    )


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Put a word of a report somewhere, or repeat or drop a piece."""
    at = rng.randint(0, len(data))
    end = min(len(data), at + rng.randint(0, 80))
    choice = rng.random()
    if choice < 0.6:
        return data[:at] + rng.choice(_words()) + data[at:]
    return data[:end] + data[at:] if choice < 0.8 else data[:at] + data[end:]
