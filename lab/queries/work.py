# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads for workers: what exactly to build, what exactly to boot, and what is known of the host."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lab.errors import UnknownRow
from lab.models import Build, Host, Run, Tree


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What to build: a revision over its base, config fragments as (name, text), workloads' modules.

    base_fragments: the fragments of the base, fewer where a config switch is on.
    """

    id: int
    tree: str
    base_name: str
    base_commit: str
    base_tree_id: str
    commit: str
    tree_id: str
    config_base: str
    fragments: tuple[tuple[str, str], ...]
    base_fragments: tuple[tuple[str, str], ...]
    cc: str
    modules_of: tuple[str, ...]
    variants: tuple[str, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What to boot and what to run there."""

    id: int
    experiment_id: int
    variant: str
    block: int
    position: int
    purpose: str
    workload: str
    preset: str
    params: dict[str, Any]
    iterations: int
    warmup: int
    build_id: int
    artifact_key: str
    release: str
    driver: str
    target: str
    vcpus: int
    memory_mib: int
    attempt: int


@dataclass(frozen=True, slots=True)
class HostView:
    """The accelerator found to work on a host."""

    name: str
    accelerator: str
    reason: str
    fingerprint: str
    probed_at: datetime


def build_order(build_id: int) -> BuildOrder:
    """Return what a build is to make. Raises UnknownRow."""
    build = Build.objects.filter(pk=build_id).first()
    if build is None:
        raise UnknownRow(f"there is no build {build_id}")
    request = build.request
    return BuildOrder(
        id=build.pk,
        tree=request["tree"],
        base_name=request["base_name"],
        base_commit=request["base_commit"],
        base_tree_id=request["base_tree_id"],
        commit=build.commit,
        tree_id=build.tree_id,
        config_base=request["config_base"],
        fragments=tuple((name, text) for name, text in request["fragments"]),
        base_fragments=tuple((name, text) for name, text in request["base_fragments"]),
        cc=request["cc"],
        modules_of=tuple(request["modules_of"]),
        variants=tuple(
            dict.fromkeys(build.variants.order_by("-experiment_id").values_list("name", flat=True))
        ),
        attempt=build.attempt,
    )


def run_order(run_id: int) -> RunOrder:
    """Return what a run is to boot. Raises UnknownRow, also when its variant has no build."""
    run = Run.objects.select_related("experiment__target", "variant__build", "case").filter(pk=run_id).first()
    if run is None or run.variant.build is None:
        raise UnknownRow(f"there is no run {run_id} with a build")
    target = run.experiment.target
    return RunOrder(
        id=run.pk,
        experiment_id=run.experiment_id,
        variant=run.variant.name,
        block=run.block,
        position=run.position,
        purpose=run.purpose,
        workload=run.case.workload,
        preset=run.case.preset,
        params=run.case.params,
        iterations=run.experiment.iterations,
        warmup=run.experiment.warmup,
        build_id=run.variant.build.pk,
        artifact_key=run.variant.build.artifact_key,
        release=run.variant.build.release,
        driver=target.driver,
        target=target.name,
        vcpus=target.vcpus,
        memory_mib=target.memory_mib,
        attempt=run.attempt,
    )


def known_host(name: str) -> HostView | None:
    """Return what was found out about a host, None if it was never probed."""
    host = Host.objects.filter(name=name).first()
    if host is None:
        return None
    return HostView(host.name, host.accelerator, host.accelerator_reason, host.fingerprint, host.probed_at)


def registered_trees() -> tuple[tuple[str, str, str], ...]:
    """Return (name, kind, location) of the trees in the table."""
    return tuple(Tree.objects.order_by("name").values_list("name", "kind", "location"))
