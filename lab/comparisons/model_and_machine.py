# SPDX-License-Identifier: GPL-2.0-or-later
"""Put the contention clock's model beside hardware that ran the same kernels and workload on as many CPUs.

The tables are for judging the model and give no verdict: the two clocks count different things, so only the change from
the base to a patch is shown for each. docs/contention.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lab.comparisons.shape import ModelAndMachineData, ModelAndMachineRow, ShiftData, SideData
from lab.models import Case, Comparison, Experiment, Run, Variant
from lab.models.states import ExperimentState, Purpose, Role, RunState
from workloads.catalog import load_catalog
from workloads.contention import CPUS, MACHINE, THREADS
from workloads.contention import PARAMS as OF_THE_MODEL

_OTHER_CLOCK = {"contention": "wall", "wall": "contention"}
_HARDWARE = ("kvm", "none")
"""Accelerators as a boot records them: none is a machine of its own."""
_MOST_SEARCHED = 50
"""The newest experiments of the same base under the other clock that are looked at."""

# The source tree and the texts of the config changes: where both are equal, two variants are the same kernel.
Kernel = tuple[str, tuple[str, ...]]


def cycles_by_latency(case_id: int) -> dict[str, Mapping[str, float]]:
    """Return by variant the cycles per operation on the most CPUs, by the factor of all latencies ("0.5", "1", "2")."""
    rows = Run.objects.filter(
        case=case_id, purpose="measured", extras__contention__has_key="latencies", invalid=[]
    )
    pairs = rows.order_by("variant__position", "pk").values_list(
        "variant__name", "extras__contention__latencies"
    )
    return {name: latencies for name, latencies in pairs if isinstance(latencies, Mapping)}


def models_and_machines(row: Experiment) -> dict[int, list[ModelAndMachineData]]:
    """Return by case of an experiment a table for each number of CPUs that both a model and a machine ran it on.

    Of several experiments under the other clock the newest counts.
    """
    if row.clock not in _OTHER_CLOCK or row.state != ExperimentState.DONE:
        return {}
    others = list(
        Experiment.objects.filter(
            base_tree_id=row.base_tree_id, clock=_OTHER_CLOCK[row.clock], state=ExperimentState.DONE
        )
        .order_by("-pk")
        .select_related("target")
        .prefetch_related("cases")[:_MOST_SEARCHED]
    )
    if not others:
        return {}
    hardware = _hardware([row] if row.clock == "wall" else others)
    by_case = {case.pk: list(_tables(row, case, others, hardware)) for case in row.cases.all()}
    return {case: tables for case, tables in by_case.items() if tables}


def _hardware(experiments: Iterable[Experiment]) -> dict[int, tuple[str, int]]:
    """Return for each experiment that ran on hardware the processor and number of CPUs that its boots recorded."""
    boots = Run.objects.filter(
        experiment__in=list(experiments),
        variant__role=Role.BASE,
        purpose=Purpose.MEASURED,
        state=RunState.DONE,
        environment__machine__accelerator__in=_HARDWARE,
    ).order_by("pk")
    recorded = boots.values_list("experiment_id", "environment__guest", "environment__machine__accelerator")
    hardware = {}
    for experiment, guest, accelerator in recorded:
        cpus = guest.get("cpus") if isinstance(guest, Mapping) else None
        if isinstance(cpus, int):
            processor = str(guest.get("cpu_model", "")).strip() or "an unnamed processor"
            hardware[experiment] = (processor if accelerator == "none" else f"{processor} under KVM", cpus)
    return hardware


def _tables(
    row: Experiment, case: Case, others: Iterable[Experiment], hardware: Mapping[int, tuple[str, int]]
) -> Iterator[ModelAndMachineData]:
    seen: set[int] = set()
    for other in others:
        for theirs in other.cases.all():
            model, machine = (case, theirs) if row.clock == "contention" else (theirs, case)
            processor, most = hardware.get(machine.experiment_id, ("", 0))
            cpus = machine.params.get(THREADS)
            if not isinstance(cpus, int) or cpus in seen or not 0 < cpus <= most:
                continue
            if not _is_same_work(model, machine) or cpus not in (model.params.get(CPUS.name) or ()):
                continue
            if table := _table(model, machine, cpus, processor):
                seen.add(cpus)
                yield table


def _is_same_work(model: Case, machine: Case) -> bool:
    """Return whether two cases do the same work; only amounts that the contention clock reduces may differ."""
    workload = load_catalog().get(model.workload)
    if model.workload != machine.workload or workload is None or workload.definition.contending is None:
        return False
    amounts = workload.definition.contending.params
    return not set(_different(model, machine)) - set(amounts)


def _different(model: Case, machine: Case) -> list[str]:
    """Return the parameters of the workload itself in which two cases differ."""
    names = dict.fromkeys((*model.params, *machine.params))
    own = [name for name in names if name not in OF_THE_MODEL and name != THREADS]
    return [name for name in own if model.params.get(name) != machine.params.get(name)]


def _table(model: Case, machine: Case, cpus: int, processor: str) -> ModelAndMachineData | None:
    cycles = next(
        (
            metric["name"]
            for metric in model.metrics
            if metric["primary"] and metric["name"].endswith(f"_{cpus}")
        ),
        "",
    )
    time = next(
        (metric["name"] for metric in machine.metrics if metric["primary"] and metric["better"] == "lower"),
        "",
    )
    modelled, measured = _shifts(model, cycles), _shifts(machine, time)
    rows = [
        ModelAndMachineRow(variant=name, model=shift, machine=measured[kernel][1])
        for kernel, (name, shift) in modelled.items()
        if kernel in measured
    ]
    if not rows:
        return None
    return ModelAndMachineData(
        cpus=cpus,
        model=_side(model, cycles, str(model.params.get(MACHINE.name, MACHINE.default))),
        machine=_side(machine, time, processor),
        rows=rows,
        different=[
            f"{name} {_text(model, name)} in the model, {_text(machine, name)} on the machine"
            for name in _different(model, machine)
        ],
    )


def _shifts(case: Case, metric: str) -> dict[Kernel, tuple[str, ShiftData]]:
    """Return by kernel the name and the change of each candidate that was compared."""
    compared = Comparison.objects.filter(
        case=case, metric=metric, ratio__isnull=False, variant__role=Role.CANDIDATE
    )
    changes = dict(case.experiment.switches.filter(kind="config").values_list("name", "text"))
    return {
        _kernel(comparison.variant, changes): (
            comparison.variant.name,
            ShiftData(
                ratio=comparison.ratio, low=comparison.low, high=comparison.high, verdict=comparison.verdict
            ),
        )
        for comparison in compared.select_related("variant__build").order_by("variant__position")
    }


def _kernel(variant: Variant, changes: Mapping[str, str]) -> Kernel:
    tree = variant.tree_id or (variant.build.tree_id if variant.build else "")
    return tree, tuple(sorted(changes[name] for name in variant.switches if name in changes))


def _side(case: Case, metric: str, machine: str) -> SideData:
    row = case.experiment
    return SideData(experiment=row.pk, name=row.name, target=row.target.name, machine=machine, metric=metric)


def _text(case: Case, name: str) -> Any:
    return case.params.get(name, "unset")
