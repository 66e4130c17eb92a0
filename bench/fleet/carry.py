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
from bench.fleet.report import Day, Idle, Scenario

# A part of a day begins at nine.
BEGIN_S = 9 * HOUR_S
# The fleet is watched for so long before anything is submitted.
IDLE_S = 15.0
DRAIN_S = 120.0


def carry_out(scenarios: Sequence[Scenario], home: Path, port: int) -> Iterator[Day]:
    """Replay one after the other on one service, whose fleet grows; yield what was measured of each."""
    with simulated(home, port) as fleet:
        keep_diary()
        for scenario in scenarios:
            grow(fleet, scenario.targets)
            yield _play(fleet, scenario)


def _play(fleet: Fleet, scenario: Scenario) -> Day:
    trees = trees_for(scenario.targets, scenario.load, scenario.seed)
    begin_s = 0.0 if scenario.hours * HOUR_S >= DAY_S else BEGIN_S
    seconds = scenario.hours * HOUR_S
    day = submissions(trees, scenario.seed, begin_s, seconds)
    prepare(fleet, day)
    results = start_farms(fleet, scenario.speed, scenario.seed)
    idle = _idle(fleet)
    since, before = marks(fleet), look(fleet, reset=True)
    began = time.monotonic()
    replay = Replay(fleet, scenario.speed)
    replay.play(day, begin_s, seconds)
    took = time.monotonic() - began
    measured = Day(
        scenario, round(trees, 1), round(took, 1), idle, look(fleet).minus(before), waits(fleet, since)
    )
    measured.slowest, measured.longest = slowest(fleet), slowest(fleet, "max_exec_time", 3)
    measured.answers = {str(code): count for code, count in replay.answers.items()}
    measured.refused, measured.late_s = dict(replay.problems), replay.late_s
    measured.submit_s = sorted(replay.asked_s)
    measured.busy_s = busy_seconds(fleet, since)
    measured.left_open = _empty()
    fleet.end_farms()
    measured.tallies = [json.loads(path.read_text()) for path in results]
    measured.takeovers = takeovers(
        fleet, [token for tally in measured.tallies for token in tally.pop("died")]
    )
    measured.breaches = _breaches()
    return measured


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

    return [f"{breach.kind}: {breach.what}" for breach in breaches(None) if breach.kind != "failed"]
