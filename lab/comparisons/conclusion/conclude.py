# SPDX-License-Identifier: GPL-2.0-or-later
"""Conclude an experiment in words: what each kernel does to each case, how sure that is and why, and what to do next.

A pure function of Facts. Every page, command, mail and export shows what it returns and has no summary of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lab.comparisons.conclusion.facts import Facts, MetricFact
from lab.comparisons.conclusion.fragments import (
    at_cpus,
    baseless,
    case_name,
    fragment,
    metric_names,
    shift,
)
from lab.comparisons.conclusion.headline import headline
from lab.comparisons.conclusion.next_step import NextStep, next_step
from lab.comparisons.conclusion.outcomes import TRUSTED, WORDS, CaseOutcome, control_of, outcomes
from lab.comparisons.shape import CaseConclusionData, ConclusionData, NextStepData, OutcomeData
from lab.figures import change, counted
from lab.from_attributes import from_attributes

PARAGRAPH = 600
# Room for the words that say how many results the paragraph leaves out.
_MORE = 40


@dataclass(frozen=True, slots=True)
class ExperimentConclusion:
    """The conclusion of one experiment.

    headline: the answer, at most 140 characters. text: one paragraph of at most 600 that begins with it.
    control: the control's own difference, which says how far to trust the answer; lacking: missing boots; each may be "".
    cases: for each a sentence on the effect of every kernel.
    """

    headline: str
    text: str
    control: str
    lacking: str
    cases: list[CaseConclusionData]
    outcomes: tuple[CaseOutcome, ...]
    next: NextStep


def conclude(facts: Facts) -> ExperimentConclusion:
    """Return the conclusion of an experiment."""
    case_outcomes = outcomes(facts)
    head, step = headline(facts, case_outcomes), next_step(facts, case_outcomes)
    control, lacking = _control(facts, case_outcomes), _lacking(facts)
    has_points = any(outcome.points for outcome in case_outcomes)
    cases = [
        CaseConclusionData(
            case=case.id,
            title=case.name,
            text=_sentence([outcome for outcome in case_outcomes if outcome.case is case], facts),
        )
        for case in facts.cases
        if has_points and facts.kernels
    ]
    several = has_points and (
        len(case_outcomes) > 1 or any(len(outcome.points) > 1 for outcome in case_outcomes)
    )
    shown = case_outcomes if several else _unsaid(head, case_outcomes, facts)
    text = _paragraph(facts, head, shown, [control, lacking], step.text)
    return ExperimentConclusion(head, text, control, lacking, cases, case_outcomes, step)


def _unsaid(head: str, case_outcomes: Sequence[CaseOutcome], facts: Facts) -> Sequence[CaseOutcome]:
    """Return the outcomes whose numbers the headline does not have."""
    points = [
        outcome
        for outcome in case_outcomes
        if outcome.points and shift(outcome.points[0], fine=facts.fine) not in head
    ]
    return points or [outcome for outcome in case_outcomes if outcome.word in {"no-base", "not-booted"}]


def _paragraph(
    facts: Facts, head: str, case_outcomes: Sequence[CaseOutcome], middle: Sequence[str], last: str
) -> str:
    """Return the headline, as many outcomes as fit, the sentences of `middle`, and the `last` one."""
    ends = " ".join(filter(None, [*middle, last]))
    room = PARAGRAPH - len(head) - len(ends) - 2
    shown: list[CaseOutcome] = []
    for outcome in sorted(case_outcomes, key=lambda outcome: WORDS.index(outcome.word)):
        taken = [other for other in case_outcomes if other in [*shown, outcome]]
        if len(_sentences(taken, facts)) > room - (_MORE if len(taken) < len(case_outcomes) else 0):
            break
        shown.append(outcome)
    said = _sentences([outcome for outcome in case_outcomes if outcome in shown], facts)
    left = len(case_outcomes) - len(shown)
    more = f"{counted(left, 'more result')} in the table." if left else ""
    return " ".join(filter(None, [head, said, more, ends]))


def _sentences(case_outcomes: Sequence[CaseOutcome], facts: Facts) -> str:
    return " ".join(
        _sentence(list(each), facts)
        for _, each in groupby(case_outcomes, key=lambda outcome: outcome.case.id)
    )


def _sentence(case_outcomes: Sequence[CaseOutcome], facts: Facts) -> str:
    """Return what kernels do to one case: "showgids (ns_per_open): p is worse, +5.1% (+4.2 to +6.0)."."""
    if not case_outcomes:
        return ""
    if case_outcomes[0].case.base is not None:
        return f"{case_name(case_outcomes[0].case)}: {baseless(case_outcomes)}."
    names = metric_names(case_outcomes)
    alike = len({outcome.word for outcome in case_outcomes}) == 1
    clauses = "; ".join(
        fragment(outcome, named=len(names) > 1, alike=alike, fine=facts.fine) for outcome in case_outcomes
    )
    where = f"{case_name(case_outcomes[0].case)}{f' ({names[0]})' if len(names) == 1 else ''}"
    return f"{where}: {clauses}."


def _control(facts: Facts, case_outcomes: Sequence[CaseOutcome]) -> str:
    """Return the control's own difference: the largest of the metrics that are shown."""
    pairs = list(_controls(case_outcomes))
    controls = list(dict.fromkeys(control for control, _ in pairs))
    if not facts.kernels:
        controls = [point for case in facts.cases for point in case.control if point.ratio is not None]
    if not controls:
        return ""
    control = max(controls, key=lambda point: (point.called, point.size))
    difference = f"differed by {shift(control, fine=facts.fine)}{at_cpus(control)}"
    if control.called:
        less = ", less than the change" if any(outcome.word in TRUSTED for outcome in case_outcomes) else ""
        return f"The control failed: the identical base kernel {difference}{less}."
    if control.ratio == 1 and facts.fine:
        return "The identical base kernel executed the same number of instructions."
    most = "at most " if len(controls) > 1 else ""
    undecided = [
        point.size for outcome in case_outcomes if outcome.word == "inconclusive" for point in outcome.points
    ]
    as_much = ", as much as these kernels" if undecided and control.size >= max(undecided) else ""
    difference = f"differed by {most}{change(control.ratio, fine=facts.fine)}{at_cpus(control)}"
    return f"The identical base kernel {difference}{as_much}."


