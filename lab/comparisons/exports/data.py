# SPDX-License-Identifier: GPL-2.0-or-later
"""A stored comparison as plain data in the shape of lab/comparisons/exports/shape.py."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime

from django.conf import settings

from lab.comparisons.distribution import CaseSpread, case_spreads
from lab.comparisons.exit_code import exit_code
from lab.comparisons.exports.shape import (
    FORMAT,
    BaseData,
    CaseData,
    CellData,
    ComparisonData,
    EnvironmentData,
    ExperimentData,
    FailureData,
    MetricData,
    ProofData,
    SpreadData,
    SwitchData,
    VariantData,
)
from lab.comparisons.page import CaseComparison, ComparisonCell, MetricRow, Representative, comparison_page
from lab.experiments.environment import lab_version, surroundings
from lab.experiments.page import get_experiment
from lab.experiments.shown_description import measure_of
from lab.figures import medians_ratio
from lab.models import Experiment, Run
from lab.models.states import Purpose, Role, RunState


def comparison_data(experiment_id: int, *, link: str = "") -> ComparisonData:
    """Return all that the comparison page says, as plain data.

    link: the lab's own address, `https://lab.example`, for the permalink; a path alone without it. Raises UnknownRow.
    """
    row = get_experiment(experiment_id)
    page = comparison_page(experiment_id)
    spreads = case_spreads(experiment_id)
    roles = dict(row.variants.values_list("name", "role"))
    return ComparisonData(
        format=FORMAT,
        experiment=_experiment(row),
        base=_base(row),
        environment=_environment(row),
        switches=[
            SwitchData(
                name=switch.name, kind=switch.kind, title=switch.title, author=switch.author, link=switch.link
            )
            for switch in row.switches.all()
        ],
        variants=_variants(row),
        cases=[_case(row, one, spreads.get(one.case.id), roles) for one in page.cases],
        verdicts=page.verdicts,
        exit_code=exit_code(page),
        permalink=f"{link.rstrip('/')}/experiments/{experiment_id}/comparison/",
    )


def _experiment(row: Experiment) -> ExperimentData:
    measure = measure_of(row.spec)
    return ExperimentData(
        id=row.pk,
        name=row.name,
        state=row.state,
        problem=row.problem,
        clock=row.clock,
        design=row.design,
        boots=row.boots,
        sequential=row.sequential,
        iterations=row.iterations,
        warmup=row.warmup,
        placebo=measure.placebo,
        profile=measure.profile,
        profile_boots=measure.profile_boots,
        off_cpu=measure.off_cpu,
        verify=row.verify,
        seed=row.seed,
        submitted=_moment(row.created_at),
        finished=_moment(row.finished_at),
    )


def _moment(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else ""


def _base(row: Experiment) -> BaseData:
    base = row.variants.filter(role=Role.BASE).first()
    return BaseData(
        name=base.name if base else "base",
        tree=row.tree.name,
        location=public_location(row),
        revision=row.base_name,
        commit=row.base_commit,
        tree_id=row.base_tree_id,
    )


def public_location(row: Experiment) -> str:
    """The URL of a git tree, as others may see it: paths of this machine and what carries a password stay here."""
    location = row.tree.location
    known = row.tree.kind == "git" and location.startswith(("https://", "http://", "git://"))
    return location if known and "@" not in location else ""


def _environment(row: Experiment) -> EnvironmentData:
    found = surroundings(row, root=settings.HOME)
    target = row.target
    return EnvironmentData(
        target=target.name,
        driver=target.driver,
        vcpus=1 if row.clock == "instructions" else target.vcpus,
        memory_mib=target.memory_mib,
        lab=lab_version(),
        cpu=found.cpu,
        accelerator=found.accelerator,
        host_cpu=found.host_cpu,
        host_cpus=found.host_cpus,
        host_kernel=found.host_kernel,
        emulator=found.emulator,
        cmdline=found.cmdline,
        config_sha256=found.config_sha256,
        toolchain=found.toolchain,
    )


def _variants(row: Experiment) -> list[VariantData]:
    return [
        VariantData(
            id=one.pk,
            name=one.name,
            role=one.role,
            switches=list(one.switches),
            state=one.state,
            problem=one.problem,
            blame=one.build.blame if one.build else "submission" if one.problem else "",
            note=one.note,
            release=one.build.release if one.build else "",
            code_hash=one.build.code_hash if one.build else "",
        )
        for one in row.variants.select_related("build")
    ]


def _case(row: Experiment, one: CaseComparison, spread: CaseSpread | None, roles: dict[str, str]) -> CaseData:
    spreads = {metric.metric: metric for metric in spread.metrics} if spread else {}
    case = one.case
    return CaseData(
        id=case.id,
        workload=case.workload,
        preset=case.preset,
        title=case.title,
        params=case.params,
        metrics=[
            _metric(
                metric,
                [
                    SpreadData(
                        variant=own.variant,
                        boots=own.counted,
                        median=own.middle.value,
                        low=own.middle.low,
                        high=own.middle.high,
                        level=own.middle.level,
                    )
                    for own in (spreads[metric.metric].variants if metric.metric in spreads else ())
                ],
                roles,
            )
            for metric in one.metrics
        ],
        lines=[
            {"run": boot.run_id, "variant": boot.variant, "line": boot.line}
            for boot in one.representatives
            if boot.line
        ],
        proofs=[_proof(boot) for boot in one.verified if "verified" in boot.extras],
        failures=_failures(row, case.id),
        invalid=[
            {"run": boot.run_id, "variant": boot.variant, "block": boot.block, "reasons": list(boot.reasons)}
            for boot in one.invalid
        ],
    )


def _proof(boot: Representative) -> ProofData:
    holds = boot.extras.get("verified_holds")
    return ProofData(
        run=boot.run_id,
        variant=boot.variant,
        statement=str(boot.extras["verified"]),
        holds=holds if isinstance(holds, bool) else None,
    )


def _metric(row: MetricRow, spreads: list[SpreadData], roles: dict[str, str]) -> MetricData:
    return MetricData(
        name=row.metric,
        unit=row.unit,
        better=row.better,
        primary=row.primary,
        base_median=row.base_median,
        alarms={"called": row.alarms.called, "compared": row.alarms.compared},
        spreads=spreads,
        cells=[_cell(cell, roles.get(cell.variant, "")) for cell in row.cells if cell],
        effects=[
            {
                "switches": list(effect.switches),
                "ratio": effect.ratio,
                "low": effect.low,
                "high": effect.high,
                "q": effect.q_value,
                "reason": effect.reason,
            }
            for effect in row.effects
        ],
    )


def _cell(cell: ComparisonCell, role: str) -> CellData:
    return CellData(
        id=cell.id,
        variant=cell.variant,
        role=role,
        base_median=_finite(cell.base_median),
        median=_finite(cell.median),
        medians_ratio=medians_ratio(cell.base_median, cell.median),
        ratio=_finite(cell.ratio),
        low=_finite(cell.low),
        high=_finite(cell.high),
        verdict=cell.verdict,
        boots=cell.boots,
        boots_needed=cell.boots_needed,
        reason=cell.reason,
        method=cell.method,
        margin=cell.margin,
        floor=cell.floor,
        p=_finite(cell.p_value),
        q=_finite(cell.q_value),
        effect=_finite(cell.effect),
        partial=cell.partial,
        notes=list(cell.notes),
    )


def _finite(value: float | None) -> float | None:
    """JSON knows neither infinity nor NaN; neither is a number to report."""
    return value if value is not None and math.isfinite(value) else None


def _failures(row: Experiment, case_id: int) -> list[FailureData]:
    """Measured boots that failed, those that ended alike counted together."""
    runs = Run.objects.filter(
        experiment=row, case=case_id, purpose=Purpose.MEASURED, state=RunState.FAILED
    ).order_by("position")
    told = Counter(runs.values_list("variant__name", "outcome", "blame", "problem"))
    return [
        FailureData(variant=variant, outcome=outcome, blame=blame, problem=problem, boots=boots)
        for (variant, outcome, blame, problem), boots in told.items()
    ]
