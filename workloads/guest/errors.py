# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong between us and a guest's user space."""

from __future__ import annotations

from workloads.errors import Blame, WorkloadsError


class GuestToolMissing(WorkloadsError):
    """A program of the guest's user space is not installed here; names the Debian package."""


class AgentNotCompiled(WorkloadsError):
    """gcc refused the agent; `detail` holds what it said."""


class PlanNotPackable(WorkloadsError):
    """A plan that the agent could not read: a name with blanks, a zero byte, no time."""

    blame: Blame = "submission"


class RecordCorrupt(WorkloadsError):
    """A record was lost or damaged between the guest and us."""

    retry = True

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"record {seq} from the guest is damaged: {why}")
        self.seq = seq
