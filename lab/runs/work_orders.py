# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what exactly to build, and what exactly to boot, for workers."""

from dataclasses import dataclass
from typing import Any, Literal

from lab.errors import UnknownRow, one_row
from lab.models import Build, Run
from lab.models.states import Purpose, Role, RunState

Way = Literal["power", "kexec"]


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """An order to build. label: the variants that wait for it, for people.

    request: tree, base_name, base_commit, base_tree_id, config_base, fragments and base_fragments
    (lists of [name, text]; the base has fewer where a config switch is on), cc, modules_of (workloads).
    """

    id: int
    label: str
    tree: str
    commit: str
    tree_id: str
    request: dict[str, Any]
    attempt: int


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to boot and run. label: its name for people.

    off_cpu: a profiled run records waits off the CPUs, too. exact: it counts every instruction instead. shift: further
    warm-up iterations of an exact run: they move timer ticks and free memory about, which differ between kernels for no
    reason, so that boots of one kernel show what that does. access: how its driver reaches the target;
    tuning: what that is set to before it measures. way: how the boots of its block that count went into their kernels;
    None if there are none yet, or their driver has one way.
    """

    id: int
    label: str
    experiment_id: int
    variant: str
    block: int
    position: int
    purpose: str
    clock: str
    workload: str
    preset: str
    params: dict[str, Any]
    iterations: int
    warmup: int
    off_cpu: bool
    exact: bool
    shift: int
    build_id: int
    artifact_key: str
    release: str
    driver: str
    target: str
    access: dict[str, Any]
    tuning: dict[str, Any]
    vcpus: int
    memory_mib: int
    attempt: int
    way: Way | None = None


def build_order(build_id: int) -> BuildOrder:
    """Return what a build is to make. Raises UnknownRow."""
    build = one_row(Build.objects.filter(pk=build_id), f"build {build_id}")
    names = build.variants.order_by("-experiment_id", "position").values_list("name", flat=True)
    return BuildOrder(
        id=build.pk,
        label=", ".join(dict.fromkeys(names)) or build.inputs[:12],
        tree=build.request["tree"],
        commit=build.commit,
        tree_id=build.tree_id,
        request=build.request,
        attempt=build.attempt,
    )


def run_order(run_id: int) -> RunOrder:
    """Return what a run is to boot. Raises UnknownRow, also when its kernel is not built."""
    run = (
        Run.objects.select_related("target", "experiment__target", "variant__build", "case")
        .filter(pk=run_id)
        .first()
    )
    if run is None or run.variant.build is None or not run.variant.build.artifact_key:
        raise UnknownRow(f"there is no run {run_id} whose kernel is built")
    target = run.target or run.experiment.target
    # Descriptions from before there was a choice do not say.
    measure = run.experiment.spec.get("measure", {})
    exact = run.purpose == Purpose.PROFILED and _profiling(run, measure) == "exact"
    return RunOrder(
        id=run.pk,
        label=f"{run.variant.name}: {run.case.workload}, {run.purpose}",
        experiment_id=run.experiment_id,
        variant=run.variant.name,
        block=run.block,
        position=run.position,
        purpose=run.purpose,
        clock=run.experiment.clock,
        workload=run.case.workload,
        preset=run.case.preset,
        params=run.case.params,
        iterations=run.experiment.iterations,
        warmup=run.experiment.warmup,
        off_cpu=bool(measure.get("off_cpu", False)),
        exact=exact,
        shift=2 * run.block + (run.variant.role == Role.AA) if exact else 0,
        build_id=run.variant.build.pk,
        artifact_key=run.variant.build.artifact_key,
        release=run.variant.build.release,
        driver=target.driver,
        target=target.name,
        access=target.access,
        tuning=target.tuning,
        vcpus=target.vcpus,
        memory_mib=target.memory_mib,
        attempt=run.attempt,
        way=_way_of_block(run),
    )


def _profiling(run: Run, measure: dict[str, Any]) -> Any:
    cases = run.experiment.spec.get("cases", [])
    own = cases[run.case.position].get("profile") if run.case.position < len(cases) else None
    return measure.get("profile", False) if own is None else own


def _way_of_block(run: Run) -> Way | None:
    """Boots are compared within their block, so all of it go one way: that of the first that counts."""
    others = Run.objects.filter(
        experiment=run.experiment_id, purpose=run.purpose, block=run.block, state=RunState.DONE, invalid=[]
    )
    ways = others.order_by("finished_at").values_list("environment__host__way", flat=True)
    return next((way for way in ways if way in {"power", "kexec"}), None)
