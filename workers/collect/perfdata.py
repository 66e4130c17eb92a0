# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's perf.data → a tree of frames with the symbols of the kernel that ran; no `perf script`, no text.

The file is not trusted. Every offset in it is checked against its end, and time and memory grow with its size, which is
at most MOST_BYTES.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernels.artifacts.elf_sections import Readable
from lab.profiles.analysis.frame_tree import FrameTree
from lab.runs import guest_limits
from workers.collect.kernelsymbols import KernelSymbols
from workers.collect.perfdata_header import Attr, Frame, read_frame
from workers.collect.perfdata_names import Story, read_story
from workers.collect.perfdata_records import (
    LOST,
    LOST_SAMPLES,
    THROTTLE,
    VALUE_LOST,
    Records,
    SampleColumns,
    of_one_event,
    read_samples,
    times,
    walk,
)
from workers.collect.perfdata_stacks import Weighing, tree_of
from workers.collect.perfdata_tracing import read_tracepoints
from workers.collect.wait_profiles import Recorded, Window, lock_waits, off_cpu_waits
from workers.errors import ProfileUnreadable
from workloads.passes import Kind

MOST_BYTES = guest_limits.RECORDING_BYTES
_LOST_AT_ONCE = np.uint64(1 << 40)


@dataclass(frozen=True, slots=True)
class ExpectedKernel:
    """The kernel that a profile should be of. release: its `uname -r`; build_id: in hex; "" is not checked.

    told_id: the build id that the guest reported with the file; kallsyms: what its /proc/kallsyms says of modules.
    """

    system_map: Readable
    release: str = ""
    build_id: str = ""
    told_id: str = ""
    kallsyms: bytes = b""


@dataclass(frozen=True, slots=True)
class PerfProfile:
    """The contents of one perf.data.

    lost: samples the kernel dropped because the buffer was full. throttled: how often it paused sampling that was too
    frequent. truncated: why the end is missing, "" if it is not. kernel_build_id: as recorded, "" if it was not.
    garbled: samples with an address that no program has, which is shown as unknown. others: samples of further events,
    which are left out. waits: their number, if the tree's weights are nanoseconds; unended, unbegun: waits with only one end.
    """

    tree: FrameTree
    lost: int
    throttled: int
    truncated: str
    kernel_build_id: str
    waits: int = 0
    unended: int = 0
    unbegun: int = 0
    garbled: int = 0
    others: int = 0

    @property
    def samples(self) -> int:
        """Samples kept, or nanoseconds."""
        return self.tree.samples


def read_perf_data(path: Readable, kernel: ExpectedKernel) -> PerfProfile:
    """Read one untrusted perf.data as samples of CPUs, of the first event that has some.

    Raises ProfileUnreadable for a file that is not a whole perf.data of this kernel. If only the end is missing, the
    result has what is whole, and the reason.
    """
    opened = _open(path, kernel)
    if not len(opened.samples.tid):
        raise ProfileUnreadable("this perf.data holds no sample")
    chosen = of_one_event(opened.samples, opened.frame.attrs)
    others = len(opened.samples.tid) - len(chosen)
    return replace(_profile_of(opened, opened.samples.only(chosen), None), others=others)


def read_waits(
    path: Readable, kernel: ExpectedKernel, kind: Kind, windows: Sequence[Window] = ()
) -> PerfProfile:
    """Read one perf.data as waits: nanoseconds, by the stacks that waited. A file without waits is no error.

    windows: the recorded intervals, in seconds of its clock; the whole time if there are none.
    Raises ProfileUnreadable as read_perf_data, and where tracepoints are not described.
    """
    opened = _open(path, kernel)
    points = read_tracepoints(opened.frame.tracing)
    pair = lock_waits if kind == "lock" else off_cpu_waits
    lost = opened.records.of(LOST, LOST_SAMPLES)
    recorded = Recorded(windows, times(opened.records, lost, opened.frame.attrs))
    waits = pair(opened.records, opened.samples, points, recorded)
    profile = _profile_of(opened, opened.samples.only(waits.begin), Weighing(waits.ns, locks=kind == "lock"))
    return replace(profile, waits=len(waits.ns), unended=waits.unended, unbegun=waits.unbegun)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file taken apart."""

    frame: Frame
    records: Records
    samples: SampleColumns
    story: Story
    symbols: KernelSymbols
    build_id: str


def _open(path: Readable, kernel: ExpectedKernel) -> _Opened:
    data = _bytes(path)
    frame = read_frame(data)
    _check_same("release", frame.release, kernel.release)
    records = walk(data, frame)
    samples = read_samples(records, frame.attrs)
    story = read_story(records, frame.attrs)
    build_id = next((mapped.build_id for mapped in story.kernel if mapped.build_id), frame.build_id)
    _check_same("build id", build_id or kernel.told_id, kernel.build_id)
    symbols = KernelSymbols(kernel.system_map, kernel.kallsyms)
    return _Opened(frame, records, samples, story, symbols, build_id or kernel.told_id)


def _profile_of(opened: _Opened, samples: SampleColumns, weighing: Weighing | None) -> PerfProfile:
    tree, garbled = tree_of(opened.records.words, samples, opened.story, opened.symbols, weighing)
    return PerfProfile(
        tree=tree,
        garbled=garbled,
        lost=_lost(opened.records, opened.frame.attrs),
        throttled=len(opened.records.of(THROTTLE)),
        truncated=opened.records.truncated,
        kernel_build_id=opened.build_id,
    )


def _bytes(path: Readable) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ProfileUnreadable(f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as exc:
        raise ProfileUnreadable(f"{path.name} cannot be read: {exc.strerror}") from exc


def _check_same(what: str, actual: str, expected: str) -> None:
    if actual and expected and actual != expected:
        raise ProfileUnreadable(
            f"this perf.data is of another kernel: its {what} is {actual!r}, not {expected!r}"
        )


def _lost(records: Records, attrs: tuple[Attr, ...]) -> int:
    """Samples lost.

    The kernel reports them in the buffer once it has room again (LOST); perf 6.1 asks each event at the end, and writes the
    same losses as LOST_SAMPLES. In other files LOST_SAMPLES are the hardware's losses, and are added.
    """
    losses = [_added(records, LOST, 2), _added(records, LOST_SAMPLES, 1)]
    twice = any(attr.read_format & VALUE_LOST for attr in attrs)
    return max(losses) if twice else sum(losses)


def _added(records: Records, kind: int, word: int) -> int:
    chosen = records.of(kind)
    if (records.width[chosen] <= word).any():
        raise ProfileUnreadable(f"this perf.data has a record of type {kind} shorter than its fields")
    return int(np.minimum(records.words[records.at[chosen] + word], _LOST_AT_ONCE).sum())
