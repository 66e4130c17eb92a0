# SPDX-License-Identifier: GPL-2.0-or-later
"""The priority of an experiment: low, normal or high; only operators may set high."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from django.contrib.auth.models import AnonymousUser

from lab.errors import FieldRefused, NotAllowed, Outdated, SubmissionRejected
from lab.experiments.page import get_experiment
from lab.models import Experiment, User
from lab.models.states import OPEN_EXPERIMENT
from lab.people.permissions import may, may_change
from lab.validation_messages import nearest

# The values of Experiment.priority, with room for others between them.
PRIORITIES: Final[Mapping[str, int]] = MappingProxyType({"low": -10, "normal": 0, "high": 10})


def priority_asked(name: str, by: User | None) -> int:
    """The number of the priority that a description asks for; by: None at this machine's own terminal.

    Raises SubmissionRejected where its submitter may not ask for that.
    """
    number = PRIORITIES[name]
    if number > PRIORITIES["normal"] and by is not None and not may(by, "operate"):
        raise SubmissionRejected(
            f'priority: only operators may ask for "{name}"; omit it, or ask an operator to raise it',
            place="priority",
        )
    return number


def priorities_for(by: User | AnonymousUser) -> tuple[str, ...]:
    """The names of the priorities that somebody may give, the lowest first."""
    return tuple(
        name for name, number in PRIORITIES.items() if number <= PRIORITIES["normal"] or may(by, "operate")
    )


def priority_name(number: int) -> str:
    """The name of a priority."""
    return next((name for name, known in PRIORITIES.items() if known == number), str(number))


def set_priority(*, experiment_id: int, priority: str, by: User, scopes: Sequence[str] | None = None) -> None:
    """Change the priority of an open experiment: its submitter and operators may; above normal, only operators.

    scopes: of the request's token. Raises FieldRefused, UnknownRow, NotAllowed, Outdated.
    """
    if priority not in PRIORITIES:
        raise FieldRefused(
            "priority", f'there is no priority "{priority[:40]}"; {nearest(priority, PRIORITIES)}'
        )
    row = get_experiment(experiment_id)
    number = PRIORITIES[priority]
    if not may_change(by, row.submitter, scopes=scopes):
        raise NotAllowed(
            f"experiment {experiment_id}: only its submitter and operators may change its priority"
        )
    if number > PRIORITIES["normal"] and not may(by, "operate", scopes=scopes):
        raise NotAllowed(f"experiment {experiment_id}: only operators may give it priority {priority}")
    if not Experiment.objects.filter(pk=experiment_id, state__in=OPEN_EXPERIMENT).update(priority=number):
        row.refresh_from_db()
        raise Outdated(
            f"experiment {experiment_id} is {row.state} already: its priority has no effect any more"
        )
