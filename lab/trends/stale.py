# SPDX-License-Identifier: GPL-2.0-or-later
"""Say of trends that their points have changed, so that their summaries are computed again."""

from collections.abc import Collection

from django.db.models import F

from lab.models import BasePoint, Case, Tree, Trend
from lab.models.hardware import Target


def kind_of_machine(target: Target) -> str:
    """Return the name under which a trend collects boots: machines of one group are equal."""
    return target.group or target.name


def mark_stale(keys: Collection[str]) -> None:
    """Note that the points of these trends changed; write the rows of those that are new. Call it in the transaction of the change."""
    ordered = sorted(keys)
    known = set(Trend.objects.filter(key__in=ordered).values_list("key", flat=True))
    Trend.objects.bulk_create(_rows([key for key in ordered if key not in known]), ignore_conflicts=True)
    # In one order, so that two experiments that end at once do not wait for each other for ever.
    for key in ordered:
        Trend.objects.filter(key=key).update(stale=True, changes=F("changes") + 1)


def mark_unplaced(tree: Tree) -> None:
    """Note that places of revisions of a tree were learnt: points without a place may have one now."""
    Trend.objects.filter(tree=tree, unplaced__gt=0).update(stale=True, changes=F("changes") + 1)


def _rows(keys: list[str]) -> list[Trend]:
    latest = {point.trend: point for point in BasePoint.objects.filter(trend__in=keys).order_by("case_id")}
    cases = Case.objects.select_related("experiment__tree", "experiment__target").in_bulk(
        {point.case_id for point in latest.values()}
    )
    return [Trend(key=key, **identity_of(point, cases[point.case_id])) for key, point in latest.items()]


def identity_of(point: BasePoint, case: Case) -> dict[str, object]:
    """Return the columns of a trend that say what it is of, from its latest point and that point's case."""
    experiment = case.experiment
    metric = next(one for one in case.metrics if one["name"] == point.metric)
    return {
        "tree": experiment.tree,
        "workload": case.workload,
        "preset": case.preset,
        "params": case.params,
        "target": kind_of_machine(experiment.target),
        "clock": experiment.clock,
        "config": point.config,
        "metric": point.metric,
        "unit": metric["unit"],
        "better": metric["better"],
        "margin": metric["margin"],
        "primary": metric["primary"],
        "latest_case": case.pk,
    }
