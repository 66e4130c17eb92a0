# SPDX-License-Identifier: GPL-2.0-or-later
"""What a worker needs to know to carry out one build or one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import UnknownRow
from lab.models import Build, Run


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """A build to make. request: as lab.prepare wrote it; label: its first variant's name."""

    id: int
    label: str
    tree: str
    tree_id: str
    commit: str
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A boot to carry out: which artifact, which case, how often, on which machine."""

    id: int
    label: str
    attempt: int
    artifact_key: str
    workload: str
    params: Mapping[str, Any]
    iterations: int
    warmup: int
    purpose: str
    driver: str
    vcpus: int
    memory_mib: int


def build_order(build_id: int) -> BuildOrder:
    """Return what to build. Raises UnknownRow."""
    build = Build.objects.filter(pk=build_id).first()
    if build is None:
        raise UnknownRow(f"there is no build {build_id}")
    variant = build.variants.order_by("-experiment_id", "position").first()
    return BuildOrder(
        id=build.pk,
        label=variant.name if variant else str(build),
        tree=build.request["tree"],
        tree_id=build.tree_id,
        commit=build.commit,
        request=build.request,
    )


def run_order(run_id: int) -> RunOrder:
    """Return what to boot. Raises UnknownRow, also for a run whose variant has no artifact."""
    run = Run.objects.select_related("experiment__target", "variant__build", "case").filter(pk=run_id).first()
    if run is None or run.variant.build is None or not run.variant.build.artifact_key:
        raise UnknownRow(f"there is no run {run_id} whose kernel is built")
    return RunOrder(
        id=run.pk,
        label=f"{run.variant.name}: {run.case.workload}, {run.purpose}",
        attempt=run.attempt,
        artifact_key=run.variant.build.artifact_key,
        workload=run.case.workload,
        params=run.case.params,
        iterations=run.experiment.iterations,
        warmup=run.experiment.warmup,
        purpose=run.purpose,
        driver=run.experiment.target.driver,
        vcpus=run.experiment.target.vcpus,
        memory_mib=run.experiment.target.memory_mib,
    )
