# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors between the command line and a server; `blame` gives the exit code (lab: 3, submission: 64)."""

from typing import ClassVar

from workers.errors import Blame, WorkersError


class ClientError(WorkersError):
    """The base of what a remote client raises: one line, with the server's own words in `detail`."""


class SettingsWrong(ClientError):
    """No server is named, or an option, a configuration file or a variable is wrong; names it, and what is valid."""

    blame: ClassVar[Blame] = "submission"


class ServerAway(ClientError):
    """Nobody answers at the server's address, it answers 5xx, or it asks to wait longer than a command should."""

    retry: ClassVar[bool] = True


class ServerStrange(ClientError):
    """An answer that no kperflab gives: another service, or another version of it."""


class Refused(ClientError):
    """The server refused the request (4xx): the first fault in a line, the others in `detail`."""

    blame: ClassVar[Blame] = "submission"


class NotLetIn(Refused):
    """401: no token, a wrong one, or one that expired; says how to get another."""
