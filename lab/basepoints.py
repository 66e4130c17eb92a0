# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment adds to trends: written with its comparisons, so that no page reads samples to draw a course.

Kernels of different configs are different trends, and so are clocks and targets.
"""

import hashlib
import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from django.db import transaction

from lab.analysis.boots import Arm
from lab.models import BasePoint, Case, Variant


def base_point(case: Case, metric: dict[str, Any], base: Variant, ground: Sequence[Arm]) -> list[BasePoint]:
    """One row, not stored yet, or none where no boot of the base counts. ground: the base's arms."""
    boots = [median(iterations) for arm in ground for iterations in arm.boots.values()]
    if not boots or base.build is None:
        return []
    config = config_of(base.build.request)
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
    """Replace what an experiment said before."""
    with transaction.atomic():
        BasePoint.objects.filter(case__experiment=experiment_id).delete()
        BasePoint.objects.bulk_create(points)


def config_of(request: dict[str, Any]) -> str:
    """What tells kernels of one revision apart: fragments and compiler."""
    return hashlib.sha256(json.dumps([request["fragments"], request["cc"]]).encode()).hexdigest()[:8]


def trend_key(case: Case, metric: str, config: str) -> str:
    """What addresses a trend: 12 hexadecimal digits."""
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        experiment.target.name,
        experiment.clock,
        config,
        metric,
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
