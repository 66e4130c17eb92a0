# SPDX-License-Identifier: GPL-2.0-or-later
"""List the trends that differ from a trend by their branch only."""

from dataclasses import dataclass

from django.db.models import Q

from lab.models import Tree, Trend
from lab.trends.page import TrendLine

# More of them would hide the rest of a page.
MOST_OTHERS = 30


@dataclass(frozen=True, slots=True)
class OtherBranch:
    """The same trend on another branch. branch: its name, also for the default branch."""

    key: str
    branch: str


def default_branch(line: TrendLine) -> str:
    """Return the name of the default branch of a trend's tree, "" if it is not known."""
    return Tree.objects.values_list("default_revision", flat=True).get(pk=line.tree_id)


def other_branches(line: TrendLine) -> tuple[OtherBranch, ...]:
    """Return the same trend on other branches of the tree: the default branch first, then by name."""
    trunk = line.trunk or line.key
    rows = Trend.objects.filter(Q(trunk=trunk) | Q(key=trunk)).exclude(key=line.key).order_by("branch")
    found = list(rows.values_list("key", "branch")[:MOST_OTHERS])
    default = default_branch(line) or "the default branch" if found else ""
    return tuple(OtherBranch(key, branch or default) for key, branch in found)
