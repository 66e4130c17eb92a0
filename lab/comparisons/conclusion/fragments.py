# SPDX-License-Identifier: GPL-2.0-or-later
"""The words for one kernel in one case, and for lists of names and numbers. Numbers are rounded as in every table."""

from collections.abc import Iterable, Sequence

from lab.comparisons.conclusion.facts import CaseFacts, FailedBoots, MetricFact
from lab.comparisons.conclusion.outcomes import TRUSTED, CaseOutcome, in_doubt
from lab.figures import change, counted, percent
from lab.one_line import plain

DIRECTION = {"regression": "worse", "improvement": "better"}
_ENDS = {
    "boot-failed": "did not come up",
    "panicked": "panicked",
    "hung": "hung",
    "workload-failed": "failed in the workload",
    "wrong-kernel": "started another kernel",
    "lost": "got lost",
}
# A kernel's name joins those of its switches and may take hundreds of characters.
_NAME = 36


def name(text: str) -> str:
    """Return a name on one line, its middle left out where it is long."""
    line = plain(text)
    half = (_NAME - 2) // 2
    return line if len(line) <= _NAME else f"{line[:half]}..{line[-half:]}"


def listed(words: Iterable[str], many: str) -> str:
    """Return one or two words joined by "and"; for more words, their number: "3 kernels". many: the plural noun."""
    each = list(dict.fromkeys(words))
    return " and ".join(each) if len(each) <= 2 else f"{len(each)} {many}"


def at_cpus(point: MetricFact) -> str:
    """Return the number of CPUs a point is about: " at 32 CPUs", nothing where it is about none."""
    return f" at {counted(point.cpus, 'CPU')}" if point.cpus is not None else ""


def shift(point: MetricFact, *, fine: bool) -> str:
    """Return a change and its interval: -45.1% (-46.1 to -44.1); "no ratio" where there is none."""
    if point.ratio is None:
        return "no ratio"
    if point.low is None or point.high is None:
        return change(point.ratio, fine=fine)
    low, high = (percent(100 * (end - 1), fine=fine) for end in (point.low, point.high))
    return f"{change(point.ratio, fine=fine)} ({low} to {high})"


def margin(points: Sequence[MetricFact]) -> str:
    """Return the largest margin of some points: 2%."""
    return f"{100 * max(point.margin for point in points):.3g}%"


def metric_names(outcomes: Sequence[CaseOutcome]) -> list[str]:
    """Return the metrics that some outcomes are about."""
    return list(dict.fromkeys(name(point.name) for outcome in outcomes for point in outcome.points))


def fragment(outcome: CaseOutcome, *, named: bool, alike: bool, fine: bool) -> str:
    """Return what one kernel does in one case.

    named: the metric must be named, since several metrics decide the case. alike: all kernels beside it have the same outcome.
    """
    kernel = name(outcome.kernel.name)
    if outcome.failed is not None and outcome.word == "not-booted":
        return f"{kernel} was not measured: {ended(outcome.failed)}"
    words = {"not-built": "was not built", "not-measured": "was not measured"}
    if outcome.word in words:
        return f"{kernel} {words[outcome.word]}"
    if outcome.word == "same-kernel":
        return f"{kernel} runs the base's own code"
    figures = ", ".join(_point(outcome, point, named=named, fine=fine) for point in outcome.points)
    lost = f", but {ended(outcome.failed)}" if outcome.failed else ""
    if outcome.word == "unchanged":
        return f"{kernel} is equal within {margin(outcome.points)}, {figures}{lost}"
    if outcome.word == "inconclusive" and not alike:
        return f"{kernel} is undecided, {figures}{lost}"
    return f"{kernel} is {figures}{lost}" if outcome.word in TRUSTED else f"{kernel} {figures}{lost}"


def baseless(outcomes: Sequence[CaseOutcome]) -> str:
    """Return how boots ended in a case whose base finished no boot: 3 boots of the base panicked."""
    base = outcomes[0].case.base
    ends = [ended(base, "the base")] if base else []
    ends += [ended(outcome.failed, name(outcome.kernel.name)) for outcome in outcomes if outcome.failed]
    return "; ".join(
        ends
        + [
            f"{name(outcome.kernel.name)} was not built"
            for outcome in outcomes
            if outcome.word == "not-built"
        ]
    )


def ended(failed: FailedBoots, kernel: str = "") -> str:
    """Return how boots ended: 3 boots panicked. kernel: its name, where it must be named."""
    whose = ", which is the lab's fault" if failed.lab_fault else ""
    boots = f"{counted(failed.boots, 'boot')}{f' of {kernel}' if kernel else ''}"
    return f"{boots} {_ENDS.get(failed.outcome, 'failed')}{whose}"


def _point(outcome: CaseOutcome, point: MetricFact, *, named: bool, fine: bool) -> str:
    """Return one point: "better at 32 CPUs, -45.1% (-46.1 to -44.1)"; a direction only where one was called."""
    where = f"{f' in {name(point.name)}' if named else ''}{at_cpus(point)}"
    numbers = shift(point, fine=fine)
    if point.called and in_doubt(outcome.case, point):
        return f"{where} {numbers}, not clearly more than the control".strip()
    if point.called:
        return f"{DIRECTION[point.verdict]}{where}, {numbers}"
    if outcome.word in {"inconclusive", "unchanged"}:
        return f"{where} {numbers}".strip()
    said = f"equal within {margin([point])}" if point.verdict == "unchanged" else "undecided"
    return f"{said}{where}"


def case_name(case: CaseFacts) -> str:
    """Return the name of a case, short enough for a sentence."""
    return name(case.name)
