# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments with sampled profiles, made up: a patch under which one function calls another less, and its diff."""

from __future__ import annotations

from lab.models import Case, Profile
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import make_case, make_experiment, make_run, make_variant


def diff_of(*functions: str, path: str = "fs/a.c") -> str:
    """Return a diff that adds a line to each of some functions."""
    hunk = "@@ -{0},1 +{0},2 @@ int {1}(void)\n a();\n+b();\n"
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return head + "".join(hunk.format(10 * at + 1, name) for at, name in enumerate(functions))


def sampled_experiment() -> Case:
    """Return the case of an experiment of base and patch p: down_read falls from 68 to 26 % of samples; memcpy stays."""
    made = make_experiment(state="done", profile=True)
    case = make_case(made)
    for variant, reads in ((make_variant(made), 680), (make_variant(made, "p"), 260)):
        for boot in range(3):
            run = make_run(variant, case, purpose="profiled", block=boot, state="done", outcome="finished")
            stacks = {
                ("showgids", "kernfs_iop_permission", "down_read.isra.0"): reads + boot,
                ("showgids", "memcpy"): 100,
                ("showgids", "other"): 900 - reads,
            }
            tree = build_tree(stacks.items())
            Profile.objects.create(run=run, samples=tree.samples, tree=pack(tree))
    return case
