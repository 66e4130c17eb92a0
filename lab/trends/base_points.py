# SPDX-License-Identifier: GPL-2.0-or-later
"""Store the points that an experiment adds to trends, with its comparisons, so that no page reads samples.

A trend is one metric of one case on one branch of a tree, by one clock, on one kind of machine (a group, or a target outside any group),
with kernels of one config: the one that the case itself needs, without the needs of other workloads of its experiments.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from lab.models import Alert, BasePoint, Case, Experiment, Note, Revision, Variant
from lab.models.hardware import Target
from lab.statistics.arms import Arm
from lab.trends.identity import trend_key
from lab.trends.stale import mark_stale, with_branches

# Prefix of the names of config fragments that workloads need.
WORKLOAD_FRAGMENT = "workload "


def base_point(case: Case, metric: dict[str, Any], base: Variant, ground: Sequence[Arm]) -> list[BasePoint]:
    """Return one row that is not stored yet, or none if no boot of the base counts. ground: the base's arms."""
    boots = [median(iterations) for arm in ground for iterations in arm.boots.values()]
    if not boots or base.build is None:
        return []
    config = config_of(base.build.request, case.workload)
    return [
        BasePoint(
            trend=trend_key(case, metric["name"], config),
            case=case,
            metric=metric["name"],
            primary=metric["primary"],
            config=config,
            commit=case.experiment.base_commit,
            boots=boots,
        )
    ]


def store_base_points(experiment_id: int, points: Sequence[BasePoint]) -> None:
    """Replace the points of an experiment, and mark the summaries of their trends as stale."""
    with transaction.atomic():
        old = BasePoint.objects.filter(case__experiment=experiment_id)
        keys = set(old.values_list("trend", flat=True))
        old.delete()
        BasePoint.objects.bulk_create(points)
        mark_stale(with_branches(keys | {point.trend for point in points}, _position(experiment_id)))


def _position(experiment_id: int) -> int:
    """Return the place of an experiment's base on its line, 0 if it is not known."""
    tree, commit = Experiment.objects.values_list("tree", "base_commit").get(pk=experiment_id)
    revision = Revision.objects.filter(tree=tree, commit=commit).first()
    return revision.position if revision else 0


def config_of(request: Mapping[str, Any], workload: str) -> str:
    """Return 8 digits that identify the config fragments and compiler of a workload's kernels, without those of other workloads."""
    own = f"{WORKLOAD_FRAGMENT}{workload}"
    fragments = [
        [name, text]
        for name, text in request["fragments"]
        if name == own or not name.startswith(WORKLOAD_FRAGMENT)
    ]
    return hashlib.sha256(json.dumps([fragments, request["cc"]]).encode()).hexdigest()[:8]


def follow_target(target: Target) -> None:
    """Move the points of a target's experiments to their new trends after its name or group changed.

    Alerts and notes of a trend without points left move with them. Call it in the transaction of the change.
    """
    moved: dict[str, str] = {}
    points = BasePoint.objects.filter(case__experiment__target=target)
    for point in points.select_related("case__experiment__tree", "case__experiment__target").iterator():
        key = trend_key(point.case, point.metric, point.config)
        if key != point.trend:
            moved[point.trend] = key
            BasePoint.objects.filter(pk=point.pk).update(trend=key)
    mark_stale(with_branches({*moved, *moved.values()}))
    for old, new in moved.items():
        if not BasePoint.objects.filter(trend=old).exists():
            Note.objects.filter(trend=old).update(trend=new)
            same = Alert.objects.filter(standing=OuterRef("standing"), commit=OuterRef("commit"), trend=new)
            Alert.objects.filter(~Exists(same), trend=old).update(trend=new)
