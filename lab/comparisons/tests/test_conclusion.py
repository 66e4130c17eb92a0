# SPDX-License-Identifier: GPL-2.0-or-later
"""The conclusion of an experiment, word for word: one test for each situation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lab.comparisons.conclusion.conclude import conclude
from lab.comparisons.conclusion.facts import (
    CaseFacts,
    Facts,
    FailedBoots,
    Kernel,
    Locks,
    MetricFact,
    Together,
)

P, Q = Kernel("p", ("p",)), Kernel("q", ("q",))
BOTH = Kernel("p+q", ("p", "q"))
WORSE = MetricFact("ns_per_stat", "regression", 1.051, 1.042, 1.06, 10)
BETTER = MetricFact("ns_per_open", "improvement", 0.8, 0.78, 0.82, 10)
EQUAL = MetricFact("ns_per_open", "unchanged", 1.001, 0.996, 1.006, 10)
UNDECIDED = MetricFact("ns_per_open", "inconclusive", 1.02, 0.97, 1.073, 10, 24)
CONTROL = (
    MetricFact("ns_per_stat", "inconclusive", 1.003, 0.99, 1.02, 10, 80),
    MetricFact("ns_per_open", "inconclusive", 0.997, 0.98, 1.01, 10, 90),
)
QUIET = "The identical base kernel differed by -0.30%."


def case(
    points: Mapping[str, tuple[MetricFact, ...]], title: str = "stat-walk", number: int = 1
) -> CaseFacts:
    return CaseFacts(number, title, points, CONTROL)


def facts(*cases: CaseFacts, kernels: tuple[Kernel, ...] = (P,), state: str = "done") -> Facts:
    return Facts(state, "wall", cases, kernels, boots_asked=10, arms=2 + len(kernels), boot_seconds=30.0)


def text(evidence: Facts) -> str:
    return conclude(evidence).text


def test_a_clear_regression() -> None:
    assert text(facts(case({"p": (WORSE,)}))) == (
        "Regression: p makes stat-walk worse, ns_per_stat +5.1% (+4.2 to +6.0). "
        "The identical base kernel differed by +0.30%. No more boots are needed."
    )


def test_a_clear_improvement() -> None:
    assert text(facts(case({"p": (BETTER,)}))) == (
        f"Improvement: p makes stat-walk better, ns_per_open -20.0% (-22.0 to -18.0). {QUIET} No more boots are needed."
    )


def test_equal_within_the_margin() -> None:
    assert text(facts(case({"p": (EQUAL,)}))) == (
        "No difference: p is equal to the base within 2%. "
        f"stat-walk (ns_per_open): p is equal within 2%, +0.10% (-0.40 to +0.60). {QUIET} No more boots are needed."
    )


def test_cases_that_disagree() -> None:
    evidence = facts(case({"p": (WORSE,)}), case({"p": (BETTER,)}, "showgids", 2))
    assert text(evidence) == (
        "Mixed: p makes stat-walk worse and showgids better. "
        "stat-walk (ns_per_stat): p is worse, +5.1% (+4.2 to +6.0). "
        "showgids (ns_per_open): p is better, -20.0% (-22.0 to -18.0). "
        "The identical base kernel differed by at most -0.30%. No more boots are needed."
    )


def test_kernels_that_disagree() -> None:
    evidence = facts(case({"p": (replace(WORSE, name="ns_per_open"),), "q": (BETTER,)}), kernels=(P, Q))
    assert text(evidence) == (
        "Mixed: p makes stat-walk worse, q makes stat-walk better. "
        "stat-walk (ns_per_open): p is worse, +5.1% (+4.2 to +6.0); q is better, -20.0% (-22.0 to -18.0). "
        f"{QUIET} No more boots are needed."
    )


def test_two_patches_that_change_something_only_together() -> None:
    points = {"p": (EQUAL,), "q": (UNDECIDED,), "p+q": (replace(WORSE, name="ns_per_open"),)}
    evidence = facts(replace(case(points), together=(Together("p", "q"),)), kernels=(P, Q, BOTH))
    assert (
        conclude(evidence).headline
        == "Only together: p and q make stat-walk worse, ns_per_open +5.1% (+4.2 to +6.0)."
    )
    assert text(evidence) == (
        "Only together: p and q make stat-walk worse, ns_per_open +5.1% (+4.2 to +6.0). "
        "stat-walk (ns_per_open): p is equal within 2%, +0.10% (-0.40 to +0.60); q is undecided, +2.0% (-3.0 to +7.3); "
        f"p+q is worse, +5.1% (+4.2 to +6.0). {QUIET} Run 24 boots of each kernel instead of 10, about 35 min more."
    )


def test_together_is_not_said_where_a_patch_was_never_alone() -> None:
    points = {"p": (EQUAL,), "p+q": (replace(WORSE, name="ns_per_open"),)}
    evidence = facts(replace(case(points), together=(Together("p", "q"),)), kernels=(P, BOTH))
    assert (
        conclude(evidence).headline
        == "Regression: p+q makes stat-walk worse, ns_per_open +5.1% (+4.2 to +6.0)."
    )


def demo() -> Facts:
    """Return the demo's wall-clock experiment."""
    kernels = Kernel("iattr-global", ("iattr-global",)), Kernel("iattr-hashed", ("iattr-hashed",))
    points = {
        "iattr-global": (MetricFact("ns_per_open", "inconclusive", 0.9952, 0.782, 1.253, 10, 658),),
        "iattr-hashed": (MetricFact("ns_per_open", "inconclusive", 0.984, 0.78, 1.32, 10, 1825),),
    }
    control = (MetricFact("ns_per_open", "inconclusive", 1.15, 0.9, 1.4, 10, 40),)
    locks = Locks(("down_read", "up_read"), 0.059)
    evidence = facts(CaseFacts(1, "showgids", points, control), kernels=kernels)
    return replace(evidence, locks=locks)


