# SPDX-License-Identifier: GPL-2.0-or-later
"""Folding `perf script`: the golden text is from one of our own guests (6.1.192, perf 6.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.errors import ProfileUnreadable
from workers.tests.perfscript import fold_perf_data, fold_script

GOLDEN = Path(__file__).parent / "golden" / "perf-script.txt"


def test_a_stack_begins_with_the_command_and_ends_with_the_innermost_frame() -> None:
    folded = fold_script(GOLDEN.read_text().splitlines())
    assert folded.samples == 6
    assert all(stack[0] in {"find", "swapper"} for stack in folded.stacks)
    idle = [stack for stack in folded.stacks if stack[0] == "swapper"]
    assert {stack[1] for stack in idle} == {"secondary_startup_64_no_verify"}


def test_equal_stacks_are_counted_and_lost_samples_are_told() -> None:
    text = "walk er   42 \n\tffff1 down_read+0x1 ([kernel.kallsyms])\n\tffff2 path_openat ([kernel.kallsyms])\n\n"
    lost = "walker 42 PERF_RECORD_LOST lost 17\n\n"
    folded = fold_script((text + lost + text).splitlines())
    assert folded.stacks == {("walk er", "path_openat", "down_read"): 2}
    assert folded.lost == 17


def test_unnamed_frames_of_one_file_become_one() -> None:
    text = "showgids 7 \n\tffff1 open ([kernel.kallsyms])\n\t4010 [unknown] (/programs/showgids)\n\t4020 [unknown] (/programs/showgids)\n"
    assert fold_script(text.splitlines()).stacks == {("showgids", "[showgids]", "open"): 1}


@pytest.mark.process
def test_a_perf_data_that_is_not_one_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2" + b"\xff" * 200)
    (tmp_path / "System.map").write_text("ffffffff81000000 T _text\n")
    with pytest.raises(ProfileUnreadable) as caught:
        fold_perf_data(tmp_path / "perf.data", tmp_path / "System.map")
    assert "\n" not in str(caught.value)
