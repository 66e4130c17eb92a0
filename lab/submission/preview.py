# SPDX-License-Identifier: GPL-2.0-or-later
"""Preview a description: its cost and the smallest change it could show, before anything is queued."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from kernels.diffs.unified import parse_diff
from kernels.patches.series import Patch
from kernels.printable import shown
from lab.experiments.spec import ExperimentSpec
from lab.from_attributes import attributes, from_attributes
from lab.models import Build, Experiment, User
from lab.models.states import BuildState, Purpose, Role
from lab.statistics.sequential import LOOKS, detectable
from lab.storage.artifacts import is_kept
from lab.submission import shipped_figures as shipped
from lab.submission.git_addresses import check_tree_location
from lab.submission.parts import pin_of
from lab.submission.past_figures import boot_duration, build_durations, deviation
from lab.submission.prepare import Prepared, boots_at_most, prepare
from lab.submission.shipped_figures import SHIPPED
from lab.submission.sources import Taken
from lab.submission.submit import PROFILED_ROLES, PlannedVariant, plan_variants
from workloads.catalog import Workload
from workloads.instruction_clock import Clock

# Why a preview names no smallest change of a metric.
NO_HISTORY = "no history on this target yet"
NOT_ESTIMATED = "not estimated under the contention clock"


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

    change: None where it is not known; why: the reason.
    estimate: a remark where change comes from shipped figures, empty where it comes from this lab's history.
    """

    case: str
    metric: str
    change: float | None
    experiments: int
    estimate: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class PatchPreview:
    """One patch as it was understood: date is ISO 8601 where it could be read; added, removed: lines.

    number of total in that version of its series, as its subject says; 0 where the subject has no numbers.
    """

    title: str
    author: str
    date: str
    files: tuple[str, ...]
    added: int
    removed: int
    number: int = 0
    total: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class SwitchPreview:
    """One switch as it was understood. report: what was repaired; text: of a config switch.

    notes: which mails of the series were chosen, which left out, and why.
    """

    name: str
    kind: str
    title: str
    author: str
    link: str
    version: int
    patches: tuple[PatchPreview, ...]
    report: tuple[str, ...]
    requires: tuple[str, ...]
    excludes: tuple[str, ...]
    text: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """The whole preview. boots: measured, profiled and verified ones, at most; fewest: where they stop early.

    seconds: builds and boots together, None where a boot of metal was never done here; build_seconds: of the builds alone.
    estimate: a remark where seconds rests on shipped figures, else empty; at_least: seconds is a minimum, since
    it lacks the time of large presets and no boot can be left out.
    built: kernels that exist already. tree, base, commit: those of the base.
    """

    variants: tuple[VariantPreview, ...]
    builds: int
    boots: int
    fewest: int
    seconds: float | None
    detectable: tuple[Detectable, ...]
    switches: tuple[SwitchPreview, ...] = ()
    build_seconds: float | None = None
    built: int = 0
    tree: str = ""
    base: str = ""
    commit: str = ""
    estimate: str = ""
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """Seconds, None where they are unknown; shipped: some of them come from shipped figures."""

    seconds: float | None
    shipped: bool = False


