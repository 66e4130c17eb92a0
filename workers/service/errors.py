# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that keep the service from starting on this machine: one line that names the thing and the way out."""

from workers.errors import WorkersError


class ServiceFailed(WorkersError):
    """A program that does not come up; `detail` holds the end of its log."""


class ServiceDown(WorkersError):
    """There is no service to ask."""
