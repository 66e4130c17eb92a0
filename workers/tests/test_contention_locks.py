# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks are found in recorded accesses, and CPUs wait for them in the kernel's own order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.tests.kept import kept
from workers.errors import TraceUnreadable
from workers.microscope.contention import Contention
from workers.microscope.lock_functions import lock_function_lines
from workers.microscope.replay import compile_replay
from workers.tests import tracewriter as tw
from workers.tests.tracewriter import ATOMIC, HEAP, LOAD, PLAIN, SLOW_PATH, STORE, Bench, Recorder, bare

pytestmark = pytest.mark.process

HELD = 1000
Step = Callable[[Recorder, int], None]


pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def program() -> Path:
    return compile_replay(kept("programs"))


@pytest.fixture
def bench(program: Path, tmp_path: Path) -> Bench:
    return Bench(program, tmp_path / "trace")


def by(node: int, kind: int, size: int) -> Step:
    return lambda recorder, after: recorder.within(node, kind, HEAP, size, after)


def inline(kind: int, size: int) -> Step:
    return lambda recorder, after: recorder.access(kind, HEAP, size, after)


SPIN = (inline(ATOMIC, 4), inline(STORE, 1))
BIT = (inline(ATOMIC, 8), inline(STORE, 8))
MUTEX = (by(tw.MUTEX_LOCK, ATOMIC, 8), by(tw.MUTEX_UNLOCK, ATOMIC, 8))
WRITE = (by(tw.DOWN_WRITE, ATOMIC, 8), by(tw.UP_WRITE, ATOMIC, 8))
READ = (by(tw.DOWN_READ, ATOMIC, 8), by(tw.UP_READ, ATOMIC, 8))
RW_WRITE = (inline(ATOMIC, 4), inline(STORE, 1))
RW_READ = (by(tw.READ_LOCK, ATOMIC, 4), by(tw.READ_UNLOCK, ATOMIC, 4))
RW_READ_INLINE = (by(tw.READ_LOCK, ATOMIC, 4), inline(ATOMIC, 4))


def hold(recorder: Recorder, lock: tuple[Step, Step], after: int = 0, held: int = HELD) -> None:
    take, give_back = lock
    take(recorder, after)
    give_back(recorder, held)


def at_once(bench: Bench, *locks: tuple[Step, Step], **numbers: float) -> Contention:
    """CPU n takes lock n, ten cycles after the one before."""
    recorders = [Recorder(cpu) for cpu in range(len(locks))]
    for recorder, lock in zip(recorders, locks, strict=True):
        hold(recorder, lock, after=10 * recorder.cpu)
    return bench(recorders, bare(transfer_cycles=0, far_transfer_cycles=0, **numbers))


@pytest.mark.parametrize(
    ("lock", "kind"),
    [(SPIN, "spinlock"), (BIT, "bit lock"), (MUTEX, "mutex"), (WRITE, "rwsem")],
    ids=["spinlock", "bit lock", "mutex", "rwsem"],
)
def test_one_cpu_holds_an_exclusive_lock_and_the_others_wait_their_turn(
    bench: Bench, lock: tuple[Step, Step], kind: str
) -> None:
    result = at_once(bench, lock, lock, lock)
    assert [cpu.lock for cpu in result.cpus] == [0, HELD - 10, 2 * HELD - 20]
    (measured,) = result.locks
    assert (measured.address, measured.kind, measured.acquisitions, measured.contended) == (HEAP, kind, 3, 2)
    assert sum(share.cycles for share in measured.nodes) == measured.cycles == 3 * HELD - 30
    assert result.forced == 0


@pytest.mark.parametrize(
    "readers", [READ, RW_READ, RW_READ_INLINE], ids=["rwsem", "rwlock", "inlined unlock"]
)
def test_readers_share_a_lock(bench: Bench, readers: tuple[Step, Step]) -> None:
    assert at_once(bench, readers, readers, readers, readers).total.lock == 0


