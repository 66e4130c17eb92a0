# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the rows that people and the lab itself leave beside experiments: alerts, deliveries, notes, decisions, searches, the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Subquery

from lab.models import (
    Alert,
    AuditEntry,
    BasePoint,
    Bisection,
    BisectionStep,
    Comparison,
    Delivery,
    Experiment,
    Fetch,
    Hook,
    IdempotencyKey,
    LateAnswer,
    Note,
    Revision,
    Run,
    Standing,
    StepDecision,
    Tree,
    Triage,
    User,
)
from lab.tests.large_lab.template import commit_of

# Of each, for each hundred experiments.
_ALERTS, _DELIVERIES, _AUDITED, _NOTES, _FETCHES, _SEARCHES, _LATE = 20, 200, 1000, 20, 100, 2, 10
_STEPS = 6
_BATCH = 5000


def make_revisions(trees: list[Tree], number: int) -> None:
    """Give each tree a history."""
    rows = (
        Revision(
            tree=tree,
            commit=commit_of(tree.pk, place),
            position=place,
            subject=f"{tree.name}: change {place}",
            author="A. Developer <a@example.org>",
        )
        for tree in trees
        for place in range(number)
    )
    Revision.objects.bulk_create(rows, batch_size=_BATCH)


def make_talk(hundreds: int, people: list[User], trees: list[Tree], now: datetime) -> None:
    """Make what a lab of so many hundred experiments has heard and said."""
    newest = list(Experiment.objects.order_by("-pk").values_list("pk", flat=True)[: 50 * hundreds])
    standing = _standing(people, trees)
    Experiment.objects.filter(pk__in=newest[::2]).update(standing=standing[0])
    keys = list(BasePoint.objects.order_by("trend").values_list("trend", flat=True).distinct()[:100])
    Alert.objects.bulk_create(_alerts(_ALERTS * hundreds, standing, newest, keys), batch_size=_BATCH)
    hooks = [Hook.objects.create(name=f"ci-{at}", url="https://ci.example.org/", events=[]) for at in (1, 2)]
    Delivery.objects.bulk_create(_deliveries(_DELIVERIES * hundreds, hooks, now), batch_size=_BATCH)
    AuditEntry.objects.bulk_create(_audited(_AUDITED * hundreds, people, now), batch_size=_BATCH)
    _notes(_NOTES * hundreds, people, newest)
    _decisions(people, keys)
    fetches = (
        Fetch(
            user=people[at % len(people)],
            kind="preview",
            state="done",
            request={},
            digest=f"{at:064x}",
            experiment_id=newest[at % len(newest)],
            finished_at=now - timedelta(hours=at),
        )
        for at in range(_FETCHES * hundreds)
    )
    Fetch.objects.bulk_create(fetches, batch_size=_BATCH)
    IdempotencyKey.objects.bulk_create(
        (
            IdempotencyKey(user=people[at % len(people)], key=f"k{at}", body_sha256="0" * 64)
            for at in range(_FETCHES * hundreds)
        ),
        batch_size=_BATCH,
    )
    _searches(_SEARCHES * hundreds, trees, newest)
    runs = list(Run.objects.order_by("-pk").values_list("pk", flat=True)[: _LATE * hundreds])
    LateAnswer.objects.bulk_create(
        LateAnswer(kind="run", work=run, target="board-0001", worker="h:1:1", said="done", why="it was over")
        for run in runs
    )


def _standing(people: list[User], trees: list[Tree]) -> list[Standing]:
    return [
        Standing.objects.create(
            name=f"{tree.name}-{part}",
            owner=people[0],
            spec={"name": tree.name},
            tree=tree,
            branch=part,
        )
        for tree in trees
        for part in ("main", "next", "fixes")
    ]


