# SPDX-License-Identifier: GPL-2.0-or-later
from itertools import product

import pytest
from django.core.management import call_command
from django.db import models

from lab.errors import IllegalMove
from lab.models import Run, Target
from lab.models.states import (
    MOVES,
    BisectionState,
    BuildState,
    DeliveryState,
    ExperimentState,
    FetchState,
    RunState,
    VariantState,
    allowed,
    move,
)

LEGAL = {
    ExperimentState: "queued>running queued>cancelled running>done running>failed running>cancelled",
    VariantState: "planned>ready planned>failed",
    BuildState: "queued>building queued>built queued>cancelled building>built building>failed "
    "building>cancelled building>queued built>queued failed>queued cancelled>queued",
    RunState: "queued>running queued>cancelled running>done running>failed running>cancelled running>queued",
    BisectionState: "running>done running>failed",
    FetchState: "waiting>running waiting>cancelled running>done running>failed running>cancelled running>waiting",
    DeliveryState: "waiting>delivered waiting>given-up delivered>waiting given-up>waiting",
}
EVERY_PAIR = [(start, to) for states in MOVES for start, to in product(states, states)]


@pytest.mark.parametrize(("start", "to"), EVERY_PAIR)
def test_every_pair_of_states_is_either_listed_here_or_refused(
    start: models.TextChoices, to: models.TextChoices
) -> None:
    listed = f"{start.value}>{to.value}" in LEGAL[type(start)].split()
    assert allowed(start, to) is listed
    if not listed:
        with pytest.raises(IllegalMove, match=f"from {start.value} to {to.value}"):
            move(Run, 1, start, to)


def test_a_move_between_two_kinds_of_state_is_refused() -> None:
    with pytest.raises(IllegalMove):
        move(Run, 1, RunState.QUEUED, BuildState.BUILT)


@pytest.mark.django_db
def test_the_models_and_the_migrations_agree_and_django_finds_no_fault() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0, skip_checks=False)


@pytest.mark.django_db
def test_a_fresh_database_has_the_guest_target() -> None:
    assert Target.objects.get().name == "guest"
