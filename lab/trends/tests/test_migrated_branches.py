# SPDX-License-Identifier: GPL-2.0-or-later
"""Points of before trends had branches: those of standing experiments move to the trends of their branches, none is lost."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps

from lab.models import Alert, BasePoint, Note, Revision, Standing, StepDecision, Tree, Trend
from lab.tests.factories import make_experiment
from lab.trends.identity import trend_key
from lab.trends.page import trend_list
from lab.trends.summary import trend_summaries
from lab.trends.tests.test_trends import measured

pytestmark = pytest.mark.django_db

WOBBLE = (-1.0, 0.0, 1.0, 0.5, -0.5)


def migrate() -> None:
    import_module("lab.migrations.0052_branches_of_trends").move_to_branches(apps, None)


def boots(level: float) -> tuple[float, ...]:
    return tuple(level + wobble for wobble in WOBBLE)


@pytest.fixture
def mixed() -> SimpleNamespace:
    """One trend of three branches: main at even places, stable at odd ones, and one revision of stable that was submitted by hand."""
    make_experiment()
    Tree.objects.update(default_revision="main")
    tree = Tree.objects.get()
    made: dict[str, Any] = {
        name: Standing.objects.create(name=name or "default", spec={}, tree=tree, branch=name)
        for name in ("", "main", "stable")
    }
    for number in range(0, 12, 2):
        measured(number, *boots(100.0), standing=made["main" if number % 4 else ""])
        measured(number + 1, *boots(200.0), standing=made["stable"])
    measured(13, *boots(200.0))
    # By hand, too: the old trend has this revision twice.
    measured(11, *boots(200.0))
    (page,) = trend_list()
    assert len(page.points) == 13
    key = page.line.key
    for commit, standing in ((f"{3:040x}", "stable"), (f"{4:040x}", "main")):
        Alert.objects.create(
            standing=made[standing], trend=key, commit=commit, metric="m", ratio=1.1, worse=True
        )
    for number in (3, 4, 11):
        StepDecision.objects.create(trend=key, commit=f"{number:040x}", state="accepted")
        revision = Revision.objects.get(commit=f"{number:040x}")
        Note.objects.create(revision=revision, trend=key, text=f"on {number}")
    return SimpleNamespace(key=key, **made)


def test_points_alerts_notes_and_decisions_follow_their_branch(mixed: SimpleNamespace) -> None:
    before = BasePoint.objects.count()
    migrate()
    assert BasePoint.objects.count() == before
    assert {p.trend for p in BasePoint.objects.all()} == {
        trend_key(point.case, point.metric, point.config) for point in BasePoint.objects.all()
    }
    pages = {page.line.branch: page for page in trend_list()}
    places = {branch: [point.revision.position for point in page.points] for branch, page in pages.items()}
    # Nothing is known of the branch of what was submitted by hand: it stays where it was.
    assert places == {"": [0, 2, 4, 6, 8, 10, 11, 13], "stable": [1, 3, 5, 7, 9, 11]}
    new = pages["stable"].line.key
    assert pages[""].line.key == mixed.key
    assert pages["stable"].steps == ()
    alerts = dict(Alert.objects.values_list("commit", "trend"))
    assert alerts == {f"{3:040x}": new, f"{4:040x}": mixed.key}
    decided = dict(StepDecision.objects.values_list("commit", "trend"))
    assert decided == {f"{3:040x}": new, f"{4:040x}": mixed.key, f"{11:040x}": mixed.key}
    assert dict(Note.objects.values_list("text", "trend")) == {
        "on 3": new,
        "on 4": mixed.key,
        "on 11": mixed.key,
    }


def test_lists_show_both_trends_afterwards(mixed: SimpleNamespace) -> None:
    trend_summaries()
    migrate()
    assert {trend.line.branch: trend.points for trend in trend_summaries()} == {"": 8, "stable": 6}
    row = Trend.objects.get(branch="stable")
    assert (row.trunk, row.stale) == (mixed.key, False)


def test_a_migration_that_is_repeated_changes_nothing(mixed: SimpleNamespace) -> None:
    migrate()
    after = sorted(BasePoint.objects.values_list("pk", "trend"))
    migrate()
    assert sorted(BasePoint.objects.values_list("pk", "trend")) == after


def test_a_tree_whose_default_branch_is_unknown_keeps_its_trends(mixed: SimpleNamespace) -> None:
    Tree.objects.update(default_revision="")
    migrate()
    assert set(BasePoint.objects.values_list("trend", flat=True)) == {mixed.key}
