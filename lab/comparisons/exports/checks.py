# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison as a list of checks that passed or failed: the content of reports for pipelines.

A primary metric's regression fails; improvement and unchanged pass; inconclusive is skipped with its reason: nothing
was shown either way, and counting that as success or failure claims more than the data shows. Metrics
that are not primary never fail, since the exit code does not count them: their regressions are skipped, by name.
Kernels that do not build, boot or survive fail, unless the lab is to blame: then it is an error. Controls are no
candidates and have no checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lab.comparisons.exports.figures import is_fine, own_medians, sides, told_change
from lab.comparisons.shape import CaseData, CellData, ComparisonData, MetricData, VariantData
from lab.figures import counted
from lab.one_line import plain
from lab.statistics.verdict_words import shown_verdict

Outcome = Literal["passed", "failed", "error", "skipped"]
KERNELS = "kernels"


@dataclass(frozen=True, slots=True)
class ReportCheck:
    """One thing that held or did not. group: the case it belongs to, or KERNELS. message: one line, why."""

    group: str
    name: str
    outcome: Outcome
    message: str
    figures: str = ""


def checks(data: ComparisonData) -> list[ReportCheck]:
    """Return all checks: of the experiment's end, of its kernels, then case by case."""
    fine = is_fine(data)
    # The second arm of the base has the base's own kernel.
    report = [*_ending(data), *(_kernel(variant) for variant in data["variants"] if variant["role"] != "a/a")]
    roles = {variant["name"]: variant["role"] for variant in data["variants"]}
    for case in data["cases"]:
        report += _boots(case, roles)
        report += _cells(case, fine=fine)
    return report


def _ending(data: ComparisonData) -> Iterator[ReportCheck]:
    experiment = data["experiment"]
    if experiment["state"] == "failed":
        yield ReportCheck(
            KERNELS, "experiment", "error", plain(experiment["problem"] or "the experiment failed")
        )
    elif experiment["state"] != "done":
        outcome: Outcome = "error" if experiment["state"] == "cancelled" else "skipped"
        yield ReportCheck(KERNELS, "experiment", outcome, f"the experiment is {experiment['state']}")


def _kernel(variant: VariantData) -> ReportCheck:
    name = f"{plain(variant['name'])}: kernel"
    if variant["state"] == "ready":
        return ReportCheck(KERNELS, name, "passed", plain(variant["note"]), plain(variant["release"]))
    if variant["state"] == "failed":
        outcome: Outcome = "error" if variant["blame"] == "lab" else "failed"
        return ReportCheck(KERNELS, name, outcome, plain(f"not built: {variant['problem']}"))
    return ReportCheck(
        KERNELS, name, "skipped", plain(variant["problem"] or f"the variant is {variant['state']}")
    )


def _boots(case: CaseData, roles: dict[str, str]) -> Iterator[ReportCheck]:
    for failure in case["failures"]:
        # A base that panics says nothing about the patches.
        ours = failure["blame"] == "lab" or roles.get(failure["variant"]) != "candidate"
        message = plain(
            f"{counted(failure['boots'], 'boot')} ended as {failure['outcome']}: {failure['problem']}"
        )
        name = f"{plain(failure['variant'])}: boots"
        yield ReportCheck(plain(case["title"]), name, "error" if ours else "failed", message)


def _cells(case: CaseData, *, fine: bool) -> Iterator[ReportCheck]:
    for metric in case["metrics"]:
        for cell in metric["cells"]:
            if cell["role"] == "candidate":
                yield _cell(case, metric, cell, fine=fine)


def _cell(case: CaseData, metric: MetricData, cell: CellData, *, fine: bool) -> ReportCheck:
    change = told_change(cell, fine=fine)
    name = f"{plain(cell['variant'])}: {plain(metric['name'])}"
    note = own_medians(cell, fine=fine)
    figures = f"{sides(cell, metric)}, {change}{f' ({note})' if note else ''}, {cell['boots']} boots"
    outcome: Outcome = shown_verdict(cell["verdict"]).outcome
    message = f"{cell['verdict']}: {change}"
    if outcome == "skipped":
        message = f"{cell['verdict']}: {cell['reason'] or change}"
    elif outcome == "failed" and not metric["primary"]:
        outcome, message = "skipped", f"{cell['verdict']} of a secondary metric: {change}"
    return ReportCheck(plain(case["title"]), name, outcome, plain(message), plain(figures))
