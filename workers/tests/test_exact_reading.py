# SPDX-License-Identifier: GPL-2.0-or-later
"""The microscope's files, read in a separate process: nothing in them is trusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact
from lab.profiles.analysis.frame_tree import stacks_of
from workers.collect.fromguest import FromGuest, Sent, read_guest
from workers.collect.reading import PROGRAM_MAP
from workers.drivers.fake import played, sent
from workers.errors import ProfileUnreadable
from workers.tests.fakeexact import PROGRAM, call_tree
from workers.tests.test_profiled_run import artifact
from workloads.guest.records import Record, encode_record
from workloads.passes import MODULE_SYMBOLS

PLAIN = call_tree([(0x401000, PROGRAM, 5, 1)])


@pytest.fixture
def kernel(tmp_path: Path) -> Artifact:
    return artifact(tmp_path / "kernel")


def read(
    kernel: Artifact, run: Path, *trees: bytes, more: Sequence[tuple[str, str, bytes]] = ()
) -> FromGuest:
    """Read a boot of two timed iterations of 100 opens each."""
    values = {
        "ns_per_open": 160.0,
        "elapsed": 16e-6,
        "opens_per_second": 1e9,
        "user": 0.0,
        "system": 0.0,
        "cpu": 1.0,
    }
    out = "".join(json.dumps({"iteration": at, "warmup": at < 1, "values": values}) + "\n" for at in range(3))
    records = [Record(seq, *fields) for seq, fields in enumerate((*played("open", out), *more), 1)]
    (run / "records.bin").write_bytes(b"".join(map(encode_record, records)))
    (run / PROGRAM_MAP).write_text("0000000000401000 T main\n")
    calls = tuple(run / f"calls.{number}" for number in range(len(trees)))
    for path, data in zip(calls, trees, strict=True):
        path.write_bytes(data)
    asked = Sent(run, "showgids", "profiled", "instructions", 2, 1, 1, calls=calls)
    return read_guest(asked, kernel, run / "home")


def test_trees_of_several_programs_are_added_up(kernel: Artifact, tmp_path: Path) -> None:
    tree = call_tree([(0x401000, PROGRAM, 5, 1)], windows=1)
    (profile,) = read(kernel, tmp_path, tree, tree).collected.profiles
    assert dict(stacks_of(profile.tree)) == {("main",): 10}
    assert profile.calls is not None
    assert dict(stacks_of(profile.calls)) == {("main",): 2}
    assert profile.operations == 200


NEVER = "the exact profile is empty: the workload never entered its timed interval"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, NEVER),
        (call_tree([], windows=0), NEVER),
        (call_tree([], whole=0), "the exact profile is not whole: the guest ended inside a measured interval"),
        (call_tree([], version=2), "was not written by this version of the microscope"),
        (call_tree([], magic=b"ELF\x7f"), "was not written by this version of the microscope"),
        (call_tree([], instructions=1), "its functions do not add up to its total"),
        (call_tree([(0x401000, PROGRAM, 5, 1)], windows=1_000_002), "has 1,000,002 timed intervals and the plan 2"),
        (call_tree([(0x401000, PROGRAM, 5, 1)], windows=1), "has 1 timed intervals and the plan 2"),
        (call_tree([], windows=(1 << 32) - 1), "has 4,294,967,295 timed intervals and the plan 2"),
        (b"", "the exact profile is cut short"),
        (b"\0" * 4096, "was not written by this version"),
        (PLAIN[:-1], "the exact profile is cut short"),
        (PLAIN + b"\0", "the exact profile is cut short"),
        (call_tree([(0x401000, PROGRAM, 1 << 52, 1)] * 3), "larger than any boot's"),
        (call_tree([(0x401000, PROGRAM, 1, 1 << 52)] * 3), "larger than any boot's"),
        (call_tree([(0x401000, PROGRAM, (1 << 64) - 1, 1)], instructions=5), "larger than any boot's"),
        (call_tree([(0x401000, 9, 1, 1)]), "a function stands before its caller"),
        (call_tree([(0x401000, 1 << 63, 1, 1)]), "a function stands before its caller"),
        (call_tree([(0x401000, 3 + at, 1, 1) for at in range(3000)]), "calls nest deeper than 2048"),
    ],
)  # fmt: skip
def test_a_tree_that_is_no_result_is_refused_by_name(
    kernel: Artifact, tmp_path: Path, data: bytes | None, problem: str
) -> None:
    with pytest.raises(ProfileUnreadable) as caught:
        read(kernel, tmp_path, *([] if data is None else [data]))
    assert problem in str(caught.value)
    assert str(caught.value).isprintable()
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)


@pytest.mark.hostile
@pytest.mark.parametrize("name", ["<script>alert(1)</script>\x1b[2J", "\u202egnp.exe", "a" * 499, "x;y;z"])
def test_names_that_a_guest_made_up_are_text_alone(kernel: Artifact, tmp_path: Path, name: str) -> None:
    kallsyms = f"ffffffffc0000000 t {name}\t[evil]\n".encode()
    tree = call_tree([(0xFFFFFFFFC0000004, PROGRAM, 5, 1)])
    received = read(kernel, tmp_path, tree, more=sent(MODULE_SYMBOLS, kallsyms))
    (profile,) = received.collected.profiles
    assert dict(stacks_of(profile.tree)) == {(f"{name} [evil]",): 5}
