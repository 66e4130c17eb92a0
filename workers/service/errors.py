# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that keep the service from starting on this machine: one line that names the thing and the way out."""

from workers.errors import WorkersError


class ProgramMissing(WorkersError):
    """A program of Debian's that the service is made of."""


class PortTaken(WorkersError):
    """Somebody else listens where the pages should be."""


class NoRoom(WorkersError):
    """Too little space on the disk of the state root."""


class HomeClosed(WorkersError):
    """The user that runs a program cannot reach the state root."""


class ServiceFailed(WorkersError):
    """A program that does not come up; `detail` holds the end of its log."""


class ServiceDown(WorkersError):
    """There is no service to ask."""
