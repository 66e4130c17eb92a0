# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of workloads, and who is to blame."""

from typing import Literal

Blame = Literal["submission", "kernel", "lab"]


class WorkloadsError(Exception):
    """One clear line in `str()`, the long part (stderr, a file's text) in `detail`."""

    blame: Blame = "lab"
    retry: bool = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class CaseRejected(WorkloadsError):
    """A preset, clock, proof or plan that the workload does not have, or an image too large for the guest; names the valid ones."""

    blame: Blame = "submission"


class UnknownParam(WorkloadsError):
    """The workload has no parameter of that name."""

    blame: Blame = "submission"


class BadParam(WorkloadsError):
    """A parameter's value is of the wrong type, or out of its range."""

    blame: Blame = "submission"


class MachineModelInvalid(BadParam):
    """A machine model that is not known, or whose numbers are out of bounds."""


class BadWorkloadFile(WorkloadsError):
    """A folder's workload.toml or parse_*.py breaks the rules of programs/README.md."""


class GuestNotMade(WorkloadsError):
    """A program, the agent, a disk image or a tool of the guest cannot be made here; `detail` holds what gcc or the tool said."""


class ProgramDiskFull(WorkloadsError):
    """There was no room to compile a program: a workload's, the agent, QEMU's plugin or the replay."""

    retry = True


class WorkloadFailed(WorkloadsError):
    """A step ended with an error, a signal or at its deadline in the guest; an outcome of the run."""

    blame: Blame = "kernel"


class OutputUnreadable(WorkloadsError):
    """The guest's answers do not have the form that the workload promises; an outcome of the run."""

    blame: Blame = "kernel"


class RecordCorrupt(WorkloadsError):
    """A record is damaged or missing.

    The guest writes the records and their checksums: any fault in them is the guest's, never the target's.
    """

    blame: Blame = "kernel"

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"record {seq} from the guest is damaged: {why}")
        self.seq = seq


class RecordUnexpected(WorkloadsError):
    """A record that the plan does not provide for: of another step, an unknown file, or too much of anything."""

    blame: Blame = "kernel"
