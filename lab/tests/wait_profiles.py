# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of waits for tests: what each boot waited for locks, nanoseconds by stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.models import Case, Profile, Run, Variant
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import make_run

MS = 1_000_000
Stacks = Mapping[Any, int]


def add_waits(run: Run, stacks: Stacks, *, kind: str = "lock", **fields: object) -> Profile:
    """One profile of waits of a run."""
    tree = build_tree(stacks.items())
    defaults: dict[str, object] = {
        "samples": tree.samples,
        "waits": 100,
        "overhead": 0.02,
        "tree": pack(tree),
    }
    return Profile.objects.create(run=run, kind=kind, **(defaults | fields))


def add_waiting_boots(
    variant: Variant, case: Case, stacks: Stacks, *, boots: int = 3, kind: str = "lock"
) -> None:
    """Boots that wait for about so many nanoseconds each; they differ by a twentieth."""
    for boot in range(boots):
        run = variant.runs.filter(case=case, purpose="profiled", block=boot).first() or make_run(
            variant, case, purpose="profiled", block=boot, state="done", outcome="finished"
        )
        add_waits(run, {stack: ns + ns * boot // 20 for stack, ns in stacks.items()}, kind=kind)
