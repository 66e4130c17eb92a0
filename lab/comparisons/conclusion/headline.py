# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of a conclusion: the answer, in at most HEADLINE characters."""

from collections.abc import Iterable, Sequence

from lab.comparisons.conclusion.facts import Facts, MetricFact
from lab.comparisons.conclusion.fragments import DIRECTION, at_cpus, case_name, listed, margin, name, shift
from lab.comparisons.conclusion.outcomes import TRUSTED, CaseOutcome, Word, in_doubt
from lab.figures import change

HEADLINE = 140
# Outcomes in which a switch shows no effect by itself.
_STILL = {"unchanged", "inconclusive", "same-kernel"}
# Outcomes without numbers of a kernel that was built.
_LACKING = {"no-base", "not-booted", "not-measured"}


def headline(facts: Facts, outcomes: Sequence[CaseOutcome]) -> str:
    """Return the answer: the effect of the kernels."""
    if not any(outcome.points or outcome.word == "same-kernel" for outcome in outcomes):
        return _without_numbers(facts, outcomes)
    said = _answer(facts, outcomes)
    said = f"So far: {said[0].lower()}{said[1:]}" if facts.is_open else said
    return _cut(said)


def _cut(said: str) -> str:
    """Return a headline of at most HEADLINE characters; none of its numbers is cut in two."""
    if len(said) <= HEADLINE:
        return said
    words = said[: HEADLINE - 2].split(" ")[:-1]
    while words and any(sign.isdigit() or sign == "(" for sign in words[-1]):
        words.pop()
    return f"{' '.join(words).rstrip(',;:.')}..."


def _without_numbers(facts: Facts, outcomes: Sequence[CaseOutcome]) -> str:
    """Return the headline where there was nothing to compare."""
    if facts.base.state == "failed":
        return _unjudged(facts, "No answer: the base kernel was not built")
    if not facts.is_open and facts.cases and all(case.base for case in facts.cases):
        return _unjudged(facts, "No answer: the base kernel did not finish a boot")
    if not facts.kernels:
        still = " yet" if facts.is_open and not any(case.control for case in facts.cases) else ""
        return f"One kernel{still and ', not measured yet'}: there is no patch to compare with it."
    for word, said in (("not-built", "not built"), ("not-booted", "built, but did not finish a boot")):
        failed = [outcome for outcome in outcomes if outcome.word == word]
        if failed and len(failed) == len(outcomes):
            who = [name(outcome.kernel.name) for outcome in failed]
            return f"No answer: {_be(who)} {said}."
    if facts.is_open:
        return "No answer yet: nothing is measured."
    if any(outcome.word in {"not-built", "not-booted"} for outcome in outcomes):
        return "No answer: no patched kernel completed both a build and a boot."
    if facts.state == "cancelled":
        return "No answer: the experiment was cancelled before anything was measured."
    return "No answer: no boot was valid."


def _unjudged(facts: Facts, said: str) -> str:
    """Return the headline without a base, with the kernels that cannot be judged therefore."""
    who = listed((name(kernel.name) for kernel in facts.kernels if kernel.state != "pruned"), "kernels")
    whole = f"{said}, so there is nothing to compare with {who}."
    return (
        f"{said}." if not who else whole if len(whole) <= HEADLINE else f"{said}, so no kernel can be judged."
    )


def _answer(facts: Facts, outcomes: Sequence[CaseOutcome]) -> str:
    by_word: dict[Word, list[CaseOutcome]] = {}
    for outcome in outcomes:
        by_word.setdefault(outcome.word, []).append(outcome)
    worse, better = by_word.get("regression", []), by_word.get("improvement", [])
    if by_word.get("mixed") or (worse and better):
        return f"Mixed: {_mixed(outcomes)}."
    if only := _together(facts, outcomes):
        return only
    if worse:
        return f"Regression: {_called(worse, fine=facts.fine)}."
    if better:
        return f"Improvement: {_called(better, fine=facts.fine)}."
    if doubtful := by_word.get("in-doubt"):
        return f"No answer: the control failed, so {listed(_names(doubtful), 'kernels')} cannot be judged."
    if undecided := by_word.get("inconclusive"):
        return _undecided(undecided, by_word.get("unchanged", []), facts)
    if equal := by_word.get("unchanged"):
        who = _names(equal)
        points = [point for outcome in equal for point in outcome.points]
        alike = f"{_be(who, 'is')} equal to the base within {margin(points)}"
        lacking = [outcome for outcome in outcomes if outcome.word in _LACKING and outcome.kernel.name in who]
        if lacking:
            where, others = (
                listed((case_name(outcome.case) for outcome in each), "workloads")
                for each in (lacking, equal)
            )
            return f"No answer for {where}; in {others} {alike}."
        return f"No difference: {alike}."
    who = _names(by_word.get("same-kernel", []))
    return f"No effect: {listed(who, 'kernels')} {_verb(who, 'has', 'have')} the same code as the base."


