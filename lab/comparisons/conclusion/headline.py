# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of a conclusion: the answer, in at most HEADLINE characters."""

from collections.abc import Iterable, Sequence

from lab.comparisons.conclusion.facts import Facts, MetricFact
from lab.comparisons.conclusion.fragments import DIRECTION, at_cpus, case_name, listed, margin, name, shift
from lab.comparisons.conclusion.outcomes import TRUSTED, CaseOutcome, Word, in_doubt
from lab.figures import change

HEADLINE = 140
# Outcomes of a switch that was seen to do nothing by itself.
_STILL = {"unchanged", "inconclusive", "same-kernel"}


def headline(facts: Facts, found: Sequence[CaseOutcome]) -> str:
    """Return the answer to what the kernels do."""
    if not any(one.points or one.word == "same-kernel" for one in found):
        return _without_numbers(facts, found)
    said = _answer(facts, found)
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


def _without_numbers(facts: Facts, found: Sequence[CaseOutcome]) -> str:
    """Return the headline where there was nothing to compare."""
    if facts.base.state == "failed":
        return _unjudged(facts, "No answer: the base kernel was not built")
    if not facts.is_open and facts.cases and all(case.base for case in facts.cases):
        either = " either" if any(one.failed for one in found) else ""
        return _unjudged(facts, f"No answer: the base kernel did not finish a boot{either}")
    if not facts.kernels:
        still = " yet" if facts.is_open and not any(case.control for case in facts.cases) else ""
        return f"One kernel{still and ', not measured yet'}: there is no patch to compare with it."
    for word, said in (("not-built", "not built"), ("not-booted", "built, but did not finish a boot")):
        failed = [one for one in found if one.word == word]
        if failed and len(failed) == len(found):
            who = [name(one.kernel.name) for one in failed]
            return f"No answer: {_be(who)} {said}."
    if facts.is_open:
        return "No answer yet: nothing is measured."
    if any(one.word in {"not-built", "not-booted"} for one in found):
        return "No answer: no patched kernel was built and finished a boot."
    if facts.state == "cancelled":
        return "No answer: the experiment was cancelled before anything was measured."
    return "No answer: no boot was valid."


def _unjudged(facts: Facts, said: str) -> str:
    """Return that there is no base, and of which kernels nothing can be said therefore."""
    who = listed((name(one.name) for one in facts.kernels if one.state != "pruned"), "kernels")
    whole = f"{said}, so there is nothing to compare with {who}."
    return (
        f"{said}." if not who else whole if len(whole) <= HEADLINE else f"{said}, so no kernel can be judged."
    )


def _answer(facts: Facts, found: Sequence[CaseOutcome]) -> str:
    by_word: dict[Word, list[CaseOutcome]] = {}
    for one in found:
        by_word.setdefault(one.word, []).append(one)
    worse, better = by_word.get("regression", []), by_word.get("improvement", [])
    if by_word.get("mixed") or (worse and better):
        return f"Mixed: {_mixed(found)}."
    if only := _together(facts, found):
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
        points = [point for one in equal for point in one.points]
        return f"No difference: {_be(who, 'is')} equal to the base within {margin(points)}."
    who = _names(by_word.get("same-kernel", []))
    return f"No effect: {listed(who, 'kernels')} {_verb(who, 'has', 'have')} no code that differs from the base's."


def _undecided(undecided: Sequence[CaseOutcome], equal: Sequence[CaseOutcome], facts: Facts) -> str:
    who = _names(undecided)
    if equal and not set(who) & set(_names(equal)):
        points = [point for one in equal for point in one.points]
        return (
            f"No answer for {listed(who, 'kernels')}; "
            f"{_be(_names(equal), 'is')} equal to the base within {margin(points)}."
        )
    needed = [point.boots_needed for one in undecided for point in one.points]
    noisy = facts.clock == "wall" and any(boots is None or boots > 2 * facts.boots_asked for boots in needed)
    if not noisy:
        return f"No answer yet: {listed(who, 'kernels')} may be better or worse than the base."
    many = " or ".join(who) if len(who) <= 2 else f"any of the {len(who)} kernels"
    return f"No answer: this machine was too noisy for {many}."


def _together(facts: Facts, found: Sequence[CaseOutcome]) -> str:
    """Return the headline where two switches change something only together; nothing where one is enough."""
    called = [one for one in found if one.word in DIRECTION]
    if any(len(one.kernel.switches) < 2 for one in called):
        return ""
    for one in called:
        alone = {other.kernel.switches for other in found if other.case is one.case and other.word in _STILL}
        for pair in one.case.together:
            both = {pair.first, pair.second} <= set(one.kernel.switches)
            if both and {(pair.first,), (pair.second,)} <= alone and one.decisive:
                direction = DIRECTION[one.decisive.verdict]
                told = f"{name(pair.first)} and {name(pair.second)} make {case_name(one.case)} {direction}"
                return f"Only together: {told}, {name(one.decisive.name)} {shift(one.decisive, fine=facts.fine)}."
    return ""


def _called(called: Sequence[CaseOutcome], *, fine: bool) -> str:
    """Return who makes what worse, or better, with the largest change."""
    who = _names(called)
    where = listed((case_name(one.case) for one in called), "workloads")
    most = max(called, key=lambda one: one.decisive.size if one.decisive else 0.0).decisive
    if most is None:
        return ""
    size = shift(most, fine=fine) if len(called) == 1 else f"by up to {change(most.ratio, fine=fine)}"
    size = f"{name(most.name)} {size}"
    told = f"{listed(who, 'kernels')} {_verb(who, 'makes', 'make')} {where} {DIRECTION[most.verdict]}"
    return f"{told}, {size}{at_cpus(most)}"


def _mixed(found: Sequence[CaseOutcome]) -> str:
    """Return who makes what worse and what better."""
    sides: dict[str, list[tuple[str, str]]] = {"worse": [], "better": []}
    for one in found:
        for point in one.points if one.word in TRUSTED else ():
            if point.called and not in_doubt(one.case, point):
                sides[DIRECTION[point.verdict]].append((name(one.kernel.name), _place(one, point)))
    (worse_who, worse_where), (better_who, better_where) = (_side(sides[word]) for word in sides)
    if worse_who == better_who:
        return f"{worse_who} {worse_where} worse and {better_where.removeprefix('makes ').removeprefix('make ')} better"
    return f"{worse_who} {worse_where} worse, {better_who} {better_where} better"


def _side(pairs: Iterable[tuple[str, str]]) -> tuple[str, str]:
    each = list(pairs)
    who = list(dict.fromkeys(kernel for kernel, _ in each))
    where = listed((place for _, place in each), "workloads")
    return listed(who, "kernels"), f"{_verb(who, 'makes', 'make')} {where}"


def _place(one: CaseOutcome, point: MetricFact) -> str:
    """Return the case, and what of it where its points disagree."""
    if one.word != "mixed":
        return case_name(one.case)
    return f"{case_name(one.case)}{at_cpus(point) or f' in {name(point.name)}'}"


def _names(found: Sequence[CaseOutcome]) -> list[str]:
    return list(dict.fromkeys(name(one.kernel.name) for one in found))


def _verb(who: Sequence[str], one: str, many: str) -> str:
    return one if len(set(who)) == 1 else many


def _be(who: Sequence[str], singular: str = "was") -> str:
    return f"{listed(who, 'kernels')} {_verb(who, singular, {'is': 'are', 'was': 'were'}[singular])}"
