# SPDX-License-Identifier: GPL-2.0-or-later
"""The next step after an experiment: wait, fix a kernel, more boots with their cost, another target or clock, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from lab.comparisons.conclusion.facts import Facts
from lab.comparisons.conclusion.fragments import listed, name
from lab.comparisons.conclusion.outcomes import TRUSTED, CaseOutcome
from lab.figures import change, counted, duration

Action = Literal[
    "nothing", "wait", "fix", "repeat", "boots", "target", "contention-clock", "instruction-clock", "compare"
]
# Above these limits, of boots of each kernel and of minutes in all, other targets and clocks are cheaper than more boots.
WORTH_BOOTS, WORTH_MINUTES = 100, 12 * 60


@dataclass(frozen=True, slots=True)
class NextStep:
    """One step. boots: of each kernel, for more boots. minutes: their cost, None where no boot was timed."""

    action: Action
    text: str
    boots: int | None = None
    minutes: int | None = None


def next_step(facts: Facts, outcomes: Sequence[CaseOutcome]) -> NextStep:
    """Return the step that helps most."""
    if facts.is_open:
        boots = f": {counted(facts.boots_open, 'boot')} to come" if facts.boots_open else ""
        return NextStep("wait", f"Wait for the rest{boots}.")
    if step := _baseless(facts, outcomes):
        return step
    if not facts.kernels:
        return NextStep("compare", "Add a patch or a config to compare, or look at the base's trend.")
    return (
        _broken(outcomes) or _doubtful(outcomes) or _undecided(facts, outcomes) or _decided(facts, outcomes)
    )


def minutes(facts: Facts, needed: int) -> int | None:
    """Return the minutes it takes to raise the boots of each kernel to `needed`; whole, at least 1."""
    if facts.boot_seconds is None:
        return None
    more = max(needed - facts.boots_asked, 0) * facts.arms
    return max(1, ceil(more * facts.boot_seconds / 60))


def _baseless(facts: Facts, outcomes: Sequence[CaseOutcome]) -> NextStep | None:
    """Return the step where there was no base to compare anything with."""
    dead = [case.base for case in facts.cases if case.base]
    if facts.base.state != "failed" and (
        not dead or any(outcome.points and outcome.word != "unchanged" for outcome in outcomes)
    ):
        return None
    if facts.base.lab_fault or (dead and all(base.lab_fault for base in dead)):
        return NextStep("repeat", "Run it again: the lab failed, not the kernels.")
    if facts.base.state == "failed":
        return NextStep("fix", "Choose a base and a config that build.")
    return NextStep(
        "fix",
        "Choose a base, a config and a target on which the base boots; the experiment's page links to the console.",
    )


def _broken(outcomes: Sequence[CaseOutcome]) -> NextStep | None:
    if any(outcome.word in TRUSTED for outcome in outcomes):
        return None
    failed = [outcome for outcome in outcomes if outcome.word in {"not-built", "not-booted"}]
    if not failed:
        measured = [outcome for outcome in outcomes if outcome.word != "not-measured"]
        return None if measured else NextStep("repeat", "Run it again.")
    if all(
        outcome.kernel.lab_fault or (outcome.failed is not None and outcome.failed.lab_fault)
        for outcome in failed
    ):
        return NextStep("repeat", "Run it again: the lab failed, not the patch.")
    who = listed((name(outcome.kernel.name) for outcome in failed), "kernels")
    return NextStep("fix", f"Fix {who} and submit again; the experiment's page links to the log.")


def _doubtful(outcomes: Sequence[CaseOutcome]) -> NextStep | None:
    if all(outcome.word != "in-doubt" for outcome in outcomes) or any(
        outcome.word in TRUSTED for outcome in outcomes
    ):
        return None
    return NextStep("target", "Repeat it on a quieter target.")


def _undecided(facts: Facts, outcomes: Sequence[CaseOutcome]) -> NextStep | None:
    """Return the step for kernels whose verdict is inconclusive."""
    points = [point for outcome in outcomes if outcome.word == "inconclusive" for point in outcome.points]
    points = [point for point in points if point.verdict == "inconclusive"]
    if not points:
        return None
    needed = [point.boots_needed for point in points if point.boots_needed]
    cost = minutes(facts, max(needed, default=0))
    payable = max(needed, default=0) <= WORTH_BOOTS and (cost or 0) <= WORTH_MINUTES
    if len(needed) == len(points) and payable:
        return _boots(facts, max(needed), cost)
    if needed:
        most = f"{min(needed):,}" if min(needed) == max(needed) else f"{min(needed):,} to {max(needed):,}"
        most = f"{needed[0]:,} and {needed[1]:,}" if len(needed) == 2 and needed[0] != needed[1] else most
        refused = f"Do not add boots ({most} of each kernel would be needed)"
    else:
        refused = "More boots would not settle it"
    return _elsewhere(facts, refused)


def _boots(facts: Facts, needed: int, cost: int | None) -> NextStep:
    after = f" instead of {facts.boots_asked:,}" if facts.boots_asked else ""
    paid = f", about {duration(60 * cost)} more" if cost is not None else ""
    return NextStep("boots", f"Run {needed:,} boots of each kernel{after}{paid}.", needed, cost)


def _elsewhere(facts: Facts, refused: str) -> NextStep:
    """Return another clock or target. refused: why not more boots."""
    if facts.clock == "wall" and facts.locks is not None:
        return NextStep(
            "contention-clock",
            f"{refused}: {_locking(facts)}. Use the contention clock, or a quiet machine with many CPUs.",
        )
    if facts.clock == "wall":
        return NextStep("instruction-clock", f"{refused}. Use the instruction clock, or a quieter target.")
    return NextStep("target", f"{refused}. Use the wall clock on a quiet target instead.")


def _locking(facts: Facts) -> str:
    locks = facts.locks
    many = sum(kernel.state != "pruned" for kernel in facts.kernels)
    changed = "the patch changes locking" if many == 1 else "the patches change locking"
    if locks is None or not locks.symbols or locks.share is None:
        return changed
    held = listed(locks.symbols, "lock functions")
    verb = "takes" if len(set(locks.symbols)) == 1 else "take"
    return f"{changed}, and {held} {verb} {change(1 + locks.share).lstrip('+')} of the base's samples"


def _decided(facts: Facts, outcomes: Sequence[CaseOutcome]) -> NextStep:
    """Return nothing more to do, unless the clock cannot see what the patches change."""
    if all(outcome.word == "same-kernel" for outcome in outcomes):
        return NextStep("fix", "Choose a config that builds the files the patch changes.")
    still = all(outcome.word in {"unchanged", "same-kernel"} for outcome in outcomes)
    if still and facts.locks is not None and facts.clock == "instructions":
        said = f"Instructions do not show waiting, and {_locking(facts)}: use the contention clock."
        return NextStep("contention-clock", said)
    return NextStep("nothing", "No more boots are needed.")