def test_a_noisy_machine() -> None:
    assert text(demo()) == (
        "No answer: this machine was too noisy for iattr-global or iattr-hashed. "
        "showgids (ns_per_open): iattr-global -0.48% (-21.8 to +25.3); iattr-hashed -1.6% (-22.0 to +32.0). "
        "The identical base kernel differed by +15.0%, as much as these kernels. "
        "Do not add boots (658 and 1,825 of each kernel would be needed): the patches change locking, and "
        "down_read and up_read take 5.9% of the base's samples. Use the contention clock, or a quiet machine with many CPUs."
    )


def test_a_noisy_machine_and_patches_without_locks() -> None:
    step = conclude(replace(demo(), locks=None)).next
    assert step.action == "instruction-clock"
    assert step.text == (
        "Do not add boots (658 and 1,825 of each kernel would be needed). Use the instruction clock, or a quieter target."
    )


def test_a_few_more_boots_with_their_cost() -> None:
    conclusion = conclude(facts(case({"p": (UNDECIDED,)})))
    assert conclusion.text == (
        "No answer: this machine was too noisy for p. stat-walk (ns_per_open): p +2.0% (-3.0 to +7.3). "
        f"{QUIET} Run 24 boots of each kernel instead of 10, about 21 min more."
    )
    assert (conclusion.next.action, conclusion.next.boots, conclusion.next.minutes) == ("boots", 24, 21)


def test_up_to_twice_the_boots_are_no_sign_of_noise() -> None:
    headlines = [
        conclude(facts(case({"p": (replace(UNDECIDED, boots_needed=needed),)}))).headline
        for needed in (20, 21)
    ]
    assert headlines == [
        "No answer yet: p may be better or worse than the base.",
        "No answer: this machine was too noisy for p.",
    ]


def test_no_answer_for_one_kernel_and_none_needed_for_the_other() -> None:
    evidence = facts(case({"p": (UNDECIDED,), "q": (EQUAL,)}), kernels=(P, Q))
    assert conclude(evidence).headline == "No answer for p; q is equal to the base within 2%."