@pytest.mark.parametrize(("reader", "writer"), [(READ, WRITE), (RW_READ, RW_WRITE)], ids=["rwsem", "rwlock"])
def test_a_writer_waits_for_all_readers_and_they_for_it(
    bench: Bench, reader: tuple[Step, Step], writer: tuple[Step, Step]
) -> None:
    result = at_once(bench, reader, reader, writer, reader)
    # Readers until 1,010, the writer until 2,010; the reader that came last stands behind it.
    assert [cpu.lock for cpu in result.cpus] == [0, 0, 1010 - 20, 2010 - 30]


def test_an_rwsem_lets_all_waiting_readers_in_at_once(bench: Bench) -> None:
    result = at_once(bench, WRITE, READ, WRITE, READ)
    assert [cpu.lock for cpu in result.cpus] == [0, HELD - 10, 2000 - 20, HELD - 30]


def test_a_queued_rwlock_serves_in_order_of_arrival(bench: Bench) -> None:
    # Three readers; the first makes the address an rwlock on each CPU.
    result = at_once(bench, RW_READ, RW_WRITE, RW_READ)
    assert [cpu.lock for cpu in result.cpus] == [0, HELD - 10, 2 * HELD - 20]


def test_a_reader_of_an_rwsem_sleeps_and_must_be_woken(bench: Bench) -> None:
    result = at_once(bench, WRITE, READ, WRITE, wake_cycles=500)
    assert result.cpus[1].lock == HELD - 10 + 500
    assert at_once(bench, WRITE, WRITE, wake_cycles=500).cpus[1].lock == HELD - 10
    assert at_once(bench, MUTEX, MUTEX, wake_cycles=500).cpus[1].lock == HELD - 10


def test_a_downgraded_rwsem_lets_readers_in(bench: Bench) -> None:
    writer, reader = Recorder(0), Recorder(1)
    writer.within(tw.DOWN_WRITE, ATOMIC, HEAP)
    writer.within(tw.DOWNGRADE, ATOMIC, HEAP, after=HELD)
    writer.within(tw.UP_READ, ATOMIC, HEAP, after=HELD)
    hold(reader, READ, after=10)
    result = bench([writer, reader], bare(transfer_cycles=0))
    assert [cpu.lock for cpu in result.cpus] == [0, HELD - 10]


def counting(recorder: Recorder) -> None:
    for _ in range(50):
        recorder.access(ATOMIC, HEAP, 8, after=20)


def counting_in_four_bytes(recorder: Recorder) -> None:
    for _ in range(50):
        recorder.access(ATOMIC, HEAP, 4, after=20)


def counter_that_begins_anew_elsewhere(recorder: Recorder) -> None:
    recorder.access(ATOMIC, HEAP, 8, after=20)
    recorder.within(READ_ELSEWHERE, STORE, HEAP, 8, after=200)


READ_ELSEWHERE = tw.UP_READ


def counter_that_begins_anew_later(recorder: Recorder) -> None:
    recorder.access(ATOMIC, HEAP, 8, after=20)
    recorder.access(STORE, HEAP, 8, after=50_000)


def never_given_back(recorder: Recorder) -> None:
    recorder.within(tw.MUTEX_LOCK, ATOMIC, HEAP)
    recorder.access(LOAD, HEAP + 64, after=HELD)


def never_taken(recorder: Recorder) -> None:
    recorder.access(STORE, HEAP, 1, after=HELD)
    recorder.within(tw.UP_READ, ATOMIC, HEAP)


def given_back_in_the_next_interval(recorder: Recorder) -> None:
    recorder.access(ATOMIC, HEAP, 4)
    recorder.end(HELD)
    recorder.begin()
    recorder.access(STORE, HEAP, 1, after=HELD)


@pytest.mark.parametrize(
    "use",
    [
        counting, counting_in_four_bytes, counter_that_begins_anew_elsewhere, counter_that_begins_anew_later,
        never_given_back, never_taken, given_back_in_the_next_interval,
    ],
)  # fmt: skip
def test_what_is_no_lock_is_not_waited_for(bench: Bench, use: Callable[[Recorder], None]) -> None:
    recorders = [Recorder(cpu) for cpu in range(4)]
    for recorder in recorders:
        use(recorder)
    result = bench(recorders)
    assert (result.total.lock, result.locks, result.forced) == (0, (), 0)