def _alerts(number: int, standing: list[Standing], newest: list[int], keys: list[str]) -> Iterator[Alert]:
    for at in range(number):
        yield Alert(
            standing=standing[at % len(standing)],
            experiment_id=newest[at % len(newest)],
            trend=keys[at % len(keys)],
            metric="elapsed",
            commit=commit_of(standing[at % len(standing)].tree_id, at),
            ratio=1.04,
            worse=at % 3 > 0,
            text=f"elapsed of showgids (small) is 4 % higher since change {at}",
        )


def _deliveries(number: int, hooks: list[Hook], now: datetime) -> Iterator[Delivery]:
    for at in range(number):
        yield Delivery(
            hook=hooks[at % 2],
            event="experiment.done",
            subject=f"experiment/{at}",
            payload={"event": "experiment.done", "experiment": {"id": at}},
            state="waiting" if at > number - 10 else "given-up" if at % 50 == 0 else "delivered",
            attempts=1,
            next_at=now,
            status=200,
            delivered_at=now - timedelta(minutes=at),
        )


def _audited(number: int, people: list[User], now: datetime) -> Iterator[AuditEntry]:
    for at in range(number):
        person = people[at % len(people)]
        yield AuditEntry(
            at=now - timedelta(minutes=5 * at),
            person=person,
            name=person.username,
            address="192.0.2.7",
            method="POST",
            route="api-experiments-list" if at % 7 else "triage",
            path="/api/v1/experiments/",
            status=201 if at % 20 else 403,
            rule="" if at % 20 else "needs the role submitter",
        )


def _notes(number: int, people: list[User], newest: list[int]) -> None:
    places = Revision.objects.values_list("pk", flat=True)[: number // 2]
    rows = [Note(author=people[at % 3], revision_id=pk, text="a merge") for at, pk in enumerate(places)]
    rows += [
        Note(author=people[at % 3], experiment_id=newest[at % len(newest)], text="looks right")
        for at in range(number // 2)
    ]
    Note.objects.bulk_create(rows, batch_size=_BATCH)


def _decisions(people: list[User], keys: list[str]) -> None:
    """Decide on three in four of the old regressions, and on some steps."""
    called = Comparison.objects.filter(verdict="regression", primary=True).order_by("pk")
    rows = (
        Triage(
            case_id=case,
            variant_id=variant,
            metric=metric,
            state=("acknowledged", "expected", "fixed")[at % 3],
            author=people[at % 3],
        )
        for at, (case, variant, metric) in enumerate(called.values_list("case", "variant", "metric"))
        if at % 4
    )
    Triage.objects.bulk_create(rows, batch_size=_BATCH)
    own = Triage.objects.filter(case=OuterRef("case"), variant=OuterRef("variant"), metric=OuterRef("metric"))
    called.filter(Exists(own)).update(triage=Subquery(own.values("state")[:1]))
    StepDecision.objects.bulk_create(
        StepDecision(trend=key, commit=commit_of(1, at), state="accepted", author=people[0])
        for at, key in enumerate(keys)
    )


def _searches(number: int, trees: list[Tree], newest: list[int]) -> None:
    target = Experiment.objects.order_by("pk")[0].target
    for at in range(number):
        tree = trees[at % len(trees)]
        search = Bisection.objects.create(
            tree=tree,
            target=target,
            digest=f"{at:064x}",
            good_name="v6.0",
            bad_name="v6.1",
            line=[commit_of(tree.pk, place) for place in range(16)],
            workload="showgids",
            preset="small",
            params={"threads": 1},
            metric="elapsed",
            clock="wall",
            boots=5,
            most_boots=20,
            iterations=3,
            verdict="regression",
            state="running" if at < 2 else "done",
            answer="" if at < 2 else "commit",
            suspects=[commit_of(tree.pk, 7)],
        )
        BisectionStep.objects.bulk_create(
            BisectionStep(
                bisection=search,
                number=step,
                revision=step + 1,
                boots=5,
                experiment_id=newest[(at * _STEPS + step) % len(newest)],
                outcome="good" if step % 2 else "bad",
                verdict="unchanged" if step % 2 else "regression",
            )
            for step in range(_STEPS)
        )
