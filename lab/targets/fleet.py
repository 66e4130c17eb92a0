# SPDX-License-Identifier: GPL-2.0-or-later
"""Read all targets and the boots that run or wait there, once for all lists of a page."""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lab.models import Run, Target
from lab.models.states import RunState
from lab.targets.waiting_boots import WaitingBoots, waiting_boots


class TargetRow(NamedTuple):
    """A target as lists show it: a thousand of them are read for one page, so they are not instances of the model."""

    id: int
    name: str
    group: str
    driver: str
    vcpus: int
    memory_mib: int
    enabled: bool
    faults: int
    quarantined_at: datetime | None
    quarantine_reason: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """The targets by name, how many boots run on each by its id, and the boots that wait."""

    targets: tuple[TargetRow, ...]
    running: Mapping[int, int]
    waiting: tuple[WaitingBoots, ...]


def read_fleet() -> Fleet:
    """Read the fleet in three statements, without access and tuning, which only a target's own page shows."""
    rows = Target.objects.order_by("name").values_list(*TargetRow._fields)
    # A boot has a target once it is claimed.
    running = Run.objects.filter(state=RunState.RUNNING).order_by().values_list("target", flat=True)
    return Fleet(
        targets=tuple(itertools.starmap(TargetRow, rows)),
        running=Counter(target for target in running if target is not None),
        waiting=waiting_boots(),
    )