def _controls(case_outcomes: Sequence[CaseOutcome]) -> Iterator[tuple[MetricFact, MetricFact]]:
    """Yield pairs of the control's point and a shown point, where the control has one."""
    for outcome in case_outcomes:
        for point in outcome.points:
            control = control_of(outcome.case, point)
            if control is not None and control.ratio is not None:
                yield control, point


def _lacking(facts: Facts) -> str:
    """Return a sentence with the number of boots that did not count; "" if all counted or more may come."""
    if facts.is_open or not facts.boots_lost:
        return ""
    was = "The experiment was cancelled; " if facts.state == "cancelled" else "Partial: "
    return f"{was}{counted(facts.boots_lost, 'boot')} did not count."


def as_data(facts: Facts) -> ConclusionData:
    """Return the conclusion of an experiment as plain data, with a paragraph for each of several patches."""
    conclusion = conclude(facts)
    switches = sorted(
        {switch for kernel in facts.kernels if kernel.state != "pruned" for switch in kernel.switches}
    )
    patches = switches if len(switches) > 1 else []
    return from_attributes(
        ConclusionData,
        conclusion,
        outcomes=[_outcome(outcome) for outcome in conclusion.outcomes],
        next=from_attributes(NextStepData, conclusion.next),
        patches={switch: conclude(facts.about(switch)).text for switch in patches},
    )


def _outcome(outcome: CaseOutcome) -> OutcomeData:
    point = outcome.decisive or MetricFact("", "", None)
    return from_attributes(
        OutcomeData,
        point,
        case=outcome.case.id,
        variant=outcome.kernel.name,
        outcome=outcome.word,
        metric=point.name,
    )
