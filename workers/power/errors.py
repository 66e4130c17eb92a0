# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of BMCs. None of their texts holds a password."""

from __future__ import annotations

from workers.errors import WorkersError


class BmcUnreachable(WorkersError):
    """Nobody answers at the BMC's address, not in time, or it says to come again."""

    retry = True


class BmcRefused(WorkersError):
    """The BMC answers and will not: another user or password, no such machine, a certificate that is not trusted."""


class BmcLied(WorkersError):
    """The BMC's report is false: a command accepted but not carried out, or a machine reported on that is off."""

    retry = True


class PasswordUnreadable(WorkersError):
    """The file that holds a BMC's password cannot be read on this worker."""


BMC_ERRORS: dict[str, type[WorkersError]] = {
    error.__name__: error for error in (BmcUnreachable, BmcRefused, BmcLied, PasswordUnreadable)
}
