# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the durations and deviations of earlier experiments, for previews of later ones."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from lab.models import Build, Case, Run, Sample, Target
from lab.models.states import BuildState, Purpose, Role, RunState
from lab.submission.prepare import PLACEBO_FRAGMENT

# Machines change: old figures say little about the next experiment.
RECENT = 20


@dataclass(frozen=True, slots=True)
class Durations:
    """Median seconds of builds; None where this lab has none."""

    base_build: float | None
    variant_build: float | None


def build_durations() -> Durations:
    """Return the durations of builds that compiled anything: of a base or its placebo, and over a base."""
    made = Build.objects.filter(state=BuildState.BUILT, cached=False, wall_seconds__isnull=False)
    rows = made.order_by("-pk").values_list("wall_seconds", "tree_id", "request")[: 5 * RECENT]
    times = [(wall, _is_whole(tree, request)) for wall, tree, request in rows if wall is not None]
    base = [wall for wall, whole in times if whole]
    variant = [wall for wall, whole in times if not whole]
    return Durations(median(base) if base else None, median(variant) if variant else None)


def _is_whole(tree_id: str, request: Mapping[str, Any]) -> bool:
    """Return whether a build compiles everything; a change of the config alone is built over the base, whose sources it has."""
    own = [
        name
        for name, text in request.get("fragments", ())
        if [name, text] not in request.get("base_fragments", ())
    ]
    return tree_id == request.get("base_tree_id") and set(own) <= {PLACEBO_FRAGMENT.name}


def boot_duration(workload: str, preset: str, target: Target, clock: str, purpose: str) -> float | None:
    """Seconds from claim to end of such a boot, the median of recent ones; None if there was none."""
    runs = Run.objects.filter(
        case__workload=workload,
        case__preset=preset,
        experiment__target=target,
        experiment__clock=clock,
        purpose=purpose,
        state=RunState.DONE,
    )
    times = runs.order_by("-pk").values_list("started_at", "finished_at")[: 5 * RECENT]
    took = [(end - start).total_seconds() for start, end in times if start and end]
    return median(took) if took else None


def deviation(workload: str, preset: str, target: Target, metric: str) -> tuple[float, int] | None:
    """Standard deviation of the log of a boot's median within blocks, and the number of experiments.

    Taken from the base and its twin, which differ by nothing but noise. None without history.
    """
    cases = Case.objects.filter(
        workload=workload, preset=preset, experiment__target=target, experiment__clock="wall"
    )
    deviations = []
    for case in cases.order_by("-pk")[:RECENT]:
        differences = _differences(case, metric)
        if len(differences) >= 2:
            deviations.append(float(np.sqrt(np.mean(np.square(differences)) / 2)))
    return (median(deviations), len(deviations)) if deviations else None


def _differences(case: Case, metric: str) -> list[float]:
    """By block, the log ratio of the base's two boots."""
    samples = Sample.objects.filter(
        run__case=case,
        run__purpose=Purpose.MEASURED,
        run__state=RunState.DONE,
        run__invalid=[],
        run__variant__role__in=(Role.BASE, Role.AA),
        metric=metric,
        warmup=False,
        value__gt=0,
    )
    boots: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for role, block, value in samples.order_by("run__block", "pk").values_list(
        "run__variant__role", "run__block", "value"
    ):
        boots[block][role].append(value)
    pairs = (roles for roles in boots.values() if len(roles) == 2)
    return [float(np.log(median(roles[Role.AA]) / median(roles[Role.BASE]))) for roles in pairs]
