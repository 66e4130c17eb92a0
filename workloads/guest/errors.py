# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors between the lab and a guest's user space."""

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
    """A record is damaged or missing.

    The guest writes the records and their checksums: whatever is wrong with them is its own doing, never the target's.
    """

    blame: Blame = "kernel"

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"record {seq} from the guest is damaged: {why}")
        self.seq = seq


class RecordUnexpected(WorkloadsError):
    """A record that its plan does not provide for: another step, an unknown file, too much of anything."""

    blame: Blame = "kernel"
