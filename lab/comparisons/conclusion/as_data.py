# SPDX-License-Identifier: GPL-2.0-or-later
"""A conclusion as plain data, as the API, `labctl` and every export have it."""

from lab.comparisons.conclusion.conclude import conclude
from lab.comparisons.conclusion.facts import Facts, MetricFact
from lab.comparisons.conclusion.outcomes import CaseOutcome
from lab.comparisons.shape import ConclusionData, NextStepData, OutcomeData
from lab.from_attributes import from_attributes


def as_data(facts: Facts) -> ConclusionData:
    """Return the conclusion of an experiment as plain data, with a paragraph for each of several patches."""
    found = conclude(facts)
    switches = sorted(
        {switch for kernel in facts.kernels if kernel.state != "pruned" for switch in kernel.switches}
    )
    patches = switches if len(switches) > 1 else []
    return from_attributes(
        ConclusionData,
        found,
        outcomes=[_outcome(outcome) for outcome in found.outcomes],
        next=from_attributes(NextStepData, found.next),
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
