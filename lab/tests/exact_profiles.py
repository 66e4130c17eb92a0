# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments with exact profiles, made up: a patch of one instruction, and what boots of one kernel differ by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.models import Case, Profile, Variant
from lab.models.states import Role
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import make_case, make_experiment, make_run, make_variant

Stack = tuple[str, ...]
OPENS = 100
_OPEN: Stack = ("main", "do_sys_open")


def stacks(fop_open: int, slab: int, ticks: int) -> dict[Stack, int]:
    """Return instructions by chain of calls in a boot of OPENS opens."""
    return {
        ("main",): 500,
        _OPEN: 9_000,
        (*_OPEN, "kernfs_fop_open"): fop_open * OPENS,
        (*_OPEN, "___slab_alloc"): slab,
        ("[interrupts]", "tick"): ticks,
    }


def add_exact_boots(variant: Variant, case: Case, boots: Sequence[Mapping[Stack, int]]) -> None:
    """Add a profiled run for each boot; all functions but ticks are called once an open."""
    for block, own in enumerate(boots):
        run = make_run(variant, case, purpose="profiled", block=block, state="done", outcome="finished")
        tree = build_tree(own.items())
        calls = build_tree((stack, 7 if stack[0].startswith("[") else OPENS) for stack in own)
        Profile.objects.create(
            run=run, kind="exact", samples=tree.samples, tree=pack(tree), calls=pack(calls), operations=OPENS
        )


def exact_experiment(boots: int = 2, *, names: Mapping[str, str] | None = None) -> Case:
    """Return the case of an experiment whose patch adds one instruction to kernfs_fop_open. names: others than the usual."""
    made = make_experiment(name="one instruction more", state="done", profile=True, clock="instructions")
    metrics = [
        {
            "name": "instructions_per_open",
            "unit": "instructions",
            "better": "lower",
            "margin": 0.002,
            "primary": True,
        }
    ]
    case = make_case(made, metrics=metrics)
    variants = {
        "base": (make_variant(made), [stacks(20, 300, 7_000), stacks(20, 900, 6_500)]),
        "again": (make_variant(made, "base-again", role=Role.AA), [stacks(20, 500, 6_900), stacks(20, 400, 7_100)]),
        "patch": (make_variant(made, "p"), [stacks(21, 1_500, 6_000), stacks(21, 1_100, 6_600)]),
    }  # fmt: skip
    for variant, own in variants.values():
        renamed = [
            {
                tuple((names or {}).get(frame, frame) for frame in stack): count
                for stack, count in profile.items()
            }
            for profile in own[:boots]
        ]
        add_exact_boots(variant, case, renamed)
    return case
