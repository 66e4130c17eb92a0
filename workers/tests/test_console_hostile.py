# SPDX-License-Identifier: GPL-2.0-or-later
"""Consoles that a hostile kernel writes: read in bounded memory, with bounded lists, without raising."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from workers.collect import dmesg
from workers.collect.console_rules import FORMS
from workers.collect.console_search import Literals
from workers.collect.dmesg import EXCERPT_BYTES, MAX_FINDINGS, MAX_MISSES, MAX_TITLE, scan_console

pytestmark = pytest.mark.hostile
# Enough for a list that is too long; where memory or work is measured, a console that would show in it.
BYTES, LARGE = 192 << 10, 2 << 20
# Each finding is read for a millisecond.
FEW = 12
REPORT = b"[    1.000000] kernel BUG at fs/inode.c:632!\n"
PIECES = {
    "lines of BUG": b"BUG\n",
    "lines of BUG:": b"BUG: \n",
    "BUG without line breaks": b"BUG",
    "BUG: in one line": b"BUG: ",
    "generic reports": b"BUG: x y z\n",
    "reports": REPORT,
    "panics": b"Kernel panic - not syncing: x\n",
    "tasks that hang": b"INFO: task a:1 blocked for more than 1 seconds.\n",
    "beginnings of hung tasks": b"INFO: task ",
    "names of line breaks": b"INFO: task \n\n\n\n\n\n",
    "conditions that never end": b"WARNING: [" + b"a" * 300 + b"\n",
    "brackets": b"WARNING: [[[[[[[[",
    "counters of oopses": b"[#1]",
    "opened counters": b"[#",
    "stamps": b"[    1.000000] ",
    "callers": b"[    T1]",
    "levels": b"<4>",
    "stamps before a report": b"[    1.000000] " * 20 + b"Oops: 0000 [#1]\n",
    "NULs": b"\0",
    "NULs and reports": b"\0BUG: KASAN: x\0\n",
    "bytes that are not UTF-8": b"\xff\xfeWARNING: CPU: 1 PID: 1 at \xc3\x28\n",
    "escapes": b"\x1b[31m",
    "escapes that never end": b"\x1b]0;",
    "escapes before reports": b"\x1b[31mBUG: KASAN: a in b+0x1/0x2\x1b]0;title\x07\n",
    "carriage returns": b"BUG: KASAN: a in b\r",
    "banners": b"[    0.000000] Linux version 6.1 (x) #1\n[    0.100000] a\n",
    "firmware": b"SeaBIOS (version 1)\n[    0.100000] a\n",
    "safe locks": b"WARNING: a-safe -> a-safe -> ",
    "UBSAN": b"UBSAN: a-a-a-a-",
    "quotes": b"'BUG: KASAN: '\n",
    "programs": b"x[1]: BUG: KASAN: y\n",
    "prefixes": b"a: b: c: d: e: BUG: z z\n",
    "slab names": b"BUG aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (a" + b"\n",
    "stacks": b"Oops: 0000 [#1]\nCall Trace:\n" + b" a+b" * 200 + b"\n",
    "pointers": b"Oops: 0000 [#1]\n" + b"RIP: " * 400 + b"\n",
    "nested reports": b"BUG: KASAN: a in BUG: KFENCE: b in WARNING: CPU: 1 PID: 1 at Oops: 0000 [#1]\n",
    "spaces": b" ",
    "line breaks": b"\n",
    "one letter": b"x",
    "every word, one a line": b"\n".join(FORMS) + b"\n",
    "every word in one line": b"".join(FORMS),
    "every word, quoted": b"".join(b'x[1]: "' + word + b'"\n' for word in FORMS),
}


ANYWHERE = dict.fromkeys([b"kernel BUG", b"BUG", b"[#", b"Oops"], 0)


def console(name: str, size: int = BYTES) -> bytes:
    return PIECES[name] * (size // len(PIECES[name]))


@pytest.mark.parametrize("name", PIECES)
def test_a_hostile_console_gives_a_bounded_list(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmesg, "MAX_FINDINGS", FEW)
    text = console(name)
    findings = scan_console(text)
    assert len(findings) <= FEW
    assert all(
        len(finding.title) <= MAX_TITLE + 64 and len(finding.excerpt) <= EXCERPT_BYTES for finding in findings
    )
    assert all(character.isprintable() for finding in findings for character in finding.title)
    lines = text.count(b"\n") + 1
    assert all(1 <= finding.line_no <= lines for finding in findings)


@pytest.mark.parametrize(
    "name", ["lines of BUG", "reports", "BUG without line breaks", "stamps", "stacks", "escapes"]
)
def test_memory_does_not_grow_with_a_hostile_console(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmesg, "MAX_FINDINGS", FEW)
    text = console(name, LARGE)
    tracemalloc.start()
    scan_console(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20


@pytest.mark.parametrize(
    "name", ["lines of BUG", "BUG without line breaks", "opened counters", "programs", "quotes"]
)
def test_lines_are_examined_a_bounded_number_of_times(name: str) -> None:
    with patch.object(dmesg, "_report", wraps=dmesg._report) as examined:
        scan_console(console(name, LARGE))
    assert examined.call_count <= 3 * (MAX_MISSES + MAX_FINDINGS)


@pytest.mark.parametrize("name", ["every word, one a line", "every word, quoted"])
def test_a_console_of_every_word_is_examined_no_more_often_than_its_words_allow(name: str) -> None:
    """The worst that can be read: the work has a ceiling, however long the console is."""
    with (
        patch.object(dmesg, "MAX_MISSES", 50),
        patch.object(dmesg, "_report", wraps=dmesg._report) as examined,
    ):
        scan_console(console(name, LARGE))
    assert examined.call_count <= len(FORMS) * (50 + MAX_FINDINGS)


@pytest.mark.thorough
def test_a_million_reports_are_counted_and_the_first_are_kept() -> None:
    findings = scan_console(REPORT * 1_000_000)
    assert len(findings) == MAX_FINDINGS
    assert {finding.kind for finding in findings[:-1]} == {"bug"}
    assert (findings[-1].kind, findings[-1].title) == (
        "more",
        "999,801 more lines look like reports and are not listed",
    )


def test_a_literal_that_is_given_up_is_mentioned() -> None:
    (last,) = scan_console(b"x[1]: BUG: y\n" * (MAX_MISSES + 500))
    assert (last.kind, last.title) == ("more", "500 more lines look like reports and are not listed")


def test_a_report_before_noise_is_found() -> None:
    findings = scan_console(REPORT + b"x[1]: BUG: KASAN: y\n" * (MAX_MISSES + 500))
    assert [finding.kind for finding in findings] == ["bug", "more"]


def test_noise_of_one_literal_hides_no_other() -> None:
    findings = scan_console(b"x[1]: BUG: y\n" * (MAX_MISSES + 500) + b"Kernel panic - not syncing: end\n")
    assert [finding.kind for finding in findings] == ["panic", "more"]


@pytest.mark.thorough
def test_a_line_of_64_megabytes_holds_no_report_and_does_not_hide_the_next() -> None:
    findings = scan_console(b"BUG: KASAN: x in y+0x1/0x2 " + b"BUG: z " * (64 << 17) + b"\n" + REPORT)
    assert [(finding.kind, finding.line_no) for finding in findings] == [("memory", 1), ("bug", 2)]


@pytest.mark.parametrize(
    "evil",
    [
        b"\x1b[2J\x1b[31mred",
        b"\x1b]0;owned\x07",
        b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        b"\x9b31mred",
        b"a\x00b\x08\x7f",
        b"\xe2\x80\xaegnp.exe",
        b"\xef\xbb\xbf\xe2\x81\xa6",
        b"\xff\xfe\xfa",
        b"a\rkernel: fine",
    ],
)
def test_no_title_or_excerpt_drives_a_terminal(evil: bytes) -> None:
    (finding,) = scan_console(
        b"[    1.000000] Kernel panic - not syncing: " + evil + b"\n\tnext " + evil + b"\n"
    )
    for text in (finding.title, finding.excerpt.replace("\n", "").replace("\t", "")):
        assert text.isprintable()
        assert "owned" not in text
    assert finding.kind == "panic"


def interleaved() -> Iterator[bytes]:
    generator = random.Random(7)
    alphabet = [*PIECES.values(), REPORT, b"\n", b" ", b"\r\n"]
    for _ in range(120):
        pieces = [generator.choice(alphabet) for _ in range(generator.randint(1, 60))]
        yield b"".join(piece[generator.randint(0, 3) :] for piece in pieces)


def test_any_mixture_is_read() -> None:
    for text in interleaved():
        findings = scan_console(text)
        assert len(findings) <= MAX_FINDINGS
        assert [finding.line_no for finding in findings] == sorted(finding.line_no for finding in findings)


def test_a_report_is_found_wherever_it_stands_among_blocks() -> None:
    """The search goes block by block: none of its edges may hide a word."""
    size = 1 << 12
    literals = Literals({b"kernel BUG": b"BU", b"BUG": b"UG"})
    with patch("workers.collect.console_search.BLOCK", size):
        for at in range(size - 24, size + 24):
            text = b"." * at + b"kernel BUG" + b"." * 100
            assert sorted(literals.places(text, ANYWHERE)) == [(at, b"kernel BUG"), (at + 7, b"BUG")]


def test_a_block_full_of_words_gives_the_same_places_as_a_sparse_one() -> None:
    literals = Literals({b"[#": b"[#", b"Oops": b"Oo"})
    text = b"Oops[#[#Oops" * 300
    with patch("workers.collect.console_search.BLOCK", 512):
        sparse = sorted(literals.places(text, ANYWHERE))
        with patch("workers.collect.console_search.DENSE", 0):
            dense = sorted(literals.places(text, ANYWHERE))
    assert dense == sparse
    assert len(sparse) == 1200
