# SPDX-License-Identifier: GPL-2.0-or-later
"""A conclusion as plain data, as the API, `labctl` and every export have it."""

from lab.comparisons.conclusion.conclude import conclude
from lab.comparisons.conclusion.facts import Facts
from lab.comparisons.conclusion.outcomes import CaseOutcome
from lab.comparisons.shape import CaseConclusionData, ConclusionData, NextStepData, OutcomeData


def as_data(facts: Facts) -> ConclusionData:
    """Return the conclusion of an experiment as plain data, with a paragraph for each of several patches."""
    found = conclude(facts)
    switches = sorted(
        {switch for kernel in facts.kernels if kernel.state != "pruned" for switch in kernel.switches}
    )
    patches = switches if len(switches) > 1 else []
    return ConclusionData(
        headline=found.headline,
        text=found.text,
        control=found.sure,
        lacking=found.lacking,
        cases=[CaseConclusionData(case=one.case, title=one.title, text=one.text) for one in found.cases],
        outcomes=[_outcome(one) for one in found.outcomes],
        next=NextStepData(
            action=found.next.action, text=found.next.text, boots=found.next.boots, minutes=found.next.minutes
        ),
        patches={switch: conclude(facts.about(switch)).text for switch in patches},
    )


def _outcome(one: CaseOutcome) -> OutcomeData:
    point = one.decisive
    return OutcomeData(
        case=one.case.id,
        variant=one.kernel.name,
        outcome=one.word,
        metric=point.name if point else "",
        cpus=point.cpus if point else None,
        ratio=point.ratio if point else None,
        low=point.low if point else None,
        high=point.high if point else None,
    )
