# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of all targets in one look: how many are in which state, by group, and the list of those that a search finds."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from lab.runs.queues import target_queue
from lab.runs.workers import ReportedWorker
from lab.targets.fleet import Fleet
from lab.targets.health_overview import TargetHealth, target_healths

# The states of a target, those that need a person first. unserved: no living worker takes from its queue. well: it could
# boot and has no work.
STATES = ("quarantine", "ill", "unserved", "disabled", "busy", "well")
# Those that a person has to look at.
TROUBLE = STATES[:3]


@dataclass(frozen=True, slots=True)
class FleetFilter:
    """A filter of targets; "" does not narrow. group: a group's name. search: words, each of them in name, group or a complaint."""

    search: str = ""
    group: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class TargetState:
    """A target with its health and its state."""

    health: TargetHealth
    state: str

    def fits(self, asked: FleetFilter) -> bool:
        """Return whether a filter lets it through."""
        if asked.state not in ("", self.state) or asked.group not in ("", self.health.row.group):
            return False
        whole = " ".join((self.health.row.name, self.health.row.group, *self.health.complaints)).casefold()
        return all(word in whole for word in asked.search.casefold().split())


@dataclass(frozen=True, slots=True)
class GroupLine:
    """Targets that are equal; "" for all that are in no group. finished, failed: boots of the last day, and lost by the lab."""

    group: str
    targets: int
    states: Mapping[str, int]
    waiting: int
    finished: int
    failed: int

    @property
    def trouble(self) -> int:
        """Return how many of its targets need a person."""
        return sum(self.states.get(state, 0) for state in TROUBLE)


@dataclass(frozen=True, slots=True)
class FleetState:
    """All targets. states: how many are in each; groups, targets: those that need a person first."""

    states: Mapping[str, int]
    groups: tuple[GroupLine, ...]
    targets: tuple[TargetState, ...]


def fleet_state(workers: Sequence[ReportedWorker], fleet: Fleet) -> FleetState:
    """Return the state of all targets. workers: all that report."""
    served = {queue for worker in workers if not worker.gone for queue in worker.queues}
    healths = target_healths(fleet)
    if not settings.REDIS and not workers:
        # The one worker of a lab without a service reports nowhere.
        served = {target_queue(health.row.name) for health in healths}
    rows = [TargetState(health, state_of(health, served)) for health in healths]
    rows.sort(key=lambda row: (STATES.index(row.state), row.health.row.name))
    by_group: dict[str, list[TargetState]] = defaultdict(list)
    for row in rows:
        by_group[row.health.row.group].append(row)
    groups = [_group(name, of) for name, of in by_group.items()]
    groups.sort(key=lambda group: (group.group == "", -group.trouble, -group.waiting, group.group))
    return FleetState(_counted(rows), tuple(groups), tuple(rows))


def state_of(health: TargetHealth, served: Collection[str]) -> str:
    """Return the one word of STATES for a target. served: the queues that a living worker takes from."""
    if health.row.quarantined_at:
        return "quarantine"
    if not health.row.enabled:
        return "disabled"
    if health.complaints:
        return "ill"
    if health.running:
        return "busy"
    return "well" if target_queue(health.row.name) in served else "unserved"


def _group(name: str, rows: Sequence[TargetState]) -> GroupLine:
    return GroupLine(
        group=name,
        targets=len(rows),
        states=_counted(rows),
        waiting=sum(row.health.waiting for row in rows),
        finished=sum(row.health.finished for row in rows),
        failed=sum(row.health.failed for row in rows),
    )


def _counted(rows: Sequence[TargetState]) -> dict[str, int]:
    """Return how many are in each state that occurs, those that need a person first."""
    counts = Counter(row.state for row in rows)
    return {state: counts[state] for state in STATES if counts[state]}
