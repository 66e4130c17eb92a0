# SPDX-License-Identifier: GPL-2.0-or-later
"""What a description would cost and could show, before anything of it is queued."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from kernels.artifact import ArtifactStore
from lab.analysis.sequential import LOOKS, detectable
from lab.models import Build
from lab.prepare import Prepared, boots_at_most, prepare
from lab.queries.history import boot_duration, build_durations, deviation
from lab.spec import ExperimentSpec
from lab.states import BuildState, Purpose, Role
from lab.submit import PROFILED_ROLES, PlannedVariant, is_profiled, plan_variants
from workloads.catalog import Workload


@dataclass(frozen=True, slots=True)
class VariantPreview:
    """One variant: "built" already, "to build", or "pruned" with the reason."""

    name: str
    role: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest change of one metric that would be found four times in five, as a fraction.

    None where this target has no history of it: then the first experiment tells.
    """

    case: str
    metric: str
    change: float | None
    experiments: int


@dataclass(frozen=True, slots=True)
class Preview:
    """All of it. boots: measured, profiled and verified ones, at most; fewest: where they stop early.

    seconds: builds and boots together, None where something was never done here.
    """

    variants: tuple[VariantPreview, ...]
    builds: int
    boots: int
    fewest: int
    seconds: float | None
    detectable: tuple[Detectable, ...]


def preview_experiment(
    *, spec: ExperimentSpec, home: Path | None = None, on_progress: Callable[[str], None] = lambda _: None
) -> Preview:
    """Try a description as submitting it would, and say what it takes. Writes nothing.

    Raises what `submit_experiment` raises.
    """
    root = home or settings.HOME
    prepared = prepare(spec, root, on_progress)
    planned = plan_variants(prepared)
    store = ArtifactStore(root / "artifacts")
    variants = tuple(_variant(plan, store) for plan in planned)
    live = [plan for plan in planned if plan.inputs]
    builds = {plan.inputs.digest for plan in live if plan.inputs and not _is_built(plan, store)}
    most = boots_at_most(spec.measure)
    fewest = LOOKS[0] if spec.measure.boots == "auto" else most
    return Preview(
        variants=variants,
        builds=len(builds),
        boots=_boots(prepared, live, most),
        fewest=_boots(prepared, live, fewest),
        seconds=_seconds(prepared, live, builds, most),
        detectable=tuple(_detectable(prepared, len(live), most)),
    )


def _variant(plan: PlannedVariant, store: ArtifactStore) -> VariantPreview:
    if plan.clash:
        return VariantPreview(plan.name, plan.role, "pruned", plan.clash.reason)
    return VariantPreview(plan.name, plan.role, "built" if _is_built(plan, store) else "to build")


def _is_built(plan: PlannedVariant, store: ArtifactStore) -> bool:
    if plan.inputs is None:
        return False
    build = Build.objects.filter(inputs=plan.inputs.digest, state=BuildState.BUILT).first()
    return build is not None and store.has(build.artifact_key)


def _purposes(prepared: Prepared, live: list[PlannedVariant], most: int) -> Iterator[tuple[int, str, int]]:
    """For each case, each purpose with the number of boots."""
    judged = sum(plan.role in {Role.BASE, Role.CANDIDATE} for plan in live)
    seen = sum(plan.role in PROFILED_ROLES for plan in live)
    spec = prepared.spec
    for index, workload in enumerate(prepared.workloads):
        yield index, Purpose.MEASURED, len(live) * most
        if is_profiled(spec, index):
            yield index, Purpose.PROFILED, seen * spec.measure.profile_boots
        if spec.measure.verify and workload.verifies:
            yield index, Purpose.VERIFIED, judged


def _boots(prepared: Prepared, live: list[PlannedVariant], most: int) -> int:
    return sum(count for _, _, count in _purposes(prepared, live, most))


def _seconds(prepared: Prepared, live: list[PlannedVariant], builds: set[str], most: int) -> float | None:
    """Builds, then boots, one after the other; None where one of them has no history here."""
    spec, took = prepared.spec, build_durations()
    total = 0.0
    for digest in builds:
        plan = next(plan for plan in live if plan.inputs and plan.inputs.digest == digest)
        alone = plan.role in {Role.BASE, Role.PLACEBO}
        seconds = took.base_build if alone else took.variant_build
        if seconds is None:
            return None
        total += seconds
    for index, purpose, count in _purposes(prepared, live, most):
        case = spec.cases[index]
        clock = spec.measure.clock
        seconds = boot_duration(case.workload, case.preset, prepared.target, clock, purpose)
        if seconds is None:
            return None
        total += count * seconds
    return total


def _detectable(prepared: Prepared, arms: int, boots: int) -> Iterator[Detectable]:
    """Of each primary metric; by instructions everything above the floor is seen, so nothing is said."""
    spec = prepared.spec
    if spec.measure.clock == "instructions":
        return
    for case, workload in zip(spec.cases, prepared.workloads, strict=True):
        for name in _primary(workload, case.preset, dict(case.params)):
            seen = deviation(case.workload, case.preset, prepared.target, name)
            change = detectable(seen[0], boots, arms) if seen else None
            yield Detectable(f"{case.workload} ({case.preset})", name, change, seen[1] if seen else 0)


def _primary(workload: Workload, preset: str, params: dict[str, object]) -> list[str]:
    metrics = workload.metrics_of(workload.resolve(preset, params))
    return [metric.name for metric in metrics.values() if metric.primary]
