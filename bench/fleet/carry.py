# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries out one replay: brings everything up, plays the day, measures, empties the queue and looks for what is wrong."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.faults.audit import keep_diary
from bench.fleet.day import DAY_S, HOUR_S, submissions, trees_for
from bench.fleet.lab import Fleet, grow, prepare, simulated, start_farms
from bench.fleet.measures import busy_seconds, look, marks, slowest, takeovers, waits
from bench.fleet.replay import Replay
from bench.fleet.report import Day, Idle, Wish

# A part of a day begins at nine.
BEGIN_S = 9 * HOUR_S
# The fleet is watched for so long before anything is submitted.
IDLE_S = 15.0
DRAIN_S = 120.0


def carry_out(wishes: Sequence[Wish], home: Path, port: int) -> Iterator[Day]:
    """Replay one after the other on one service, whose fleet grows; yield what was measured of each."""
    with simulated(home, port) as fleet:
        keep_diary()
        for wish in wishes:
            grow(fleet, wish.targets)
            yield _play(fleet, wish)


def _play(fleet: Fleet, wish: Wish) -> Day:
    trees = trees_for(wish.targets, wish.load, wish.seed)
    begin_s = 0.0 if wish.hours * HOUR_S >= DAY_S else BEGIN_S
    seconds = wish.hours * HOUR_S
    day = submissions(trees, wish.seed, begin_s, seconds)
    prepare(fleet, day)
    results = start_farms(fleet, wish.speed, wish.seed)
    idle = _idle(fleet)
    since, before = marks(fleet), look(fleet, reset=True)
    began = time.monotonic()
    replay = Replay(fleet, wish.speed)
    replay.play(day, begin_s, seconds)
    took = time.monotonic() - began
    found = Day(wish, round(trees, 1), round(took, 1), idle, look(fleet).minus(before), waits(fleet, since))
    found.slowest, found.longest = slowest(fleet), slowest(fleet, "max_exec_time", 3)
    found.answers = {str(code): count for code, count in replay.answers.items()}
    found.refused, found.late_s = dict(replay.problems), replay.late_s
    found.submit_s = sorted(replay.asked_s)
    found.busy_s = busy_seconds(fleet, since)
    found.left_open = _empty()
    fleet.end_farms()
    found.tallies = [json.loads(path.read_text()) for path in results]
    found.takeovers = takeovers(fleet, [token for tally in found.tallies for token in tally.pop("died")])
    found.breaches = _breaches()
    return found


def _idle(fleet: Fleet) -> Idle:
    """Watch the fleet while nothing is to do."""
    time.sleep(2.0)
    before, began = look(fleet), time.monotonic()
    time.sleep(IDLE_S)
    spent, took = look(fleet).minus(before), time.monotonic() - began
    return Idle(took, spent)


def _empty() -> int:
    """Cancel what is open, and wait until nobody holds anything; returns how many experiments were open."""
    from lab.models import Build, Experiment, Run
    from lab.runs.settle import cancel_experiment

    still = list(Experiment.objects.filter(state__in=("queued", "running")).values_list("pk", flat=True))
    for pk in still:
        cancel_experiment(pk)
    end = time.monotonic() + DRAIN_S
    while time.monotonic() < end:
        if not (
            Run.objects.filter(state="running").exists() or Build.objects.filter(state="building").exists()
        ):
            break
        time.sleep(0.5)
    return len(still)


def _breaches() -> list[str]:
    """Return what is wrong with what was recorded; what was given up, as kernels that do not compile, is not a breach."""
    from bench.faults.invariants import breaches

    return [f"{one.kind}: {one.what}" for one in breaches(None) if one.kind != "failed"]
