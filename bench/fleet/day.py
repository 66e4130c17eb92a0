# SPDX-License-Identifier: GPL-2.0-or-later
"""A day of submissions to a fleet, drawn by a seed: working hours, bursts, standing experiments, bisections, several submitters.

Where the numbers come from: nowhere but here. No lab publishes its arrivals; these are a reading of public mailing lists. A busy subsystem
tree (netdev, mm) takes some 60 series on a working day, most between 8 and 20 h UTC with a second peak as America starts, in bursts
when a maintainer applies what has collected. Beside the series: its head each half hour (standing), now and then a
bisection of eight steps, one after the other, and people's own questions at high priority. How many such trees there are follows from
the fleet: as many as keep its targets busy for a given share of the day, where a boot with its workload takes 25 minutes in the middle of its
distribution, as a pass of mmtests' shorter configurations on a bare machine.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["series", "burst", "standing", "bisection", "question"]
HOUR_S, DAY_S = 3600.0, 86400.0
# Relative rate of submissions by hour of the day, UTC.
BY_HOUR = (2, 2, 2, 3, 3, 4, 6, 9, 12, 13, 12, 11, 12, 14, 15, 15, 14, 12, 9, 7, 6, 5, 4, 3)
SERIES_A_TREE = 60
SUBMITTERS_A_TREE = 6
# Share of the series that come in bursts, and how many at once.
BURST_SHARE, BURST = 0.3, (3, 8)
STANDING_EVERY_S = 1800.0
BISECTIONS_A_TREE, BISECTION_STEPS, STEP_S = 2, 8, 2700.0
QUESTIONS_A_TREE = 4
BOOT_S, BOOT_SPREAD = 1500.0, 0.4


@dataclass(frozen=True, slots=True)
class Submission:
    """One experiment to come. at_s: seconds of the day. patches: switches; boots: of each variant. place: 0 to 1, chooses among the targets."""

    at_s: float
    kind: Kind
    tree: int
    submitter: str
    priority: str
    patches: int
    boots: int
    place: float

    @property
    def runs(self) -> int:
        """Return how many boots it asks for: of the base, the base again, and each patch alone."""
        return (2 + self.patches) * self.boots


def submissions(trees: float, seed: int, begin_s: float = 0.0, seconds: float = DAY_S) -> list[Submission]:
    """Return the submissions of a part of a day in order, at least one. trees: how many trees, also a part of one."""
    selected: list[Submission] = []
    for tree in range(math.ceil(trees)):
        draw = random.Random(f"{seed}/{tree}")
        of_tree = [
            submission
            for submission in _of_tree(tree, draw)
            if begin_s <= submission.at_s < begin_s + seconds
        ]
        of_tree.sort(key=lambda submission: submission.at_s)
        # Of the last tree only a part is there, spread over its day.
        share = min(1.0, trees - tree)
        selected += [
            submission
            for n, submission in enumerate(of_tree)
            if math.ceil(n * share) < math.ceil((n + 1) * share)
        ]
    return sorted(selected, key=lambda submission: submission.at_s)


def trees_for(targets: int, load: float, seed: int) -> float:
    """Return how many trees keep so many targets busy for a share `load` of a day."""
    some = 20
    runs = sum(submission.runs for submission in submissions(some, seed)) / some
    boot_s = BOOT_S * math.exp(BOOT_SPREAD**2 / 2)
    return load * targets * DAY_S / boot_s / runs


def _of_tree(tree: int, draw: random.Random) -> Iterator[Submission]:
    people = [f"tree{tree}-person{number}" for number in range(SUBMITTERS_A_TREE)]
    alone = round(SERIES_A_TREE * (1 - BURST_SHARE))
    for _ in range(alone):
        yield _series(tree, _moment(draw), "series", draw.choice(people), draw)
    bursts = round(SERIES_A_TREE * BURST_SHARE / (sum(BURST) / 2))
    for _ in range(bursts):
        at, who = _moment(draw), draw.choice(people)
        for _ in range(draw.randint(*BURST)):
            yield _series(tree, at + draw.uniform(0, 600), "burst", who, draw)
    first = draw.uniform(0, STANDING_EVERY_S)
    for number in range(int(DAY_S / STANDING_EVERY_S)):
        at = first + number * STANDING_EVERY_S
        # What was pushed since is one change to its base.
        yield Submission(at, "standing", tree, f"tree{tree}-ci", "low", 1, 5, draw.random())
    for _ in range(BISECTIONS_A_TREE):
        at, place = _moment(draw), draw.random()
        for step in range(BISECTION_STEPS):
            yield Submission(at + step * STEP_S, "bisection", tree, f"tree{tree}-ci", "normal", 1, 4, place)
    for _ in range(QUESTIONS_A_TREE):
        yield Submission(
            _moment(draw), "question", tree, f"tree{tree}-lead", "high", draw.randint(1, 2), 6, draw.random()
        )


def _series(tree: int, at_s: float, kind: Kind, who: str, draw: random.Random) -> Submission:
    # Most mails are one patch; long series are judged patch by patch.
    patches = draw.choices((1, 2, 3, 4), (55, 25, 12, 8))[0]
    return Submission(at_s, kind, tree, who, "normal", patches, draw.choice((5, 6, 10)), draw.random())


def _moment(draw: random.Random) -> float:
    hour = draw.choices(range(24), BY_HOUR)[0]
    return (hour + draw.random()) * HOUR_S
