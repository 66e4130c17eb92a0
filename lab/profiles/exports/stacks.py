# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as text of whole stacks: folded, with two counts, and like the output of `perf script`.

A tree holds the frames that stacks share once, text repeats them for every stack: a profile of few nodes may be
gigabytes of text. So each writer computes the size of its text beforehand, and refuses to write too much.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import ClassVar, Literal

import numpy as np

from lab.one_line import one_line
from lab.profiles.analysis.frame_tree import FrameTree, Integers, stacks_of
from lab.profiles.analysis.weight_unit import Unit

MOST_BYTES = 64 << 20


class NoSuchForm(ValueError):
    """A profile that has no such form; `str()` is one line."""

    blame: ClassVar[Literal["submission", "kernel", "lab"]] = "submission"
    retry: ClassVar[bool] = False


class ExportTooLarge(ValueError):
    """A profile that would be too much text; `str()` is one line."""

    blame: ClassVar[Literal["submission", "kernel", "lab"]] = "submission"
    retry: ClassVar[bool] = False


def write_folded(tree: FrameTree) -> str:
    """Lines `outer;…;inner count`, sorted. Raises ExportTooLarge."""
    check_size(tree, np.minimum(tree.own, 1))
    return "".join(sorted(f"{_joined(stack)} {count}\n" for stack, count in stacks_of(tree) if stack))


def write_two_counts(base: FrameTree, candidate: FrameTree) -> str:
    """Lines `outer;…;inner base candidate`, sorted: what difffolded.pl writes. Raises ExportTooLarge."""
    counts: dict[str, list[int]] = {}
    for side, tree in enumerate((base, candidate)):
        check_size(tree, np.minimum(tree.own, 1))
        for stack, count in stacks_of(tree):
            if stack:
                counts.setdefault(_joined(stack), [0, 0])[side] += count
    return "".join(f"{stack} {old} {new}\n" for stack, (old, new) in sorted(counts.items()))


def write_script(tree: FrameTree, unit: Unit = "samples") -> str:
    """Samples one by one as `perf script` prints them, leaf first, for programs that read that. Raises ExportTooLarge, NoSuchForm.

    Addresses and times are not kept: addresses are 0, times count samples in microseconds.
    """
    if unit != "samples":
        what = "waits" if unit == "ns" else unit
        raise NoSuchForm(
            f"{what} are not samples that can be printed one by one; use folded, speedscope or pprof"
        )
    check_size(tree, tree.own, frame=32)
    return "".join(_samples(tree))


def check_size(tree: FrameTree, times: Integers, *, frame: int = 1) -> None:
    """Refuse a tree whose stacks, each written `times` times, are too much text.

    times: int64[nodes]. frame: bytes that go with each frame beside its name. Raises ExportTooLarge.
    """
    widths = np.array([len(name.encode()) for name in tree.names], np.int64) + frame
    # A node's name is written once for each stack through it: the stacks in its subtree.
    running = np.concatenate(([0], np.cumsum(times)))
    sizes = (running[tree.end] - running[:-1]) * widths[tree.name]
    size = float(sizes.sum(dtype=np.float64))
    if size > MOST_BYTES:
        raise ExportTooLarge(
            f"this profile would be {size / 2**20:,.0f} MiB of text, the limit is {MOST_BYTES >> 20}; "
            "take the tree, pprof, or perf.data itself"
        )


def _joined(stack: tuple[str, ...]) -> str:
    return ";".join(one_line(frame).replace(";", ":") for frame in stack)


def _samples(tree: FrameTree) -> Iterator[str]:
    number = 0
    for stack, count in stacks_of(tree):
        command, *frames = [one_line(frame) for frame in stack] or ["unknown"]
        body = "".join(f"\t{0:16x} {frame} ({_file(frame)})\n" for frame in reversed(frames))
        for _ in repeat(None, count):
            number += 1
            time = f"{number // 1_000_000}.{number % 1_000_000:06d}"
            yield f"{command}     0/0     [000] {time}:          1 cpu-clock:\n{body}\n"


def _file(frame: str) -> str:
    """Return a frame's file: brackets for files of programs without symbols."""
    return frame[1:-1] if frame.startswith("[") and frame.endswith("]") else "[kernel.kallsyms]"
