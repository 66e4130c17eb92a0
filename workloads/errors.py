# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of workloads, and who is to blame."""

from __future__ import annotations

from typing import Literal

Blame = Literal["submission", "kernel", "lab"]


class WorkloadsError(Exception):
    """One clear line in `str()`, the long part (stderr, a file's text) in `detail`."""

    blame: Blame = "lab"
    retry: bool = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class UnknownPreset(WorkloadsError):
    """The workload has no preset of that name."""

    blame: Blame = "submission"


class UnknownParam(WorkloadsError):
    """The workload has no parameter of that name."""

    blame: Blame = "submission"


class BadParam(WorkloadsError):
    """A parameter's value is of the wrong type, or out of its range."""

    blame: Blame = "submission"


class MachineModelInvalid(BadParam):
    """A machine model that is not known, or whose numbers are out of bounds."""


class NotVerifiable(WorkloadsError):
    """The workload makes no claim that a verified run could count."""

    blame: Blame = "submission"


class ClockUnfit(WorkloadsError):
    """The workload means nothing under the clock that was asked for."""

    blame: Blame = "submission"


class BadWorkloadFile(WorkloadsError):
    """A folder's workload.toml or parse.py breaks the rules of programs/README.md."""


class CompileProgramFailed(WorkloadsError):
    """gcc refused a workload's program; `detail` holds what it said."""


class ProgramDiskFull(WorkloadsError):
    """There was no room to compile a workload's program."""

    retry = True


class ImageFailed(WorkloadsError):
    """A golden disk image could not be made."""


class ImageTooLarge(WorkloadsError):
    """A golden image that does not fit into the memory of a guest that takes it as a ramdisk."""

    blame: Blame = "submission"


class WorkloadFailed(WorkloadsError):
    """A step ended with an error, a signal or at its deadline in the guest; an outcome of the run."""

    blame: Blame = "kernel"


class OutputUnreadable(WorkloadsError):
    """The guest's answers do not have the form that the workload promises; an outcome of the run."""

    blame: Blame = "kernel"
