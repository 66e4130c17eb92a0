# SPDX-License-Identifier: GPL-2.0-or-later
"""The counts of `bench.front_kernels`, and its end."""

from pathlib import Path

import pytest

from bench.front_kernels import DIFFERS, FAILS, FAILS_ONCE, SAME, Outcome, headers, report


def test_headers_are_counted_by_file_and_generated_ones_left_out(tmp_path: Path) -> None:
    (tmp_path / "fs").mkdir()
    line = "  /build/linux/include/linux/fs.h \\\n  /build/linux/include/linux//fs.h \\\n"
    (tmp_path / "fs" / ".a.o.cmd").write_text(line + line + "  /build/linux/arch/x86/include/asm/page.h \\\n")
    (tmp_path / "fs" / ".b.o.cmd").write_text(line + "  /build/linux/include/generated/autoconf.h \\\n")
    assert headers(tmp_path) == {"include/linux/fs.h": 2, "arch/x86/include/asm/page.h": 1}


@pytest.mark.parametrize("result", [DIFFERS, FAILS_ONCE])
def test_a_kernel_that_differs_is_named_below_the_table(result: str) -> None:
    good = Outcome(0, "field", "include/linux/fs.h", 30, SAME, 3, 2, 50.0, 20.0)
    bad = Outcome(1, "macro", "include/linux/mm.h", 40, result)
    lines = list(report([good, bad]))
    assert lines[-1] == f"{result}: change 1, macro in include/linux/mm.h"
    assert lines[-2] == "| all | 2 | 2 | 1 | 0 | 30 | 3 | 2 | 50 | 20 |"


def test_a_trial_in_which_the_front_answered_nothing_says_so() -> None:
    """As one did, whose base was another front's."""
    rows = [
        Outcome(0, "field", "include/linux/fs.h", 30, SAME, 34, 2),
        Outcome(1, "field", "include/linux/mm.h", 9, FAILS),
    ]
    assert [*report(rows)][-1].startswith("Nothing was answered")


def test_kernels_that_compile_neither_way_are_counted_apart() -> None:
    lines = list(report([Outcome(0, "field", "include/linux/fs.h", 30, FAILS)]))
    assert lines[-1] == "| all | 1 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |"
