# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments on a group of equal targets: each block whole on one of them, and elsewhere if that one cannot go on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from lab.comparisons.compare import compare_experiment
from lab.errors import NotAllowed, UnknownRow
from lab.models import Build, Comparison, Experiment, Run, Sample, Target, User, Worker
from lab.models.states import Outcome
from lab.people.permissions import may
from lab.runs.claiming import claim_next_build, claim_next_run
from lab.runs.expired_claims import return_dead_claims
from lab.runs.hand_back import release
from lab.runs.order import next_run
from lab.runs.queue_list import queue_lines
from lab.runs.queues import queues_to_wake
from lab.runs.record import RunRecord, record_run
from lab.targets.changes import set_target_enabled
from lab.targets.fleet import read_fleet
from lab.targets.quarantine import FAULTS_IN_A_ROW, release_target
from lab.tests.factories import (
    ME,
    claim_run,
    finish_builds,
    make_experiment,
    make_grid,
    make_user,
    make_variant,
    quarantine_target,
    samples,
)
from lab.tests.plans import explained

pytestmark = pytest.mark.django_db

LOST = RunRecord(Outcome.LOST, blame="lab", problem="the machine is gone", retry=True)


def good(value: float = 100.0) -> RunRecord:
    return RunRecord(Outcome.FINISHED, samples=samples({"ns_per_open": [value, value, value * 1.001]}))


@pytest.fixture
def rack() -> list[Target]:
    return [Target.objects.create(name=name, group="rack") for name in ("one", "two", "three")]


def on_rack(blocks: int = 3, targets: Sequence[Target] = ()) -> Experiment:
    experiment = make_grid(blocks=blocks)
    Experiment.objects.filter(pk=experiment.pk).update(group="rack", target=targets[0])
    finish_builds(experiment)
    return experiment


def boot(target: str, record: RunRecord | None = None) -> Run:
    claim = claim_next_run(target=target, by=ME)
    assert claim is not None
    assert record_run(claim, record or good())
    return Run.objects.get(pk=claim.id)


def blocks_by_target() -> dict[str, set[int]]:
    blocks: dict[str, set[int]] = {}
    counting = Run.objects.filter(state="done", invalid=[]).select_related("target")
    for run in counting:
        assert run.target
        blocks.setdefault(run.target.name, set()).add(run.block)
    return blocks


def test_a_block_stays_on_the_target_that_claimed_its_first_boot(rack: list[Target]) -> None:
    on_rack(3, rack)
    for _ in range(2):
        for target in rack:
            boot(target.name)
    assert blocks_by_target() == {"one": {0}, "two": {1}, "three": {2}}
    assert all(next_run(target=target.name) is None for target in rack)


def test_the_one_machine_loop_takes_groups_too(rack: list[Target]) -> None:
    experiment = on_rack(2, rack)
    while (run := next_run()) is not None:
        claim = claim_run(run, by=ME)
        assert claim
        assert record_run(claim, good())
    assert Experiment.objects.get(pk=experiment.pk).state == "done"
    assert blocks_by_target() == {"one": {0, 1}}


def test_what_a_target_lost_goes_to_another_with_its_whole_block(rack: list[Target]) -> None:
    on_rack(2, rack)
    first = boot("one")
    lost = boot("one", LOST)
    assert (lost.state, lost.target, lost.lost_on) == ("queued", None, rack[0])
    # Its own next block meanwhile, not the one it has just lost.
    own = claim_next_run(target="one", by=ME)
    assert own is not None
    assert Run.objects.get(pk=own.id).block == 1
    boot("two")
    boot("two")
    first.refresh_from_db()
    assert first.state == "done"
    assert first.invalid == ["its block moved to two: a block is compared within one target"]
    assert blocks_by_target() == {"two": {0}}


def test_what_the_only_target_lost_it_takes_again(rack: list[Target]) -> None:
    on_rack(1, rack)
    for other in rack[1:]:
        set_target_enabled(by=make_user(f"op-{other}", User.Role.OPERATOR), target_id=other.pk, enabled=False)
    lost = boot("one", LOST)
    claim = claim_next_run(target="one", by=ME)
    assert claim is not None
    assert claim.id == lost.pk


def test_what_nobody_else_takes_for_a_while_goes_back_to_who_lost_it(rack: list[Target]) -> None:
    on_rack(1, rack)
    boot("one", LOST)
    assert claim_next_run(target="one", by=ME) is None
    Run.objects.update(lost_at=timezone.now() - timedelta(minutes=2))
    assert claim_next_run(target="one", by=ME) is not None


