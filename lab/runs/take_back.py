# SPDX-License-Identifier: GPL-2.0-or-later
"""Take a claim back for an operator: its work is queued again, and its worker stops and writes nothing."""

import logging

from lab.errors import NotAllowed, Outdated, UnknownRow
from lab.models import Build, Run, User
from lab.models.states import BuildState, RunState
from lab.people.permissions import may
from lab.runs.claim import Claim, Kind
from lab.runs.hand_back import put_back

log = logging.getLogger(__name__)


def take_back(*, by: User | None, kind: Kind, work: int, lease: str = "") -> str:
    """Queue claimed work again; returns who held it. by: None at this machine's own terminal.

    lease: the claim that the operator saw, as `lease_name` tells it, "" for whichever there is.
    Raises NotAllowed, UnknownRow, Outdated where that claim is over.
    """
    if by is not None and not may(by, "operate"):
        raise NotAllowed(f"{by.username} is a {by.role}: only operators can take claims back")
    model: type[Build] | type[Run] = Build if kind == "build" else Run
    row = model.objects.filter(pk=work).first()
    if row is None:
        raise UnknownRow(f"there is no {kind} {work}")
    held = row.state in (BuildState.BUILDING, RunState.RUNNING)
    if (
        not held
        or (lease and lease != lease_name(row.token))
        or not put_back(Claim(kind, work, row.token), lost=True)
    ):
        raise Outdated(f"{kind} {work} has changed since this page was loaded: it is now {row.state}")
    log.warning(
        "%s %s was taken back from %s by %s",
        kind,
        work,
        row.claimed_by,
        by.username if by else "the terminal",
    )
    return row.claimed_by


def lease_name(token: str) -> str:
    """Return a claim's name on pages: enough to distinguish it from a later claim, too little to write with."""
    return token[:8]
