# SPDX-License-Identifier: GPL-2.0-or-later
"""Mark trends whose points have changed, so that their summaries are computed again."""

from collections.abc import Collection
from typing import Any

from django.db.models import F

from lab.from_attributes import attributes
from lab.models import BasePoint, Case, Tree, Trend
from lab.models.hardware import Target


def kind_of_machine(target: Target) -> str:
    """Return the name under which a trend collects boots: machines of one group are equal."""
    return target.group or target.name


def mark_stale(keys: Collection[str]) -> None:
    """Mark the summaries of these trends as stale, and create the rows of new trends. Call it in the transaction of the change."""
    ordered = sorted(keys)
    known = set(Trend.objects.filter(key__in=ordered).values_list("key", flat=True))
    Trend.objects.bulk_create(_rows([key for key in ordered if key not in known]), ignore_conflicts=True)
    # In one order, so that two processes that do this at once cannot deadlock.
    for key in ordered:
        Trend.objects.filter(key=key).update(stale=True, changes=F("changes") + 1)


def mark_unplaced(tree: Tree) -> None:
    """Mark a tree's trends that have points without a place: after new revisions, these may have one."""
    mark_stale(list(Trend.objects.filter(tree=tree, unplaced__gt=0).values_list("key", flat=True)))


def _rows(keys: list[str]) -> list[Trend]:
    latest = {point.trend: point for point in BasePoint.objects.filter(trend__in=keys).order_by("case_id")}
    cases = Case.objects.select_related("experiment__tree", "experiment__target").in_bulk(
        {point.case_id for point in latest.values()}
    )
    return [
        Trend(key=key, **identity_of(point.metric, point.config, cases[point.case_id]))
        for key, point in latest.items()
    ]


def identity_of(name: str, config: str, case: Case) -> dict[str, Any]:
    """Return the columns that describe a trend, from its metric of this name in its latest case and from its config."""
    metric = next(metric for metric in case.metrics if metric["name"] == name)
    return {
        "tree": case.experiment.tree,
        **attributes(case, ("workload", "preset", "params")),
        "target": kind_of_machine(case.experiment.target),
        "clock": case.experiment.clock,
        "config": config,
        "metric": name,
        **{part: metric[part] for part in ("unit", "better", "margin", "primary")},
        "latest_case": case.pk,
    }