def preview_experiment(
    *,
    spec: ExperimentSpec,
    by: User | None = None,
    origin: Experiment | None = None,
    home: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Preview:
    """Try a description as submitting it would, and return its cost. Writes nothing.

    by: the user, None at this machine's own terminal. origin: the experiment it would be a clone of, whose commit it stands on.
    Raises what `submit_experiment` raises.
    """
    check_tree_location(spec, by)
    root = home or settings.HOME
    prepared = prepare(spec, root, on_progress, pin_of(spec, origin))
    planned = plan_variants(prepared)
    variants = tuple(_variant(plan, root) for plan in planned)
    live = [plan for plan in planned if plan.inputs]
    builds = {plan.inputs.digest for plan in live if plan.inputs and not _is_built(plan, root)}
    most = boots_at_most(spec.measure)
    fewest = LOOKS[0] if spec.measure.boots == "auto" else most
    building, booting = _build_seconds(live, builds), _boot_seconds(prepared, live, most)
    return Preview(
        variants=variants,
        builds=len(builds),
        boots=_boots(prepared, live, most),
        fewest=_boots(prepared, live, fewest),
        seconds=_sum(building.seconds, booting.seconds),
        detectable=tuple(_detectable(prepared, len(live), most)),
        switches=tuple(_switch(taken) for taken in prepared.switches.values()),
        build_seconds=building.seconds,
        built=len({plan.inputs.digest for plan in live if plan.inputs} - builds),
        tree=prepared.tree.name,
        base=prepared.base.name,
        commit=prepared.base.commit,
        estimate=SHIPPED if building.shipped or booting.shipped else "",
        at_least=booting.shipped and fewest == most,
    )


def _switch(taken: Taken) -> SwitchPreview:
    return from_attributes(
        SwitchPreview,
        taken,
        patches=tuple(_patch(patch) for patch in taken.patches),
        text=shown(taken.text) if taken.kind != "patch" else "",
        **attributes(taken.toggle, ("name", "requires", "excludes")),
    )


def _patch(patch: Patch) -> PatchPreview:
    lines = [line for file in parse_diff(patch.diff) for hunk in file.hunks for line in hunk.lines]
    added, removed = (sum(line[0] == sign for line in lines) for sign in "+-")
    return from_attributes(PatchPreview, patch, added=added, removed=removed)


def _variant(plan: PlannedVariant, root: Path) -> VariantPreview:
    if plan.clash:
        return VariantPreview(plan.name, plan.role, "pruned", plan.clash.reason)
    return VariantPreview(plan.name, plan.role, "built" if _is_built(plan, root) else "to build")


def _is_built(plan: PlannedVariant, root: Path) -> bool:
    if plan.inputs is None:
        return False
    build = Build.objects.filter(inputs=plan.inputs.digest, state=BuildState.BUILT).first()
    return build is not None and is_kept(build.artifact_key, root)


def _purposes(prepared: Prepared, live: list[PlannedVariant], most: int) -> Iterator[tuple[int, str, int]]:
    """Yield for each case each purpose with the number of boots."""
    judged = sum(plan.role in {Role.BASE, Role.CANDIDATE} for plan in live)
    seen = sum(plan.role in PROFILED_ROLES for plan in live)
    spec = prepared.spec
    for index, workload in enumerate(prepared.workloads):
        yield index, Purpose.MEASURED, len(live) * most
        if spec.profile_of(index):
            yield index, Purpose.PROFILED, seen * spec.measure.profile_boots
        if spec.measure.verify and workload.verifies:
            yield index, Purpose.VERIFIED, judged


def _boots(prepared: Prepared, live: list[PlannedVariant], most: int) -> int:
    return sum(count for _, _, count in _purposes(prepared, live, most))


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _build_seconds(live: list[PlannedVariant], builds: set[str]) -> _Span:
    """Return the span of all builds, one after the other."""
    took, total, is_shipped = build_durations(), 0.0, False
    for digest in builds:
        plan = next(plan for plan in live if plan.inputs and plan.inputs.digest == digest)
        alone = plan.role in {Role.BASE, Role.PLACEBO}
        seconds = took.base_build if alone else took.variant_build
        if seconds is None:
            seconds, is_shipped = shipped.build_seconds(alone=alone), True
        total += seconds
    return _Span(total, is_shipped)


def _boot_seconds(prepared: Prepared, live: list[PlannedVariant], most: int) -> _Span:
    """Return the span of all boots, one after the other; None seconds where one of them has neither history nor figure."""
    spec, total, is_shipped = prepared.spec, 0.0, False
    for index, purpose, count in _purposes(prepared, live, most):
        if not count:
            continue
        case = spec.cases[index]
        clock = spec.measure.clock
        seconds = boot_duration(case.workload, case.preset, prepared.target, clock, purpose)
        if seconds is None:
            seconds, is_shipped = shipped.boot_seconds(prepared.target, clock), True
        if seconds is None:
            return _Span(None)
        total += count * seconds
    return _Span(total, is_shipped)


def _detectable(prepared: Prepared, arms: int, boots: int) -> Iterator[Detectable]:
    """Yield one for each primary metric by the wall clock; by instructions every change above the floor is seen.

    By the contention clock, whose metrics are one at several numbers of CPUs, it is the last of each case.
    """
    spec = prepared.spec
    clock = spec.measure.clock
    if clock == "instructions":
        return
    for case, workload in zip(spec.cases, prepared.workloads, strict=True):
        names = _primary(workload, case.preset, dict(case.params), clock)
        if clock == "contention":
            yield Detectable(f"{case.workload} ({case.preset})", names[-1], None, 0, why=NOT_ESTIMATED)
            continue
        for name in names:
            seen = deviation(case.workload, case.preset, prepared.target, name)
            spread, experiments = seen or (shipped.boot_deviation(case.workload, prepared.target), 0)
            change = None if spread is None else detectable(spread, boots, arms)
            estimate = SHIPPED if seen is None and change is not None else ""
            why = NO_HISTORY if change is None else ""
            yield Detectable(f"{case.workload} ({case.preset})", name, change, experiments, estimate, why)


def _primary(workload: Workload, preset: str, params: dict[str, object], clock: Clock) -> list[str]:
    metrics = workload.metrics_of(workload.resolve(preset, params, clock), clock)
    return [metric.name for metric in metrics.values() if metric.primary]
