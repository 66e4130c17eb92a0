# SPDX-License-Identifier: GPL-2.0-or-later
"""Properties of a conclusion that hold whatever the facts are."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.comparisons.conclusion.conclude import PARAGRAPH, ExperimentConclusion, conclude
from lab.comparisons.conclusion.facts import (
    CaseFacts,
    Facts,
    FailedBoots,
    Kernel,
    Locks,
    MetricFact,
    Together,
)
from lab.comparisons.conclusion.headline import HEADLINE
from lab.comparisons.conclusion.next_step import minutes
from lab.figures import change, percent
from lab.statistics.verdict_words import CHANGES

NAMES = ("p", "q", "p+q", "z" * 200)
VERDICTS = (*CHANGES, "unchanged", "inconclusive")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


@st.composite
def points(draw: st.DrawFn, *, clock: str) -> tuple[MetricFact, ...]:
    made = []
    cpus = draw(st.lists(st.sampled_from((1, 8, 64)), min_size=1, unique=True))
    places = (
        [("cycles", count) for count in cpus] if clock == "contention" else [("ns", None), ("tail", None)]
    )
    if clock == "contention":
        places = [("cycles", count) for count in cpus]
    for metric, count in places:
        ratio = draw(st.none() | st.floats(1e-9, 1e9))
        wide = draw(st.floats(1, 3))
        low, high = (None, None) if ratio is None else (ratio / wide, ratio * wide)
        verdict = draw(st.sampled_from(VERDICTS))
        needed = draw(st.none() | st.integers(2, 100_000)) if verdict == "inconclusive" else None
        made.append(
            MetricFact(
                metric,
                verdict,
                ratio,
                low,
                high,
                10,
                needed,
                draw(st.sampled_from((0.0, 0.02, 0.002))),
                count,
            )
        )
    return tuple(made)


@st.composite
def any_facts(draw: st.DrawFn) -> Facts:
    clock = draw(st.sampled_from(("wall", "instructions", "contention")))
    states = st.sampled_from(("ready", "ready", "failed", "pruned", "planned"))
    kernels = tuple(
        Kernel(name, tuple(name.split("+")), draw(states), draw(st.booleans()), draw(st.integers(0, 9)) == 0)
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    )
    cases = []
    for number in range(draw(st.integers(0, 3))):
        measured = {kernel.name: draw(points(clock=clock)) for kernel in kernels if draw(st.integers(0, 4))}
        control = draw(st.just(()) | points(clock=clock))
        failed = tuple(
            FailedBoots(
                kernel.name, draw(st.integers(1, 9)), draw(st.sampled_from(("panicked", "lost", "x")))
            )
            for kernel in kernels
            if not draw(st.integers(0, 3))
        )
        together = (Together("p", "q"),) if draw(st.booleans()) else ()
        base = draw(st.none() | st.builds(FailedBoots, st.just("base"), st.integers(1, 9), st.just("hung")))
        title = draw(st.sampled_from(("walk", "y" * 90)))
        points_ = {} if base else measured
        cases.append(CaseFacts(number, title, points_, control, failed, together, base))
    return Facts(
        draw(st.sampled_from(("queued", "running", "done", "failed", "cancelled"))),
        clock,
        tuple(cases),
        kernels,
        base=Kernel("base", state=draw(states)),
        boots_asked=draw(st.integers(2, 500)),
        boots_open=draw(st.integers(0, 5000)),
        boots_lost=draw(st.integers(0, 5000)),
        arms=2 + len(kernels),
        boot_seconds=draw(st.none() | st.floats(0.1, 3600)),
        locks=draw(st.none() | st.builds(Locks, st.just(("down_read",)), st.none() | st.floats(0, 1))),
    )


def every_text(conclusion: ExperimentConclusion) -> list[str]:
    cases = [case["text"] for case in conclusion.cases]
    return [
        conclusion.headline,
        conclusion.text,
        conclusion.control,
        conclusion.lacking,
        conclusion.next.text,
        *cases,
    ]


def all_points(facts: Facts) -> list[MetricFact]:
    return [
        point for case in facts.cases for group in (*case.points.values(), case.control) for point in group
    ]


def is_one_short_paragraph_that_begins_with_its_headline(conclusion: ExperimentConclusion) -> None:
    assert conclusion.text.startswith(conclusion.headline)
    assert 0 < len(conclusion.headline) <= HEADLINE
    assert len(conclusion.text) <= PARAGRAPH
    assert conclusion.next.text in conclusion.text
    for text in every_text(conclusion):
        assert "\n" not in text
        assert "  " not in text
        assert text == text.strip()


def claims_no_direction_without_a_verdict_that_has_it(facts: Facts, conclusion: ExperimentConclusion) -> None:
    candidates = [point for case in facts.cases for points in case.points.values() for point in points]
    verdicts = {candidate.verdict for candidate in candidates}
    for text in every_text(conclusion):
        text = text.replace("may be better or worse", "")
        for word, verdict in (("worse", "regression"), ("better", "improvement")):
            assert verdict in verdicts or word not in text
            assert verdict in verdicts or verdict not in text.lower()


def calls_each_kernel_and_case_only_by_its_own_verdicts(conclusion: ExperimentConclusion) -> None:
    for outcome in conclusion.outcomes:
        own = {point.verdict for point in outcome.case.points.get(outcome.kernel.name, ())}
        assert outcome.word not in CHANGES or outcome.word in own
        assert outcome.word != "mixed" or set(CHANGES) <= own
        assert outcome.word != "unchanged" or own == {"unchanged"}


def has_no_number_but_those_of_its_facts(facts: Facts, conclusion: ExperimentConclusion) -> None:
    known: set[str] = set()
    for point in all_points(facts):
        known |= {
            change(ratio, fine=facts.fine).rstrip("%")
            for ratio in (point.ratio, point.low, point.high)
            if ratio
        }
        known |= {f"{100 * point.margin:.3g}", f"{point.boots_needed or 0:,}", str(point.cpus)}
        cost = minutes(facts, point.boots_needed or 0) or 0
        known |= {f"{cost:,}", f"{cost / 60:.1f}"}
    if facts.locks and facts.locks.share is not None:
        known.add(percent(100 * facts.locks.share).lstrip("+"))
    counts = [facts.boots_asked, facts.boots_open, facts.boots_lost]
    counts += [failure.boots for case in facts.cases for failure in (*case.failed, case.base) if failure]
    counts += range(max(len(conclusion.outcomes), len(facts.kernels)) + 1)
    known |= {f"{count:,}" for count in counts}
    for text in every_text(conclusion):
        text = re.sub(r"\(?([+-]\S+) to (\S+)\)", r" \1 \2 ", text)
        for number in _NUMBER.findall(text):
            assert number.rstrip(",") in known or number.rstrip(",").lstrip("+-") in known, (number, text)


def asks_for_boots_only_with_a_number_that_is_needed(facts: Facts, conclusion: ExperimentConclusion) -> None:
    step = conclusion.next
    needed = {point.boots_needed for point in all_points(facts)}
    assert (step.action == "boots") == (step.boots is not None)
    assert step.boots is None or step.boots in needed


@settings(max_examples=200)
@given(any_facts())
def test_any_conclusion_keeps_to_its_facts_and_its_shape(facts: Facts) -> None:
    """All properties of one set of facts: drawing them takes longer than checking."""
    conclusion = conclude(facts)
    is_one_short_paragraph_that_begins_with_its_headline(conclusion)
    claims_no_direction_without_a_verdict_that_has_it(facts, conclusion)
    calls_each_kernel_and_case_only_by_its_own_verdicts(conclusion)
    has_no_number_but_those_of_its_facts(facts, conclusion)
    asks_for_boots_only_with_a_number_that_is_needed(facts, conclusion)