def test_a_control_that_failed() -> None:
    failed = replace(CONTROL[0], verdict="regression", ratio=1.08, low=1.05, high=1.10)
    evidence = facts(replace(case({"p": (WORSE,)}), control=(failed,)))
    assert text(evidence) == (
        "No answer: the control failed, so p cannot be judged. "
        "stat-walk (ns_per_stat): p +5.1% (+4.2 to +6.0), not clearly more than the control. "
        "The control failed: the identical base kernel differed by +8.0% (+5.0 to +10.0). Repeat it on a quieter target."
    )


def test_a_control_that_failed_by_less_than_the_change() -> None:
    failed = replace(CONTROL[1], verdict="improvement", ratio=0.98, low=0.97, high=0.99)
    evidence = facts(replace(case({"p": (BETTER,)}), control=(failed,)))
    assert text(evidence) == (
        "Improvement: p makes stat-walk better, ns_per_open -20.0% (-22.0 to -18.0). The control failed: the identical base "
        "kernel differed by -2.0% (-3.0 to -1.0), less than the change. No more boots are needed."
    )


def test_boots_that_are_still_to_come() -> None:
    evidence = replace(facts(case({"p": (WORSE,)}), state="running"), boots_open=12)
    assert text(evidence) == (
        "So far: regression: p makes stat-walk worse, ns_per_stat +5.1% (+4.2 to +6.0). "
        "The identical base kernel differed by +0.30%. Wait for the rest: 12 boots to come."
    )


def test_boots_that_were_lost() -> None:
    evidence = replace(facts(case({"p": (WORSE,)})), boots_lost=4)
    assert text(evidence) == (
        "Regression: p makes stat-walk worse, ns_per_stat +5.1% (+4.2 to +6.0). The identical base kernel differed by +0.30%. "
        "Partial: 4 boots did not count. No more boots are needed."
    )


def test_an_experiment_that_was_cancelled() -> None:
    evidence = replace(facts(case({"p": (EQUAL,)}), state="cancelled"), boots_lost=1)
    assert "The experiment was cancelled; 1 boot did not count." in text(evidence)


def test_a_patch_that_changes_no_code_here() -> None:
    evidence = facts(case({"p": (WORSE,)}), kernels=(replace(P, same_code=True),))
    assert text(evidence) == (
        "No effect: p has the same code as the base. Choose a config that builds the files the patch changes."
    )


def test_a_kernel_that_was_not_built() -> None:
    evidence = facts(case({}), kernels=(replace(P, state="failed"),))
    assert (
        text(evidence)
        == "No answer: p was not built. Fix p and submit again; the experiment's page links to the log."
    )


def test_a_kernel_that_was_not_built_for_a_fault_of_the_lab() -> None:
    evidence = facts(case({}), kernels=(replace(P, state="failed", lab_fault=True),))
    assert text(evidence) == "No answer: p was not built. Run it again: the lab failed, not the patch."


def test_a_base_that_was_not_built() -> None:
    evidence = replace(facts(case({})), base=Kernel("base", state="failed"), state="failed")
    assert text(evidence) == (
        "No answer: the base kernel was not built, so there is nothing to compare with p. "
        "Choose a base and a config that build."
    )


def test_a_kernel_that_did_not_boot() -> None:
    evidence = facts(replace(case({}), failed=(FailedBoots("p", 3, "panicked"),)))
    assert text(evidence) == (
        "No answer: p was built, but did not finish a boot. stat-walk: p was not measured: 3 boots panicked. "
        "Fix p and submit again; the experiment's page links to the log."
    )


BASE_DEAD = FailedBoots("base", 3, "panicked")


def dead_base(*failed: FailedBoots, base: FailedBoots = BASE_DEAD) -> CaseFacts:
    return replace(case({}), control=(), failed=failed, base=base)


