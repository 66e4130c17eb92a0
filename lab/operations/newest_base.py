# SPDX-License-Identifier: GPL-2.0-or-later
"""The base of the newest experiment: the examples of the help page name a tree that this lab has."""

import re
from dataclasses import dataclass

from lab.models import Experiment
from lab.models.states import ExperimentState

# Examples are pasted into a shell and into YAML; any other name would have to be quoted there.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


@dataclass(frozen=True, slots=True)
class NewestBase:
    """A tree's name, a revision of it, and WORKLOAD:PRESET."""

    tree: str = "debian-6.1"
    revision: str = "v6.1"
    workload: str = "showgids:small"


def newest_base() -> NewestBase:
    """Return the base of the newest finished experiment, or the one of the documentation."""
    rows = Experiment.objects.filter(state=ExperimentState.DONE).select_related("tree").order_by("-pk")
    row = rows.defer("spec").first()
    case = row.cases.first() if row else None
    if row is None or case is None:
        return NewestBase()
    found = NewestBase(row.tree.name, row.base_name, f"{case.workload}:{case.preset}")
    names = (found.tree, found.revision, *found.workload.split(":"))
    return found if all(_PLAIN.fullmatch(name) for name in names) else NewestBase()
