# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the branch that an experiment's base belongs to: its trends hold the revisions of one branch only."""

from kernels.trees.branches import BranchPlace, branch_place, place_on_branch
from lab.models import Experiment, Standing
from lab.submission.prepare import Prepared


def place_of_base(prepared: Prepared, origin: Experiment | Standing | None) -> BranchPlace:
    """Return the branch of a base, and its fork off the default branch. Raises GitFailed.

    The branch is that of a standing experiment, or of the experiment that is run again on the same revision. Of other experiments
    it is the default branch if that holds the base, else the branch that the description names, else one that is measured by a
    standing experiment, else the first by name. An archive has no branches.
    """
    tree, source, commit = prepared.tree, prepared.source, prepared.base.commit
    if source.kind != "git":
        return BranchPlace()
    if isinstance(origin, Standing):
        return place_on_branch(tree, commit, origin.branch)
    if origin is not None and origin.base_branch and origin.base_commit == commit:
        return BranchPlace(origin.base_branch, origin.base_fork, known=True)
    standing = Standing.objects.filter(tree__name=source.name).exclude(branch="")
    measured = standing.order_by("pk").values_list("branch", flat=True)
    return branch_place(tree, commit, [prepared.spec.base, *measured])