def test_a_base_that_was_not_built_says_nothing_of_the_patches() -> None:
    evidence = facts(case({}), kernels=(replace(P, state="failed"), Q), state="failed")
    assert text(replace(evidence, base=Kernel("base", state="failed"))) == (
        "No answer: the base kernel was not built, so there is nothing to compare with p and q. "
        "Choose a base and a config that build."
    )


def test_a_base_that_was_not_built_for_a_fault_of_the_lab() -> None:
    evidence = replace(facts(case({}), state="failed"), base=Kernel("base", state="failed", lab_fault=True))
    assert text(evidence) == (
        "No answer: the base kernel was not built, so there is nothing to compare with p. "
        "Run it again: the lab failed, not the kernels."
    )


def test_a_base_that_did_not_boot_either_says_nothing_of_the_patch() -> None:
    assert text(facts(dead_base(FailedBoots("p", 3, "panicked")))) == (
        "No answer: the base kernel did not finish a boot, so there is nothing to compare with p. "
        "stat-walk: 3 boots of the base panicked; 3 boots of p panicked. "
        "Choose a base, a config and a target on which the base boots; the experiment's page links to the console."
    )


def test_a_base_that_did_not_boot_beside_a_patch_that_did() -> None:
    assert text(facts(dead_base())) == (
        "No answer: the base kernel did not finish a boot, so there is nothing to compare with p. "
        "stat-walk: 3 boots of the base panicked. "
        "Choose a base, a config and a target on which the base boots; the experiment's page links to the console."
    )


def test_a_base_whose_boots_the_lab_lost() -> None:
    lost = FailedBoots("base", 3, "lost", lab_fault=True)
    assert text(facts(dead_base(base=lost))) == (
        "No answer: the base kernel did not finish a boot, so there is nothing to compare with p. "
        "stat-walk: 3 boots of the base got lost, which is the lab's fault. "
        "Run it again: the lab failed, not the kernels."
    )


def test_a_base_that_boots_with_one_workload_and_not_with_another() -> None:
    evidence = facts(
        case({"p": (BETTER,)}), replace(dead_base(FailedBoots("p", 2, "hung")), id=2, name="showgids")
    )
    assert text(evidence) == (
        "Improvement: p makes stat-walk better, ns_per_open -20.0% (-22.0 to -18.0). "
        "stat-walk (ns_per_open): p is better, -20.0% (-22.0 to -18.0). "
        "showgids: 3 boots of the base panicked; 2 boots of p hung. "
        f"{QUIET} No more boots are needed."
    )


def test_a_base_that_has_not_booted_yet_blames_nobody() -> None:
    evidence = replace(facts(dead_base(FailedBoots("p", 1, "hung")), state="running"), boots_open=8)
    assert text(evidence) == (
        "No answer yet: nothing is measured. stat-walk: 3 boots of the base panicked; 1 boot of p hung. "
        "Wait for the rest: 8 boots to come."
    )


def test_a_kernel_that_was_not_built_beside_one_that_got_better() -> None:
    evidence = facts(case({"q": (BETTER,)}), kernels=(replace(P, state="failed"), Q))
    assert text(evidence) == (
        "Improvement: q makes stat-walk better, ns_per_open -20.0% (-22.0 to -18.0). "
        "stat-walk (ns_per_open): p was not built; q is better, -20.0% (-22.0 to -18.0). "
        f"{QUIET} No more boots are needed."
    )


COUNTED = MetricFact("instructions_per_open", "unchanged", 0.9998065, 0.9978109, 1.0018061, 2, None, 0.002)
SAME = MetricFact("instructions_per_open", "unchanged", 1.0, 0.998004, 1.002, 2, None, 0.002)


def test_counted_instructions() -> None:
    worse = replace(COUNTED, verdict="regression", ratio=1.0123, low=1.01028, high=1.01432)
    evidence = facts(replace(case({"p": (worse,)}), control=(SAME,)))
    assert text(replace(evidence, clock="instructions")) == (
        "Regression: p makes stat-walk worse, instructions_per_open +1.23% (+1.03 to +1.43). "
        "The identical base kernel executed the same number of instructions. No more boots are needed."
    )


