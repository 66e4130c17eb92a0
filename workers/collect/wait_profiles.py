# SPDX-License-Identifier: GPL-2.0-or-later
"""Begins and ends among tracepoint samples → waits: who waited where, and for how many nanoseconds.

A lock wait lasts from a thread's contention_begin to its contention_end of the same lock; a mutex reports several begins
(it spins, then sleeps) before one end, and the first counts. A thread is off the CPU from the sched_switch that takes it
off while it does not want to run, to the one that puts it on again: this includes the time it waited for a CPU.

A begin and its end lie within one recorded interval, with no lost event between them. A begin without an end, or an end
without a begin, is counted, not guessed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.profiles.analysis.frame_tree import MOST_SAMPLES
from workers.collect.perfdata_records import Integers, Records, SampleColumns, Words
from workers.collect.perfdata_tracing import Tracepoint, field_of, samples_of
from workers.errors import ProfileUnreadable

Window = tuple[float, float]
# Bits of a task's state (include/linux/sched.h): all waiting states, without the dead ones, which never run again.
_WAITING = 0xFF & ~(0x10 | 0x20)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded times in seconds (all, if there are none), and the times in ns at which events were lost."""

    windows: Sequence[Window]
    lost: Words


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits by the samples that began them: their indices, and nanoseconds each.

    unended: begins without an end in their interval. unbegun: ends without a begin.
    """

    begin: Integers
    ns: Integers
    unended: int
    unbegun: int


def lock_waits(
    records: Records, samples: SampleColumns, points: Mapping[str, Tracepoint], recorded: Recorded
) -> Waits:
    """Return the waits for locks. Raises ProfileUnreadable when the file does not describe their tracepoints."""
    begin, end = (_point(points, name) for name in ("contention_begin", "contention_end"))
    begins, ends = samples_of(records, samples, begin), samples_of(records, samples, end)
    chosen = np.concatenate((begins, ends))
    locks = np.concatenate(
        [field_of(records, samples, some, of, "lock_addr") for some, of in ((begins, begin), (ends, end))]
    )
    # Every CPU has its own idle thread, and all of them are thread 0.
    whose = np.where(samples.tid[chosen] == 0, -1 - samples.cpu[chosen], samples.tid[chosen])
    is_begin = np.arange(len(chosen)) < len(begins)
    pairing = _Pairing()
    for at in _in_order(samples, chosen, recorded, pairing.close):
        waiter = (int(whose[at]), int(locks[at]))
        if is_begin[at]:
            pairing.begin(waiter, int(chosen[at]), int(samples.time[chosen[at]]))
        else:
            pairing.end(waiter, int(samples.time[chosen[at]]))
    return pairing.waits()


def off_cpu_waits(
    records: Records, samples: SampleColumns, points: Mapping[str, Tracepoint], recorded: Recorded
) -> Waits:
    """Return the times off the CPUs. Raises ProfileUnreadable when the file does not describe sched_switch."""
    switch = _point(points, "sched_switch")
    chosen = samples_of(records, samples, switch)
    left, state, entered = (
        field_of(records, samples, chosen, switch, field) for field in ("prev_pid", "prev_state", "next_pid")
    )
    waiting = (state & np.uint64(_WAITING)) != 0
    pairing = _Pairing()
    for at in _in_order(samples, chosen, recorded, pairing.close):
        time = int(samples.time[chosen[at]])
        if entered[at]:
            pairing.end((int(entered[at]), 0), time, known=False)
        if waiting[at] and left[at]:
            pairing.begin((int(left[at]), 0), int(chosen[at]), time)
    return pairing.waits()


class _Pairing:
    """Open waits by thread and lock, and those that ended."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[int, int]] = {}
        self._begin: list[int] = []
        self._ns: list[int] = []
        self._unended = self._unbegun = 0

    def begin(self, waiter: tuple[int, int], sample: int, time: int) -> None:
        self._open.setdefault(waiter, (sample, time))

    def end(self, waiter: tuple[int, int], time: int, *, known: bool = True) -> None:
        """known: an end alone proves that there was a begin."""
        began = self._open.pop(waiter, None)
        if began is None:
            self._unbegun += known
            return
        self._begin.append(began[0])
        self._ns.append(time - began[1])

    def close(self) -> None:
        """An interval is over."""
        self._unended += len(self._open)
        self._open.clear()

    def waits(self) -> Waits:
        self.close()
        if sum(self._ns) >= MOST_SAMPLES:
            raise ProfileUnreadable("this perf.data tells of waits longer than any guest runs")
        begin, ns = np.array(self._begin, np.int64), np.array(self._ns, np.int64)
        return Waits(begin, ns, self._unended, self._unbegun)


def _in_order(
    samples: SampleColumns, chosen: Integers, recorded: Recorded, close: Callable[[], None]
) -> Iterator[int]:
    """Yield positions in `chosen` within windows, by time; call close() where the window changes or events were lost."""
    time = samples.time[chosen]
    window = _window_of(time, recorded.windows)
    if len(chosen) and (window < 0).all():
        raise ProfileUnreadable(f"none of the {len(chosen)} events in this perf.data is of a timed interval")
    stretch = (
        np.searchsorted(np.sort(recorded.lost), time, side="right") * (len(recorded.windows) + 1) + window
    )
    current = -1
    for at in np.argsort(time, kind="stable").tolist():
        if window[at] < 0:
            continue
        if stretch[at] != current:
            close()
            current = stretch[at]
        yield at


def _window_of(time: Words, windows: Sequence[Window]) -> Integers:
    """Return for each time the number of its window; -1 if it is in none."""
    if not windows:
        return np.zeros(len(time), np.int64)
    begins, ends = (
        np.array([round(1e9 * max(bounds[side], 0)) for bounds in windows], np.uint64) for side in (0, 1)
    )
    order = np.argsort(begins)
    window = np.searchsorted(begins[order], time, side="right") - 1
    window[time > ends[order][window]] = -1
    return window


def _point(points: Mapping[str, Tracepoint], name: str) -> Tracepoint:
    if name not in points:
        raise ProfileUnreadable(f"this perf.data does not describe {name}")
    return points[name]
