# SPDX-License-Identifier: GPL-2.0-or-later
"""Read orders for workers: exactly what to build and what to boot."""

from dataclasses import dataclass
from typing import Any, Literal

from lab.errors import UnknownRow, one_row
from lab.from_attributes import attributes, from_attributes
from lab.models import Build, Experiment, Run, Target, Tree, Variant
from lab.models.states import Purpose, Role, RunState

Way = Literal["power", "kexec"]


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """An order to build.

    request: tree, base_name, base_commit, base_tree_id, config_base, fragments and base_fragments
    (lists of [name, text]; the base has fewer where a config switch is on), cc, modules_of (workloads).
    """

    id: int
    tree: str
    commit: str
    tree_id: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to boot and run.

    off_cpu: a profiled run records waits off the CPUs, too. exact: it counts every instruction instead. shift: further
    warm-up iterations of an exact run: they move timer ticks and free memory about, which differ between kernels for no
    reason, so that boots of one kernel show that effect. access: how its driver reaches the target;
    tuning: the target's settings for measuring. way: how the boots of its block that count were started;
    None if there are none yet, or their driver has one way. of_archive: its kernel is the lab's own, that of a source archive
    as it is.
    """

    id: int
    variant: str
    block: int
    purpose: str
    clock: str
    workload: str
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
    of_archive: bool = False


# Without the description and the build's request: they are tens of kilobytes, which a boot does not need. Three statements,
# since PostgreSQL planned a join of all seven tables ten times as long as it ran it.
_OF_RUN = (
    *("block", "purpose", "attempt", "target", "variant"),
    *("experiment__clock", "experiment__iterations", "experiment__warmup", "experiment__target"),
    *("experiment__base_name", "experiment__tree"),
    *("case__workload", "case__params", "case__position"),
)
_OF_VARIANT = ("name", "role", "build__artifact_key", "build__release")
_OF_TARGET = ("name", "driver", "access", "tuning", "vcpus", "memory_mib")


def build_order(build_id: int) -> BuildOrder:
    """Return what a build is to make. Raises UnknownRow."""
    build = one_row(Build.objects.filter(pk=build_id), f"build {build_id}")
    return from_attributes(BuildOrder, build, tree=build.request["tree"])


def run_order(run_id: int) -> RunOrder:
    """Return what a run is to boot. Raises UnknownRow, also when its kernel is not built."""
    run = Run.objects.select_related("experiment", "case").only(*_OF_RUN).filter(pk=run_id).first()
    of_run = Variant.objects.select_related("build").only(*_OF_VARIANT).filter(runs=run_id)
    variant = of_run.exclude(build__artifact_key="").first()
    if run is None or variant is None or variant.build is None:
        raise UnknownRow(f"there is no run {run_id} whose kernel is built")
    target = Target.objects.only(*_OF_TARGET).get(pk=run.target_id or run.experiment.target_id)
    off_cpu, exact = _profiling(run) if run.purpose == Purpose.PROFILED else (False, False)
    return from_attributes(
        RunOrder,
        run,
        variant=variant.name,
        off_cpu=off_cpu,
        exact=exact,
        shift=2 * run.block + (variant.role == Role.AA) if exact else 0,
        build_id=variant.build.pk,
        target=target.name,
        way=_way_of_block(run),
        of_archive=_is_of_archive(run.experiment, variant),
        **attributes(run.experiment, ("clock", "iterations", "warmup")),
        **attributes(run.case, ("workload", "params")),
        **attributes(variant.build, ("artifact_key", "release")),
        **attributes(target, ("driver", "access", "tuning", "vcpus", "memory_mib")),
    )


def _is_of_archive(experiment: Experiment, variant: Variant) -> bool:
    """Return whether a kernel is that of a source archive as it is: any commit can be an experiment's base, also somebody's patch."""
    if variant.role not in (Role.BASE, Role.AA):
        return False
    plain = Tree.objects.filter(kind=Tree.Kind.ARCHIVE, default_revision=experiment.base_name)
    return plain.filter(pk=experiment.tree_id).exists()


def _profiling(run: Run) -> tuple[bool, bool]:
    """Return whether a profiled run records waits off the CPUs, and whether it counts every instruction."""
    of_experiment = Experiment.objects.filter(pk=run.experiment_id)
    measure, cases = of_experiment.values_list("spec__measure", "spec__cases").get()
    # Descriptions from before there was a choice lack these.
    measure, cases = measure or {}, cases or []
    own = cases[run.case.position].get("profile") if run.case.position < len(cases) else None
    kind = measure.get("profile", False) if own is None else own
    return bool(measure.get("off_cpu", False)), kind == "exact"


def _way_of_block(run: Run) -> Way | None:
    """Return the way of a block's first boot that counts: boots of one block are compared, so all go one way."""
    others = Run.objects.filter(
        experiment=run.experiment_id, purpose=run.purpose, block=run.block, state=RunState.DONE, invalid=[]
    )
    ways = others.order_by("finished_at").values_list("environment__host__way", flat=True)
    return next((way for way in ways if way in {"power", "kexec"}), None)
