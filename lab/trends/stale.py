# SPDX-License-Identifier: GPL-2.0-or-later
"""Mark trends whose points have changed, so that their summaries are computed again."""

from collections.abc import Collection, Iterable

from django.db.models import F, Q

from lab.models import BasePoint, Case, Tree, Trend
from lab.trends.identity import identity_of


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
    mark_stale(with_branches(Trend.objects.filter(tree=tree, unplaced__gt=0).values_list("key", flat=True)))


def with_branches(keys: Iterable[str], position: int = 0) -> set[str]:
    """Return these trends, and those of branches that share their points from a position on.

    The fork of a summary that is stale may be out of date; such a trend is always returned.
    """
    trunks = set(keys)
    sharing = Trend.objects.filter(Q(fork__gte=position) | Q(stale=True), trunk__in=trunks)
    return trunks | set(sharing.values_list("key", flat=True))


def _rows(keys: list[str]) -> list[Trend]:
    latest = {point.trend: point for point in BasePoint.objects.filter(trend__in=keys).order_by("case_id")}
    cases = Case.objects.select_related("experiment__tree", "experiment__target").in_bulk(
        {point.case_id for point in latest.values()}
    )
    return [
        Trend(key=key, **identity_of(point.metric, point.config, cases[point.case_id]))
        for key, point in latest.items()
    ]