def test_three_faults_in_a_row_are_quarantine_and_its_blocks_go_on_elsewhere(rack: list[Target]) -> None:
    experiment = on_rack(3, rack)
    for _ in range(FAULTS_IN_A_ROW):
        Run.objects.update(lost_on=None)
        boot("one", LOST)
    rack[0].refresh_from_db()
    assert rack[0].quarantined_at
    assert rack[0].quarantine_reason.endswith("the last: the machine is gone")
    assert claim_next_run(target="one", by=ME) is None
    while next_run(target="two") is not None:
        boot("two")
    assert Experiment.objects.get(pk=experiment.pk).state == "done"
    assert blocks_by_target() == {"two": {0, 1, 2}}


def test_a_boot_that_goes_as_it_should_ends_the_row_of_faults(rack: list[Target]) -> None:
    on_rack(4, rack)
    panicked = RunRecord(Outcome.PANICKED, blame="kernel", problem="Oops")
    for record in (LOST, LOST, panicked, LOST, LOST):
        Run.objects.update(lost_on=None)
        boot("one", record)
    rack[0].refresh_from_db()
    assert (rack[0].faults, rack[0].quarantined_at) == (2, None)


def test_only_operators_release_a_target(rack: list[Target]) -> None:
    assert quarantine_target(rack[0].pk, "the BMC lies")
    assert not quarantine_target(rack[0].pk, "once more")
    alice = make_user("alice")
    with pytest.raises(NotAllowed, match="only operators can release targets"):
        release_target(target_id=rack[0].pk, by=alice)
    with pytest.raises(UnknownRow, match="there is no target 99"):
        release_target(target_id=99, by=None)
    boss = make_user("boss", User.Role.OPERATOR)
    assert may(boss, "operate")
    target = release_target(target_id=rack[0].pk, by=boss)
    assert (target.quarantined_at, target.quarantine_reason, target.faults) == (None, "", 0)


def test_a_boot_that_ends_after_its_block_moved_does_not_count_and_is_taken_again(rack: list[Target]) -> None:
    on_rack(1, rack)
    boss = make_user("boss", User.Role.OPERATOR)
    claim = claim_next_run(target="one", by=ME)
    assert claim
    set_target_enabled(by=boss, target_id=rack[0].pk, enabled=False)
    boot("two")
    assert record_run(claim, good())
    old = Run.objects.get(pk=claim.id)
    assert (old.state, len(old.invalid)) == ("done", 1)
    boot("two")
    assert blocks_by_target() == {"two": {0}}


def test_a_boot_that_is_released_stays_with_its_block(rack: list[Target]) -> None:
    on_rack(2, rack)
    boot("one")
    claim = claim_next_run(target="one", by=ME)
    assert claim
    assert release(claim)
    assert Run.objects.get(pk=claim.id).target == rack[0]


def test_a_dead_workers_boot_of_a_single_target_may_boot_there_again() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    claim = claim_next_run(target="guest", by=ME)
    assert claim
    return_dead_claims(alive=lambda _: False)
    row = Run.objects.get(pk=claim.id)
    assert (row.state, row.target, row.lost_on) == ("queued", None, None)
    assert claim_next_run(target="guest", by=ME) is not None


def test_a_moved_block_is_compared_within_one_target_alone(rack: list[Target]) -> None:
    """The slow machine's boots would look like a regression; they are kept and do not count."""
    experiment = on_rack(6, rack)
    slow = boot("one", good(200.0))
    quarantine_target(rack[0].pk, "silent")
    while next_run(target="two") is not None:
        boot("two", good(100.0 + Run.objects.filter(state="done").count() / 100))
    compare_experiment(experiment.pk)
    comparison = Comparison.objects.get(metric="ns_per_open")
    assert (comparison.boots, comparison.partial) == (6, False)
    assert comparison.high is not None
    assert 0.99 < comparison.high < 1.01
    slow.refresh_from_db()
    assert slow.invalid
    assert Sample.objects.filter(run=slow).exists()


def places() -> dict[str, tuple[int, int]]:
    """Return the waiting and the running boots on each target of the rack."""
    lines = {line.name: (line.waiting, line.running) for line in queue_lines((), read_fleet())}
    assert lines.pop("target.guest") == (0, 0), "the group's experiments may not boot there"
    return lines


