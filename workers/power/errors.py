# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of BMCs. None of their texts holds a password."""

from __future__ import annotations

from workers.errors import WorkersError


class BmcFailed(WorkersError):
    """The BMC does not answer, not in time, says to come again, or did not carry out what it accepted."""

    retry = True


class BmcRefused(WorkersError):
    """The BMC answers and will not: another user or password, no such machine, a certificate that is not trusted.

    So does one whose password cannot be read on this worker.
    """


BMC_ERRORS: dict[str, type[WorkersError]] = {error.__name__: error for error in (BmcFailed, BmcRefused)}
