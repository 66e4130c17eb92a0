# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from workloads.errors import OutputUnreadable
from workloads.guest.records import RecordReader
from workloads.hist import parse_hist, read_number, read_stack
from workloads.readings import files_of

GOLDEN = Path(__file__).parent / "golden"


def hist(name: str, path: str) -> str:
    return files_of(RecordReader().feed((GOLDEN / f"{name}.records").read_bytes()))[path].decode()


def test_two_triggers_of_one_event_are_told_apart_by_their_filters() -> None:
    null, nonzero = parse_hist(hist("stat-walk-verified", "/tmp/returns.hist"))
    assert (null.filter[-10:], null.hits) == ("value == 0", 8044)
    assert (nonzero.filter[-10:], nonzero.hits) == ("value != 0", 0)


def test_the_return_probes_own_frames_are_not_part_of_a_stack() -> None:
    null, _found = parse_hist(hist("stat-walk-verified", "/tmp/returns.hist"))
    for keys, _count in null.rows:
        assert "rethook_trampoline_handler" in keys
        assert read_stack(keys)[0].startswith("iget_locked+")


@pytest.mark.parametrize("key", ["stacktrace", "common_stacktrace"])  # the second since 6.3
def test_offsets_are_decimal_as_bpftrace_writes_them(key: str) -> None:
    keys = f"{key}:\n  vfs_statx+0x85/0x140\n  f+0x10/0x20 [ext4]\n  0xffffffff\n"
    assert read_stack(keys) == ["vfs_statx+133", "f+16", "0xffffffff"]


def test_numeric_keys_are_read() -> None:
    (calls,) = parse_hist(hist("cyclictest-bh-verified", "/tmp/calls.hist"))
    assert {read_number(keys, "common_cpu") for keys, _count in calls.rows} <= {0, 1}
    with pytest.raises(OutputUnreadable, match="a histogram's key is not common_pid"):
        read_number(calls.rows[0][0], "common_pid")


def test_an_empty_file_has_no_histogram() -> None:
    assert parse_hist("") == []


def test_a_histogram_that_was_cut_off_is_refused() -> None:
    whole = hist("stat-walk-verified", "/tmp/returns.hist")
    with pytest.raises(OutputUnreadable, match="incomplete"):
        parse_hist(whole.replace("hitcount:       4000", "hitcount:        400", 1))
    with pytest.raises(OutputUnreadable, match="not a histogram"):
        parse_hist("cat: can't open")