def test_spinning_is_left_out_and_the_model_waits_instead(bench: Bench) -> None:
    holder, spinner = Recorder(0), Recorder(1)
    hold(holder, SPIN)
    spinner.access(ATOMIC, HEAP, 4, after=10)
    spinner.enter(SLOW_PATH)
    for _ in range(100):
        spinner.access(LOAD, HEAP, 4, after=500)
    spinner.access(ATOMIC, HEAP, 4)
    spinner.enter(PLAIN)
    spinner.access(STORE, HEAP, 1, after=HELD)
    result = bench([holder, spinner], bare(transfer_cycles=0))
    assert result.left_out == 50_000
    assert (result.cpus[1].lock, result.cpus[1].work) == (HELD - 10, 10 + HELD)


def test_a_lock_taken_in_the_slow_path_alone_is_still_taken(bench: Bench) -> None:
    holder, sleeper = Recorder(0), Recorder(1)
    hold(holder, SPIN)
    sleeper.enter(SLOW_PATH)
    sleeper.access(ATOMIC, HEAP, 4, after=5000)
    sleeper.enter(PLAIN)
    sleeper.access(STORE, HEAP, 1, after=HELD)
    result = bench([holder, sleeper], bare(transfer_cycles=0))
    assert result.cpus[1].lock == HELD


def test_tries_of_a_bit_lock_are_left_out(bench: Bench) -> None:
    holder, spinner = Recorder(0), Recorder(1)
    hold(holder, BIT)
    spinner.access(LOAD, HEAP + 64, after=10)
    spinner.access(ATOMIC, HEAP, 8)
    for _ in range(20):
        spinner.access(LOAD, HEAP, 8, after=300)
    spinner.access(ATOMIC, HEAP, 8)
    spinner.access(STORE, HEAP, 8, after=HELD)
    result = bench([holder, spinner], bare(transfer_cycles=0))
    assert (result.cpus[1].lock, result.cpus[1].work) == (HELD - 10, 10 + HELD)


@pytest.mark.parametrize("node", [tw.IN_A_THREAD, tw.IN_AN_INTERRUPT])
def test_kernel_threads_and_interrupts_are_left_out(bench: Bench, node: int) -> None:
    recorder = Recorder()
    recorder.access(LOAD, HEAP, after=100)
    recorder.within(node, LOAD, HEAP + 640, after=9000)
    recorder.access(LOAD, HEAP, after=100)
    result = bench([recorder])
    assert (result.total.work, result.left_out, result.total.accesses) == (200, 9000, 2)


def test_locks_that_would_wait_for_each_other_for_ever_are_forced_and_counted(bench: Bench) -> None:
    recorders = [Recorder(0), Recorder(1)]
    for recorder, (first, second) in zip(recorders, ((0, 640), (640, 0)), strict=True):
        recorder.access(ATOMIC, HEAP + first, 4, after=1)
        recorder.access(ATOMIC, HEAP + second, 4, after=100)
        recorder.access(STORE, HEAP + second, 1, after=100)
        recorder.access(STORE, HEAP + first, 1, after=100)
    result = bench(recorders)
    assert result.forced == 1
    assert result.total.work == 2 * 301


def test_functions_of_locks_are_known_by_name_with_their_specialised_copies() -> None:
    text = (
        "ffffffff81001000 T down_read\nffffffff81001100 t __mutex_lock.constprop.0\n"
        "ffffffff81001200 T native_queued_spin_lock_slowpath\nffffffff81001300 T up_read\n"
        "ffffffff81001400 T vfs_open\nffffffff81001500 D down_write\nffffffff81001600 t rwsem_wake.isra.0\n"
    )
    assert lock_function_lines(text).splitlines() == [
        "ffffffff81001000 d", "ffffffff81001100 w", "ffffffff81001200 w", "ffffffff81001300 D", "ffffffff81001600 w",
    ]  # fmt: skip


def test_a_kernel_whose_waiting_is_not_known_is_refused() -> None:
    with pytest.raises(TraceUnreadable, match="names no function that waits"):
        lock_function_lines("ffffffff81001000 T down_read\n")
