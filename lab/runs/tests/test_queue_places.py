# SPDX-License-Identifier: GPL-2.0-or-later
"""The place of a waiting experiment in the queue, and the progress of a build under way."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from lab.experiments.progress import progress, steps_left_s, steps_percent
from lab.models import Build, Experiment, Run, Target, Worker
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.queue_places import Waiting, ordinal, places_in, queue_places
from lab.runs.record import record_build_steps
from lab.runs.stalls import current_progress
from lab.tests.factories import finish_builds, make_grid
from lab.tests.plans import Explained, explained


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
    found = places_in(order, 30.0, {number})
    assert list(found) == [number], "places of others are no answer, and cost their square"
    assert (found[number].text, found[number].starts_s) == (text, starts_s)
    assert places_in(order, None, {number})[number].starts_s is None


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
def test_one_that_asks_for_a_machine_of_a_group_waits_beside_those_that_ask_for_the_group() -> None:
    alone, shared, elsewhere = (make_grid(blocks=1) for _ in range(3))
    rack = [Target.objects.create(name=name, group="rack") for name in ("left", "right")]
    Target.objects.create(name="far", group="other")
    Worker.objects.create(name="box:1:1", host="box", queues=["target.left", "target.right", "target.far"])
    Experiment.objects.filter(pk=alone.pk).update(target=rack[0])
    Experiment.objects.filter(pk=shared.pk).update(group="rack")
    Experiment.objects.filter(pk=elsewhere.pk).update(group="other")
    for row in (alone, shared, elsewhere):
        finish_builds(row)
    places = {pk: place.text for pk, place in queue_places([alone.pk, shared.pk, elsewhere.pk]).items()}
    assert places == {
        alone.pk: "1st of 2 for target “left”",
        shared.pk: "2nd of 2 for group “rack”",
        elsewhere.pk: "1st of 1 for group “other”",
    }
    assert queue_places([shared.pk])[shared.pk].text == places[shared.pk]
    Target.objects.filter(name="left").update(enabled=False)
    assert {pk: place.text for pk, place in queue_places([alone.pk, shared.pk]).items()} == {
        shared.pk: "1st of 1 for group “rack”"
    }


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not say what it reads")
def test_who_asks_for_a_place_reads_nothing_of_what_waits_for_other_machines() -> None:
    ours = make_grid(blocks=1)
    Experiment.objects.filter(pk=ours.pk).update(group="rack0")
    finish_builds(ours)
    crowd_elsewhere(20, workers=50)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # as in tables that are large
        cursor.execute("ANALYZE")
    with explained() as before:
        place = current_progress(ours.pk).queue
    assert place is not None
    assert place.text == "1st of 1 for group “rack0”"
    crowd_elsewhere(20, workers=0)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with explained() as after:
        current_progress(ours.pk)
    assert after.sent == before.sent
    # The turn is computed over all open experiments; the queued work of each is not read.
    assert after.rows - before.rows <= 2 * 20
    assert {table: rows for table, rows in rows_of(after).items() if table in OF_WAITING} == {
        table: rows for table, rows in rows_of(before).items() if table in OF_WAITING
    }


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not say what it reads")
def test_a_look_at_an_experiment_reads_no_workers_of_other_queues() -> None:
    ours = make_grid(blocks=1)
    finish_builds(ours)
    crowd = [Worker(name=f"of-{n}:1:1", host=f"of-{n}", queues=[f"target.of-{n}"]) for n in range(1000)]
    Worker.objects.bulk_create(crowd)
    Worker.objects.create(
        name="ours:1:1", host="ours", queues=[f"target.{ours.target.name}"], idle_reason="full disk"
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with explained() as looked:
        assert "full disk" in current_progress(ours.pk, operator=True).stalled
    assert 0 < rows_of(looked)["lab_worker"] < 20


def crowd_elsewhere(experiments: int, *, workers: int) -> None:
    """Experiments that wait for racks of their own, and the workers of those."""
    for _ in range(experiments):
        row = make_grid(blocks=2)
        Experiment.objects.filter(pk=row.pk).update(group=f"rack{row.pk}")
        Target.objects.create(name=f"of-{row.pk}", group=f"rack{row.pk}")
        finish_builds(row)
    target = Target.objects.create(name="ours", group="rack0") if workers else None
    for number in range(workers):
        name = target.name if target and not number else f"of-{number}"
        Worker.objects.create(name=f"{name}:1:1", host=name, queues=[f"target.{name}"])


# What grows with the boots that wait.
OF_WAITING = ("lab_run", "lab_variant", "lab_build")


def rows_of(found: Explained) -> dict[str, int]:
    """Return the rows that were looked at, by table."""
    counted: dict[str, int] = defaultdict(int)
    for statement in found.statements:
        for scan in statement.scans:
            counted[scan.table] += scan.rows
    return counted


@pytest.mark.django_db
def test_the_steps_of_a_build_are_its_holders_to_write_and_begin_anew_with_each_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = make_grid(blocks=1)
    claim = claim_next_build(by="box:1:1")
    assert claim is not None
    assert record_build_steps(claim, 500, 2000)
    assert not record_build_steps(Claim("build", claim.id, "stale"), 1, 2)
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    build = Build.objects.filter(pk=claim.id)
    build.update(started_at=moment - timedelta(seconds=400), steps_since=moment - timedelta(seconds=100))
    assert record_build_steps(claim, 500, 2000)
    now = progress(row.pk)
    assert (now.now[0].percent, round(now.now[0].left_s or 0)) == (25, 300), "from its first object on"
    build.update(steps_since=None)
    assert round(progress(row.pk).now[0].left_s or 0) == 1200, "an older worker does not tell when it began"
    assert now.percent > progress_without_steps(row, claim)
    Build.objects.filter(pk=claim.id).update(state=BuildState.QUEUED, token="")
    assert record_build_steps(claim, 500, 2000) is False
    again = claim_next_build(by="box:1:1")
    assert again is not None
    assert progress(row.pk).now[0].percent is None
    assert Build.objects.get(pk=again.id).steps_since is None


def progress_without_steps(row: Experiment, claim: Claim) -> int:
    build = Build.objects.get(pk=claim.id)
    Build.objects.filter(pk=claim.id).update(steps_done=0, steps_expected=0)
    percent = progress(row.pk).percent
    Build.objects.filter(pk=claim.id).update(steps_done=build.steps_done, steps_expected=build.steps_expected)
    return percent
