# SPDX-License-Identifier: GPL-2.0-or-later
"""Read how metal machines are reached, and whether they are booting."""

from lab.errors import one_row
from lab.models import Run, Target
from lab.models.states import RunState
from lab.targets.access_schema import Access, read_access
from lab.targets.drivers import MACHINES


def access_of(name: str) -> Access:
    """Return the access to a machine. Raises UnknownRow, FieldRefused."""
    target = one_row(Target.objects.filter(name=name, driver__in=MACHINES), f'machine "{name}"')
    return read_access(target.access)


def is_booting(name: str) -> bool:
    """Return whether a run is on a target now."""
    return Run.objects.filter(target__name=name, state=RunState.RUNNING).exists()