def _undecided(undecided: Sequence[CaseOutcome], equal: Sequence[CaseOutcome], facts: Facts) -> str:
    who = _names(undecided)
    if equal and not set(who) & set(_names(equal)):
        points = [point for outcome in equal for point in outcome.points]
        return (
            f"No answer for {listed(who, 'kernels')}; "
            f"{_be(_names(equal), 'is')} equal to the base within {margin(points)}."
        )
    needed = [point.boots_needed for outcome in undecided for point in outcome.points]
    noisy = facts.clock == "wall" and any(boots is None or boots > 2 * facts.boots_asked for boots in needed)
    if not noisy:
        return f"No answer yet: {listed(who, 'kernels')} may be better or worse than the base."
    many = " or ".join(who) if len(who) <= 2 else f"any of the {len(who)} kernels"
    return f"No answer: this machine was too noisy for {many}."


def _together(facts: Facts, outcomes: Sequence[CaseOutcome]) -> str:
    """Return the headline where two switches change something only together; nothing where one is enough."""
    called = [outcome for outcome in outcomes if outcome.word in DIRECTION]
    if any(len(outcome.kernel.switches) < 2 for outcome in called):
        return ""
    for outcome in called:
        alone = {
            other.kernel.switches for other in outcomes if other.case is outcome.case and other.word in _STILL
        }
        for pair in outcome.case.together:
            both = {pair.first, pair.second} <= set(outcome.kernel.switches)
            if both and {(pair.first,), (pair.second,)} <= alone and outcome.decisive:
                direction = DIRECTION[outcome.decisive.verdict]
                effect = (
                    f"{name(pair.first)} and {name(pair.second)} make {case_name(outcome.case)} {direction}"
                )
                return f"Only together: {effect}, {name(outcome.decisive.name)} {shift(outcome.decisive, fine=facts.fine)}."
    return ""


def _called(called: Sequence[CaseOutcome], *, fine: bool) -> str:
    """Return which kernels make which cases worse, or better, with the largest change."""
    who = _names(called)
    where = listed((case_name(outcome.case) for outcome in called), "workloads")
    most = max(called, key=lambda outcome: outcome.decisive.size if outcome.decisive else 0.0).decisive
    if most is None:
        return ""
    alone = len(called) == 1 or most.ratio is None
    size = shift(most, fine=fine) if alone else f"by up to {change(most.ratio, fine=fine)}"
    size = f"{name(most.name)} {size}"
    effect = f"{listed(who, 'kernels')} {_verb(who, 'makes', 'make')} {where} {DIRECTION[most.verdict]}"
    return f"{effect}, {size}{at_cpus(most)}"


def _mixed(outcomes: Sequence[CaseOutcome]) -> str:
    """Return which kernels make which cases worse, and which better."""
    sides: dict[str, list[tuple[str, str]]] = {"worse": [], "better": []}
    for outcome in outcomes:
        for point in outcome.points if outcome.word in TRUSTED else ():
            if point.called and not in_doubt(outcome.case, point):
                sides[DIRECTION[point.verdict]].append((name(outcome.kernel.name), _place(outcome, point)))
    (worse_who, worse_where), (better_who, better_where) = (_side(sides[word]) for word in sides)
    if worse_who == better_who:
        return f"{worse_who} {worse_where} worse and {better_where.removeprefix('makes ').removeprefix('make ')} better"
    return f"{worse_who} {worse_where} worse, {better_who} {better_where} better"


def _side(pairs: Iterable[tuple[str, str]]) -> tuple[str, str]:
    each = list(pairs)
    who = list(dict.fromkeys(kernel for kernel, _ in each))
    where = listed((place for _, place in each), "workloads")
    return listed(who, "kernels"), f"{_verb(who, 'makes', 'make')} {where}"


def _place(outcome: CaseOutcome, point: MetricFact) -> str:
    """Return the case, with the point's CPUs or metric where its points disagree."""
    if outcome.word != "mixed":
        return case_name(outcome.case)
    return f"{case_name(outcome.case)}{at_cpus(point) or f' in {name(point.name)}'}"


def _names(outcomes: Sequence[CaseOutcome]) -> list[str]:
    return list(dict.fromkeys(name(outcome.kernel.name) for outcome in outcomes))


def _verb(who: Sequence[str], singular: str, many: str) -> str:
    return singular if len(set(who)) == 1 else many


def _be(who: Sequence[str], singular: str = "was") -> str:
    return f"{listed(who, 'kernels')} {_verb(who, singular, {'is': 'are', 'was': 'were'}[singular])}"
