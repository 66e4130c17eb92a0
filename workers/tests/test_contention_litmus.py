# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay of programs whose contention can be worked out on paper."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernels.tests.kept import kept
from workers.microscope.replay import compile_replay
from workers.tests.tracewriter import ATOMIC, HEAP, LOAD, STORE, Bench, Recorder, bare
from workloads.contention import MOST_CPUS
from workloads.machines import machine_model

pytestmark = pytest.mark.process

TRANSFER = 100
CPUS = (1, 2, 4, 8, 16, 32)


pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def program() -> Path:
    return compile_replay(kept("programs"))


@pytest.fixture
def bench(program: Path, tmp_path: Path) -> Bench:
    return Bench(program, tmp_path / "trace")


def counters(cpus: int, apart: int, rounds: int = 300, work: int = 50) -> list[Recorder]:
    """Each CPU counts with a counter of its own."""
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(rounds):
            recorder.access(LOAD, HEAP + recorder.cpu * apart, after=work)
            recorder.access(STORE, HEAP + recorder.cpu * apart)
    return recorders


def test_counters_on_lines_of_their_own_cost_nothing(bench: Bench) -> None:
    result = bench(counters(8, apart=64))
    assert (result.total.waiting, result.slowdown, result.lines) == (0, 1.0, ())


def test_counters_on_one_line_cost_a_transfer_each_time_and_are_called_false_sharing(bench: Bench) -> None:
    result = bench(counters(8, apart=8))
    (line,) = result.lines
    assert line.false_sharing
    assert (line.address, line.cpus, line.writers) == (HEAP, 8, 8)
    assert sorted(byte for byte, _ in line.bytes) == list(range(0, 64, 8)), "each CPU waited for its own"
    assert sum(cycles for _, cycles in line.bytes) == pytest.approx(line.cycles, rel=0.01)
    assert line.written == (1 << 64) - 1
    # The line is always on its way to somebody: 8 CPUs want it, at least once a round each.
    assert max(cpu.total for cpu in result.cpus) >= 0.99 * 8 * 300 * TRANSFER


@pytest.mark.parametrize("cpus", CPUS)
def test_a_shared_atomic_counter_saturates_at_one_transfer_a_time(bench: Bench, cpus: int) -> None:
    rounds, work = 500, 60
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(rounds):
            recorder.access(ATOMIC, HEAP, size=4, after=work)
    result = bench(recorders)
    cycle = work if cpus == 1 else max(work + TRANSFER, cpus * TRANSFER)
    assert result.longest[0] == pytest.approx(rounds * cycle, rel=0.01)
    assert not any(line.false_sharing for line in result.lines)


def test_as_many_cpus_as_can_be_recorded_are_replayed(bench: Bench) -> None:
    rounds = 20
    recorders = [Recorder(cpu) for cpu in range(MOST_CPUS)]
    for recorder in recorders:
        for _ in range(rounds):
            recorder.access(LOAD, HEAP, size=4, after=1)
            recorder.access(STORE, HEAP, size=4)
    result = bench(recorders)
    (line,) = result.lines
    assert (len(result.cpus), line.cpus, line.writers) == (MOST_CPUS, MOST_CPUS, MOST_CPUS)
    # A line moves to one CPU at a time, and each CPU stores to it in each round.
    assert result.longest[0] >= 0.99 * MOST_CPUS * rounds * TRANSFER


def mean_value_analysis(cpus: int, work: float, service: float) -> float:
    """Exact throughput of a closed network: work without a queue, then one server in order of arrival."""
    queue = throughput = 0.0
    for population in range(1, cpus + 1):
        response = service * (1 + queue)
        throughput = population / (work + response)
        queue = throughput * response
    return throughput


@pytest.mark.parametrize("cpus", [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32])
def test_a_spinlock_has_the_throughput_of_mean_value_analysis(bench: Bench, cpus: int) -> None:
    # Service and work must be exponential for the analysis to be exact.
    rounds, work, held, transfer = 1500, 8000, 900, 40
    dice = random.Random(cpus)
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(rounds):
            recorder.access(ATOMIC, HEAP, size=4, after=round(dice.expovariate(1 / work)))
            recorder.access(STORE, HEAP, size=1, after=round(dice.expovariate(1 / held)))
    result = bench(recorders, bare(transfer_cycles=transfer))
    throughput = cpus * rounds / (result.total.total / cpus)
    service = held + (transfer if cpus > 1 else 0)
    assert throughput == pytest.approx(mean_value_analysis(cpus, work, service), rel=0.05)
    assert result.forced == 0


@pytest.mark.parametrize("cpus", CPUS)
def test_a_spinlock_around_equal_work_meets_its_two_bounds(bench: Bench, cpus: int) -> None:
    rounds, work, held = 400, 2000, 300
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(rounds):
            recorder.access(ATOMIC, HEAP, size=4, after=work)
            recorder.access(STORE, HEAP, size=1, after=held)
    result = bench(recorders)
    transfer = TRANSFER if cpus > 1 else 0
    bound = min(cpus / (work + held + transfer), 1 / (held + transfer))
    assert cpus * rounds / result.longest[0] == pytest.approx(bound, rel=0.05)


@pytest.mark.parametrize("cpus", CPUS)
def test_readers_of_the_same_lines_cost_nothing(bench: Bench, cpus: int) -> None:
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for at in range(500):
            recorder.access(LOAD, HEAP + at % 50 * 64, after=10)
    assert bench(recorders).total.waiting == 0


