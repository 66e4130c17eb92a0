# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab's own layer raises; `blame` and `retry` decide what happens next in one place."""

from typing import ClassVar, Literal

Blame = Literal["submission", "kernel", "lab"]


class LabError(Exception):
    """Base of this package's errors: `str()` is one clear line, `detail` the long part."""

    blame: ClassVar[Blame] = "lab"
    retry: ClassVar[bool] = False

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class SpecError(LabError):
    """The experiment description is wrong: names the field, the value given and the valid ones."""

    blame: ClassVar[Blame] = "submission"


class SubmissionRejected(LabError):
    """A well-formed description that cannot be carried out, such as one without its tree."""

    blame: ClassVar[Blame] = "submission"


class LabUnable(LabError):
    """A submission that the lab could not even look at, for a reason of its own such as a full disk."""


class IllegalMove(LabError):
    """Our own code asked for a change of state that the tables in states.py do not know."""


class UnknownRow(LabError):
    """No row has that number."""

    blame: ClassVar[Blame] = "submission"


class MeasurementRefused(LabError):
    """A sample that is no finite number: the workload's reader is wrong, not the kernel."""
