# SPDX-License-Identifier: GPL-2.0-or-later
"""The outcome of each kernel in each case: one word, from the verdicts of its primary metrics and from what failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lab.comparisons.conclusion.facts import CaseFacts, Facts, FailedBoots, Kernel, MetricFact

Word = Literal[
    "regression",
    "mixed",
    "in-doubt",
    "improvement",
    "inconclusive",
    "no-base",
    "not-booted",
    "unchanged",
    "same-kernel",
    "not-built",
    "not-measured",
]
# The most interesting ones first: the order of fragments where a paragraph has no room for all.
WORDS: tuple[Word, ...] = get_args(Word)
TRUSTED = frozenset({"regression", "improvement", "mixed"})
"""Outcomes with a direction."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of one kernel in one case. points: those that are shown, the deciding one first."""

    kernel: Kernel
    case: CaseFacts
    word: Word
    points: tuple[MetricFact, ...] = ()
    failed: FailedBoots | None = None

    @property
    def decisive(self) -> MetricFact | None:
        """Return the point that decides."""
        return self.points[0] if self.points else None


def outcomes(facts: Facts) -> tuple[CaseOutcome, ...]:
    """Return the outcome of every candidate that was not pruned, in every case."""
    return tuple(
        _outcome(kernel, case) for case in facts.cases for kernel in facts.kernels if kernel.state != "pruned"
    )


def control_of(case: CaseFacts, point: MetricFact) -> MetricFact | None:
    """Return the control's point of the same metric."""
    return next(
        (control for control in case.control if (control.name, control.cpus) == (point.name, point.cpus)),
        None,
    )


def in_doubt(case: CaseFacts, point: MetricFact) -> bool:
    """Return whether a failed control explains a called point: the kernel's interval reaches into the control's difference."""
    control = control_of(case, point)
    return control is not None and control.called and point.least <= control.size


def _outcome(kernel: Kernel, case: CaseFacts) -> CaseOutcome:
    points = case.points.get(kernel.name, ())
    failed = next((boots for boots in case.failed if boots.kernel == kernel.name), None)
    if kernel.state == "failed":
        return CaseOutcome(kernel, case, "not-built")
    if not points and case.base is not None:
        return CaseOutcome(kernel, case, "no-base", failed=failed)
    if not points:
        return CaseOutcome(kernel, case, "not-booted" if failed else "not-measured", failed=failed)
    if kernel.same_code:
        return CaseOutcome(kernel, case, "same-kernel")
    called = [point for point in points if point.called]
    trusted = [point for point in called if not in_doubt(case, point)]
    if trusted:
        words = {point.verdict for point in trusted}
        word: Word = "mixed" if len(words) > 1 else "regression" if "regression" in words else "improvement"
        return CaseOutcome(kernel, case, word, _shown(points, trusted), failed)
    if called:
        return CaseOutcome(kernel, case, "in-doubt", _shown(called, called), failed)
    word = "unchanged" if all(point.verdict == "unchanged" for point in points) else "inconclusive"
    undecided = [point for point in points if point.verdict == word]
    return CaseOutcome(kernel, case, word, _shown(points, undecided), failed)


def _shown(points: Sequence[MetricFact], deciding: Sequence[MetricFact]) -> tuple[MetricFact, ...]:
    """Return the points to show, the deciding one first.

    Of a scaling curve: the deciding point on the most CPUs, one with the opposite verdict, and the point on the fewest CPUs.
    """
    if points[0].cpus is None:
        return tuple(deciding)
    curve = sorted(deciding, key=lambda point: -(point.cpus or 0))
    first = curve[0]
    other = [point for point in curve if point.verdict != first.verdict]
    fewest = min(points, key=lambda point: point.cpus or 0)
    return tuple(dict.fromkeys([first, *other[-1:], fewest]))