@pytest.mark.parametrize("readers", [1, 3, 7, 15, 31])
def test_one_writer_costs_each_reader_one_transfer_for_each_write(bench: Bench, readers: int) -> None:
    writes = 200
    writer, *others = recorders = [Recorder(cpu) for cpu in range(readers + 1)]
    for _ in range(writes):
        writer.access(STORE, HEAP, after=10000)
    for reader in others:
        for _ in range(20 * writes):
            reader.access(LOAD, HEAP, after=500)
    result = bench(recorders)
    (line,) = result.lines
    # Each write but the first takes the line from the readers; then each reader misses it once.
    assert line.transfers == pytest.approx(writes * (readers + 1), rel=0.02)
    # The first reader has it brought from the writer, the others meet it on its way and then share it.
    assert result.cpus[1].transfer <= 1.02 * writes * TRANSFER
    assert (line.writers, line.written) == (1, 0xFF)
    assert not line.false_sharing


def mixed(cpus: int) -> list[Recorder]:
    dice = random.Random(14)
    recorders = [Recorder(cpu) for cpu in range(cpus)]
    for recorder in recorders:
        for _ in range(400):
            lock = HEAP + 64 * dice.randrange(4)
            recorder.access(ATOMIC, lock, size=4, after=dice.randrange(300))
            recorder.access(dice.choice((LOAD, STORE)), lock + 8, after=dice.randrange(50))
            recorder.access(STORE, lock, size=1, after=dice.randrange(50))
    return recorders


def test_one_cpu_waits_for_nobody(bench: Bench) -> None:
    result = bench(mixed(1), machine_model("one-socket"))
    assert (result.total.waiting, result.nodes, result.lines, result.locks) == (0, (), (), ())


def test_more_cpus_never_make_the_work_smaller(bench: Bench) -> None:
    work = [bench(mixed(cpus)).total.work for cpus in CPUS]
    assert work == sorted(work)
    slowdowns = [bench(mixed(cpus)).slowdown for cpus in CPUS]
    assert slowdowns == sorted(slowdowns)
    assert slowdowns[0] == 1


def test_a_replay_gives_the_same_result_each_time(bench: Bench) -> None:
    assert bench(mixed(16)) == bench(mixed(16))


def test_all_cycles_of_a_cpu_are_accounted_for(bench: Bench) -> None:
    result = bench(mixed(8), machine_model("two-socket"))
    assert sum(cpu.total for cpu in result.cpus) == pytest.approx(result.total.total, abs=8)
    waited = sum(row.transfer + row.lock for row in result.nodes)
    assert waited == pytest.approx(result.total.waiting, abs=len(result.nodes) + 1)
    assert sum(line.cycles for line in result.lines) == pytest.approx(result.total.transfer, abs=8)
    assert sum(lock.cycles for lock in result.locks) == pytest.approx(result.total.lock, abs=8)


@pytest.mark.parametrize(("other", "cycles"), [(1, 100), (2, 300)])
def test_a_transfer_costs_by_where_the_line_is(bench: Bench, other: int, cycles: int) -> None:
    recorders = [Recorder(cpu) for cpu in range(4)]
    recorders[0].access(STORE, HEAP)
    recorders[other].access(STORE, HEAP, after=1000)
    assert bench(recorders, bare(sockets=2)).total.transfer == cycles


def test_what_does_not_fit_into_the_caches_is_fetched_again(bench: Bench) -> None:
    machine = bare(
        l1_bytes=4096, l1_ways=2, l2_bytes=8192, l2_ways=2, l2_cycles=10, shared_cycles=50, memory_cycles=200
    )

    def rounds(lines: int) -> int:
        recorder = Recorder()
        for at in range(3 * lines):
            recorder.access(LOAD, HEAP + at % lines * 64)
        return bench([recorder], machine).total.cache

    assert rounds(64) == 64 * 200
    assert rounds(128) == 128 * (200 + 10 + 10)
    assert rounds(256) == 256 * (200 + 50 + 50)


@pytest.mark.parametrize(("each", "cycles"), [(1, 300), (2, 300), (3, 100), (64, 100)])
def test_cpus_fill_a_socket_before_the_next(bench: Bench, each: int, cycles: int) -> None:
    recorders = [Recorder(cpu) for cpu in range(4)]
    recorders[0].access(STORE, HEAP)
    recorders[2].access(LOAD, HEAP, after=1000)
    machine = bare(sockets=2, cpus_per_socket=each, transfer_cycles=100, far_transfer_cycles=300)
    assert bench(recorders, machine).total.transfer == cycles


def test_overlap_hides_its_share_of_plain_accesses_and_nothing_of_atomics(bench: Bench) -> None:
    def waited(kind: int) -> int:
        recorders = [Recorder(0), Recorder(1)]
        recorders[0].access(STORE, HEAP)
        recorders[1].access(kind, HEAP, after=1000)
        return bench(recorders, bare(overlap=0.25)).total.transfer

    assert (waited(LOAD), waited(STORE), waited(ATOMIC)) == (75, 75, 100)


def test_an_access_over_the_end_of_a_line_needs_both(bench: Bench) -> None:
    recorders = [Recorder(0), Recorder(1)]
    recorders[0].access(STORE, HEAP + 60)
    recorders[1].access(STORE, HEAP + 60, after=1000)
    assert bench(recorders).total.transfer == 200


def test_measured_intervals_begin_together(bench: Bench) -> None:
    recorders = [Recorder(0), Recorder(1)]
    for recorder, work in zip(recorders, (100, 5000), strict=True):
        recorder.access(STORE, HEAP + 64 * recorder.cpu, after=work)
        recorder.end()
        recorder.begin()
        # If the first CPU's second interval began early, its write would be long done when the other one's comes.
        recorder.access(STORE, HEAP + 640, after=10)
    result = bench(recorders)
    assert result.longest == (5000, 10 + 2 * TRANSFER - TRANSFER)
    assert result.windows[1].transfer == TRANSFER
