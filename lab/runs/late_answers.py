# SPDX-License-Identifier: GPL-2.0-or-later
"""Refuse answers to claims that are not held any more, and keep a record of them for operators."""

import logging

from lab.leases.process import worker_identity
from lab.models import Build, LateAnswer, Run
from lab.models.storable import storable_text
from lab.runs.claim import Claim

log = logging.getLogger(__name__)

# The newest of them are kept.
KEPT = 1000


def refuse_late(claim: Claim, said: str) -> None:
    """Note that an answer came too late; said: what it would have written."""
    row: Build | Run | None
    if claim.kind == "build":
        row = Build.objects.filter(pk=claim.id).only("state", "claimed_by").first()
    else:
        row = Run.objects.filter(pk=claim.id).only("state", "claimed_by").first()
    why = _became(row)
    log.warning("%s %s: “%s” arrived too late and was discarded: %s", claim.kind, claim.id, said, why)
    late = LateAnswer.objects.create(
        kind=claim.kind,
        work=claim.id,
        target=claim.target,
        worker=worker_identity(),
        said=storable_text(said, 1000),
        why=why,
    )
    LateAnswer.objects.filter(pk__lte=late.pk - KEPT).delete()


def _became(row: Build | Run | None) -> str:
    if row is None:
        return "it was deleted"
    if row.claimed_by:
        return f"{row.claimed_by} now has the claim"
    return f"it is {row.state} now"
