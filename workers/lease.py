# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeping a claim while work goes on: renewed now and then, noticed when it was taken back."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from lab.claims import Claim
from lab.queue import renew
from workers.errors import ClaimLost

RENEW_EVERY_S = 20.0


@dataclass
class Lease:
    """A claim's heartbeat: call `beat` often, it writes to the database at most every 20 s."""

    claim: Claim
    _renewed_at: float = field(default_factory=monotonic)

    def beat(self) -> None:
        """Renew when due. Raises ClaimLost when the work is no longer ours, as after a cancel."""
        if monotonic() - self._renewed_at < RENEW_EVERY_S:
            return
        if not renew(self.claim):
            raise ClaimLost(
                f"{self.claim.kind} {self.claim.id} was cancelled, or taken over by another worker"
            )
        self._renewed_at = monotonic()