def test_queues_say_what_waits_for_whom(rack: list[Target]) -> None:
    on_rack(2, rack)
    assert places() == {
        "target.one": (4, 0),
        "target.two": (4, 0),
        "target.three": (4, 0),
    }
    claim = claim_next_run(target="one", by=ME)
    assert claim
    quarantine_target(rack[2].pk, "silent")
    assert places() == {
        "target.one": (3, 1),
        "target.two": (2, 0),
        "target.three": (2, 0),
    }


def test_no_more_of_a_group_are_woken_than_boots_wait(rack: list[Target]) -> None:
    Target.objects.bulk_create(Target(name=f"more{number}", group="rack") for number in range(200))
    experiment = on_rack(1, rack)
    assert len(queues_to_wake()) == experiment.runs.count() == 2
    first, second = experiment.runs.order_by("position")
    Run.objects.filter(pk=second.pk).update(state="done")
    woken = {queue for _ in range(30) for queue in queues_to_wake()}
    assert len(queues_to_wake()) == 1
    # Each time another one, for the worker of one may be gone.
    assert len(woken) > 1
    # A block that has begun is its target's alone.
    Run.objects.filter(pk=first.pk).update(target=rack[1])
    assert queues_to_wake() == ["target.two"]


def test_a_target_that_began_a_block_goes_on_with_it_in_another_group(rack: list[Target]) -> None:
    experiment = on_rack(1, rack)
    experiment.runs.update(target=rack[1])
    Target.objects.filter(pk=rack[1].pk).update(group="elsewhere")
    assert queues_to_wake() == ["target.two"]


def targets_read() -> tuple[int, list[str]]:
    """Wake once; return the rows of targets that the server returned or looked at, and the queues."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE lab_target")
    with explained() as read:
        queues = queues_to_wake()
    scans = [scan for statement in read.statements for scan in statement.scans]
    return sum(scan.rows for scan in scans if scan.table == "lab_target"), queues


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not tell what it read")
def test_waking_reads_the_targets_that_are_asked_for(rack: list[Target]) -> None:
    Target.objects.bulk_create(Target(name=f"more{number}", group=f"g{number % 90}") for number in range(900))
    assert targets_read() == (0, [])
    single = make_grid(blocks=1)
    finish_builds(single)
    Experiment.objects.filter(pk=single.pk).update(target=Target.objects.get(name="more7"))
    read, queues = targets_read()
    assert queues == ["target.more7"]
    assert read < 20
    on_rack(1, rack)
    read, queues = targets_read()
    assert len(queues) == 3
    assert read < 60


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not tell what it read")
def test_waking_reads_of_the_targets_those_whose_check_is_due(settings: Any) -> None:
    settings.CHECK_KERNEL = "k" * 64
    Target.objects.bulk_create(Target(name=f"more{number}") for number in range(9))
    few, queues = targets_read()
    assert queues == []
    Target.objects.bulk_create(Target(name=f"more{number}") for number in range(9, 999))
    long_ago = timezone.now() - timedelta(days=9)
    rows = Target.objects.order_by("pk")
    rows.filter(pk__in=rows.values("pk")[100:200]).update(enabled=False, unchecked_since=long_ago)
    rows.filter(pk__in=rows.values("pk")[200:300]).update(quarantined_at=long_ago, unchecked_since=long_ago)
    many, queues = targets_read()
    assert queues == []
    assert many <= few
    Target.objects.filter(name="more3").update(unchecked_since=long_ago)
    Target.objects.filter(name="more7").update(check_asked_at=long_ago)
    read, queues = targets_read()
    assert queues == ["target.more3", "target.more7"]
    assert read < 20


def test_every_free_builder_is_woken_at_once_as_far_as_builds_wait() -> None:
    queue = "build.x86_64.gcc"
    experiment = make_experiment()
    for number in range(5):
        make_variant(experiment, f"p{number}")
    assert queues_to_wake() == [queue]
    long_ago = timezone.now() - timedelta(days=1)
    of_each: list[dict[str, Any]] = [{}, {}, {}, {"idle_reason": "its disk is full"}, {"seen_at": long_ago}]
    for number, fields in enumerate(of_each):
        Worker.objects.create(name=f"w{number}", host="h", queues=[queue, "target.one"], **fields)
    assert queues_to_wake() == [queue] * 3
    assert claim_next_build(queue=queue, by="w0")
    assert queues_to_wake() == [queue] * 2
    last = Build.objects.filter(state="queued").earliest("pk")
    Build.objects.filter(state="queued").exclude(pk=last.pk).update(state="built")
    assert queues_to_wake() == [queue]
