# SPDX-License-Identifier: GPL-2.0-or-later
"""The place of a waiting experiment in the queue, and the progress of a build under way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from lab.experiments.progress import progress, steps_left_s, steps_percent
from lab.models import Build, Experiment, Run, Target, Worker
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.queue_places import Waiting, ordinal, places_in
from lab.runs.record import record_build_steps
from lab.runs.stalls import current_progress
from lab.tests.factories import finish_builds, make_grid


def waiting(number: int, *places: str, pieces: int = 10) -> Waiting:
    return Waiting(number, frozenset(places), pieces, f"target “{places[0]}”")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")),
        *((21, "21st"), (22, "22nd"), (101, "101st"), (111, "111th"), (113, "113th"), (123, "123rd")),
    ],
)
def test_places_are_ordinal_numbers(number: int, text: str) -> None:
    assert ordinal(number) == text


@pytest.mark.parametrize(
    ("order", "number", "text", "starts_s"),
    [
        ([waiting(7, "a")], 7, "1st of 1 for target “a”", 0.0),
        ([waiting(7, "a"), waiting(8, "a")], 8, "2nd of 2 for target “a”", 300.0),
        ([waiting(7, "b"), waiting(8, "a")], 8, "1st of 1 for target “a”", 0.0),
        ([waiting(7, "b"), waiting(8, "a", "b"), waiting(9, "a")], 8, "2nd of 3 for target “a”", 150.0),
        (
            [waiting(7, "a", pieces=4), waiting(9, "a", pieces=1), waiting(8, "a")],
            8,
            "3rd of 3 for target “a”",
            150.0,
        ),
        ([waiting(8, "a"), waiting(7, "a"), waiting(9, "a")], 8, "1st of 3 for target “a”", 0.0),
    ],
)
def test_a_place_counts_those_that_want_the_same_machine(
    order: list[Waiting], number: int, text: str, starts_s: float
) -> None:
    place = places_in(order, 30.0)[number]
    assert (place.text, place.starts_s) == (text, starts_s)
    assert places_in(order, None)[number].starts_s is None


@pytest.mark.parametrize(
    ("done", "expected", "elapsed_s", "percent", "left_s"),
    [
        (0, 0, 30.0, None, None),
        (0, 2000, 30.0, 0, None),
        (99, 2000, 30.0, 4, None),
        (500, 2000, 60.0, 25, 180.0),
        (500, 2000, 4.0, 25, None),
        (2000, 2000, 60.0, 99, 0.0),
        (2100, 2000, 60.0, 99, 0.0),
    ],
)
def test_a_build_has_a_share_and_a_time_left(
    done: int, expected: int, elapsed_s: float, percent: int | None, left_s: float | None
) -> None:
    assert (steps_percent(done, expected), steps_left_s(done, expected, elapsed_s)) == (percent, left_s)


@pytest.mark.django_db
def test_experiments_wait_for_builds_in_the_order_in_which_these_are_taken() -> None:
    first, second, third = make_grid(blocks=1), make_grid(blocks=1), make_grid(blocks=1)
    Experiment.objects.filter(pk=third.pk).update(priority=10)
    texts = [current_progress(row.pk).queue for row in (third, first, second)]
    assert [place and place.text for place in texts] == [
        f"{n} of 3 for a build" for n in ("1st", "2nd", "3rd")
    ]
    claim = claim_next_build(by="elsewhere:1:1")
    assert claim is not None
    assert current_progress(third.pk).queue is None, "it is being built"


@pytest.mark.django_db
def test_boots_ahead_and_their_pace_say_when_a_turn_comes() -> None:
    first, second = make_grid(blocks=2), make_grid(blocks=2)
    target = first.target
    assert second.target == target
    for row in (first, second):
        finish_builds(row)
    Worker.objects.create(name="box:1:1", host="box", queues=[f"target.{target.name}"])
    now = timezone.now()
    over = first.runs.order_by("position")[:2].values_list("pk", flat=True)
    Run.objects.filter(pk__in=list(over)).update(
        state=RunState.DONE, started_at=now - timedelta(seconds=90), finished_at=now - timedelta(seconds=60)
    )
    left = first.runs.filter(state=RunState.QUEUED).count()
    place = current_progress(second.pk).queue
    assert place is not None
    assert (place.text, place.starts_s) == (f"2nd of 2 for target “{target.name}”", 30.0 * left)
    assert claim_next_run(target=target.name, by="box:1:1") is not None
    assert current_progress(first.pk).queue is None


@pytest.mark.django_db
def test_a_group_is_named_and_its_machines_share_the_wait() -> None:
    row = make_grid(blocks=1)
    Target.objects.filter(pk=row.target_id).update(group="rack")
    Experiment.objects.filter(pk=row.pk).update(group="rack")
    finish_builds(row)
    place = current_progress(row.pk).queue
    assert place is not None
    assert place.text == "1st of 1 for group “rack”"
    Experiment.objects.update(created_at=timezone.now() - timedelta(hours=1))
    Build.objects.update(finished_at=timezone.now() - timedelta(hours=1))
    assert current_progress(row.pk).stalled == f"No worker takes work from target.{row.target.name}."
    assert current_progress(row.pk).queue is None


@pytest.mark.django_db
def test_the_steps_of_a_build_are_its_holders_to_write_and_begin_anew_with_each_claim() -> None:
    row = make_grid(blocks=1)
    claim = claim_next_build(by="box:1:1")
    assert claim is not None
    assert record_build_steps(claim, 500, 2000)
    assert not record_build_steps(Claim("build", claim.id, "stale"), 1, 2)
    Build.objects.filter(pk=claim.id).update(started_at=timezone.now() - timedelta(seconds=100))
    now = progress(row.pk)
    assert (now.now[0].percent, round(now.now[0].left_s or 0)) == (25, 300)
    assert now.percent > progress_without_steps(row, claim)
    Build.objects.filter(pk=claim.id).update(state=BuildState.QUEUED, token="")
    again = claim_next_build(by="box:1:1")
    assert again is not None
    assert progress(row.pk).now[0].percent is None


def progress_without_steps(row: Experiment, claim: Claim) -> int:
    found = Build.objects.get(pk=claim.id)
    Build.objects.filter(pk=claim.id).update(steps_done=0, steps_expected=0)
    percent = progress(row.pk).percent
    Build.objects.filter(pk=claim.id).update(steps_done=found.steps_done, steps_expected=found.steps_expected)
    return percent
