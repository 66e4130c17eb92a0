# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's perf.data → a tree of frames with the symbols of the kernel that ran; no `perf script`, no text.

Nobody has to trust the file. Everything in it is held against its end, and time and memory grow with its size, which is
at most MOST_BYTES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.analysis.frametree import FrameTree
from workers.collect.kernelsymbols import KernelSymbols
from workers.collect.perfdata_header import Attr, read_frame
from workers.collect.perfdata_names import read_story
from workers.collect.perfdata_records import (
    LOST,
    LOST_SAMPLES,
    THROTTLE,
    VALUE_LOST,
    Records,
    read_samples,
    walk,
)
from workers.collect.perfdata_stacks import tree_of
from workers.errors import ProfileUnreadable

MOST_BYTES = 256 << 20
_LOST_AT_ONCE = np.uint64(1 << 40)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel that a profile should be of. release: its `uname -r`; build_id: in hex; "" is not checked."""

    system_map: Path
    release: str = ""
    build_id: str = ""


@dataclass(frozen=True, slots=True)
class PerfProfile:
    """What one perf.data tells.

    lost: samples the kernel dropped because the buffer was full. throttled: times it paused sampling because it was too
    often. truncated: why the end is missing, "" if it is not. kernel_build_id: as recorded, "" if it was not.
    by_cpu: samples by CPU.
    """

    tree: FrameTree
    lost: int
    throttled: int
    truncated: str
    kernel_build_id: str
    by_cpu: Mapping[int, int]

    @property
    def samples(self) -> int:
        """Samples kept."""
        return self.tree.samples


def read_perf_data(path: Path, kernel: Kernel) -> PerfProfile:
    """Read one perf.data, which nobody has to trust.

    Raises ProfileUnreadable for what is no whole perf.data of this kernel, but for an end that is missing: what was
    whole is then told, and why there is no more.
    """
    data = _bytes(path)
    frame = read_frame(data)
    _check_same("release", frame.release, kernel.release)
    records = walk(data, frame)
    samples = read_samples(records, frame.attrs)
    story = read_story(records, frame.attrs)
    build_id = next((mapped.build_id for mapped in story.kernel if mapped.build_id), frame.build_id)
    _check_same("build id", build_id, kernel.build_id)
    tree = tree_of(records.words, samples, story, KernelSymbols(kernel.system_map))
    return PerfProfile(
        tree=tree,
        lost=_lost(records, frame.attrs),
        throttled=len(records.of(THROTTLE)),
        truncated=records.truncated,
        kernel_build_id=build_id,
        by_cpu=dict(
            zip(*(part.tolist() for part in np.unique(samples.cpu, return_counts=True)), strict=True)
        ),
    )


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ProfileUnreadable(f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as exc:
        raise ProfileUnreadable(f"{path.name} cannot be read: {exc.strerror}") from exc


def _check_same(what: str, found: str, expected: str) -> None:
    if found and expected and found != expected:
        raise ProfileUnreadable(
            f"this perf.data is of another kernel: its {what} is {found!r}, not {expected!r}"
        )


def _lost(records: Records, attrs: tuple[Attr, ...]) -> int:
    """Samples lost.

    The kernel tells in the buffer when it has room again (LOST); perf 6.1 asks each event at the end, and writes the
    same losses as LOST_SAMPLES. Elsewhere those are the hardware's, and come on top.
    """
    told = [_added(records, LOST, 2), _added(records, LOST_SAMPLES, 1)]
    twice = any(attr.read_format & VALUE_LOST for attr in attrs)
    return max(told) if twice else sum(told)


def _added(records: Records, kind: int, word: int) -> int:
    chosen = records.of(kind)
    if (records.width[chosen] <= word).any():
        raise ProfileUnreadable(f"this perf.data has a record of type {kind} shorter than its fields")
    return int(np.minimum(records.words[records.at[chosen] + word], _LOST_AT_ONCE).sum())