def test_counted_instructions_cannot_show_what_a_lock_costs() -> None:
    evidence = facts(replace(case({"p": (COUNTED,)}), control=(SAME,)))
    assert text(replace(evidence, clock="instructions", locks=Locks())) == (
        "No difference: p is equal to the base within 0.2%. "
        "stat-walk (instructions_per_open): p is equal within 0.2%, -0.02% (-0.22 to +0.18). "
        "The identical base kernel executed the same number of instructions. "
        "Instructions do not show waiting, and the patch changes locking: use the contention clock."
    )


def curve(**points: tuple[float, float, float, str]) -> tuple[MetricFact, ...]:
    return tuple(
        MetricFact("cycles_per_open", verdict, ratio, low, high, 3, cpus=int(cpus.removeprefix("at")))
        for cpus, (ratio, low, high, verdict) in points.items()
    )


def test_the_contention_clock_with_a_scaling_curve() -> None:
    points = curve(
        at1=(0.9899, 0.9765, 1.0034, "inconclusive"),
        at8=(0.6841, 0.6716, 0.6969, "improvement"),
        at32=(0.549, 0.5393, 0.5589, "improvement"),
    )
    control = curve(
        at1=(0.9934, 0.977, 1.01, "inconclusive"),
        at8=(1.2, 0.9, 1.5, "inconclusive"),
        at32=(1.01, 0.989, 1.031, "inconclusive"),
    )
    evidence = facts(CaseFacts(1, "showgids", {"p": points}, control))
    assert text(replace(evidence, clock="contention")) == (
        "Improvement: p makes showgids better, cycles_per_open -45.1% (-46.1 to -44.1) at 32 CPUs. showgids (cycles_per_open): "
        "p is better at 32 CPUs, -45.1% (-46.1 to -44.1), undecided at 1 CPU. "
        "The identical base kernel differed by at most +1.0% at 32 CPUs. No more boots are needed."
    )


def test_a_curve_that_gets_better_on_many_cpus_and_worse_on_one() -> None:
    points = curve(at1=(1.1, 1.08, 1.12, "regression"), at32=(0.549, 0.5393, 0.5589, "improvement"))
    evidence = facts(CaseFacts(1, "showgids", {"p": points}))
    assert text(replace(evidence, clock="contention")) == (
        "Mixed: p makes showgids at 1 CPU worse and showgids at 32 CPUs better. showgids (cycles_per_open): "
        "p is better at 32 CPUs, -45.1% (-46.1 to -44.1), worse at 1 CPU, +10.0% (+8.0 to +12.0). "
        "No more boots are needed."
    )


def test_one_kernel_without_a_base_to_compare() -> None:
    evidence = facts(case({}), kernels=())
    assert text(evidence) == (
        "One kernel: there is no patch to compare with it. The identical base kernel differed by at most -0.30%. "
        "Add a patch or a config to compare, or look at the base's trend."
    )


def test_nothing_measured_yet() -> None:
    evidence = replace(facts(case({}), state="queued"), boots_open=30)
    assert text(evidence) == "No answer yet: nothing is measured. Wait for the rest: 30 boots to come."


def test_nothing_measured_at_all() -> None:
    assert text(facts(case({}))) == "No answer: no boot was valid. Run it again."


def test_a_paragraph_says_how_many_results_it_leaves_out() -> None:
    kernels = tuple(Kernel(f"a-patch-with-a-long-name-{number}", (f"{number}",)) for number in range(20))
    evidence = facts(case({kernel.name: (WORSE,) for kernel in kernels}), kernels=kernels)
    conclusion = conclude(evidence)
    assert conclusion.headline == "Regression: 20 kernels make stat-walk worse, ns_per_stat by up to +5.1%."
    assert "14 more results in the table." in conclusion.text
    assert conclusion.cases[0]["text"].count("is worse") == 20
