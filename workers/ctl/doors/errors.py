# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors between the command line and a server; `blame` gives the exit code (lab: 3, submission: 64)."""

from __future__ import annotations

from typing import ClassVar

from workers.errors import Blame, WorkersError


class DoorError(WorkersError):
    """The base of what a remote door raises: one line, with the server's own words in `detail`."""


class NoDoor(DoorError):
    """Neither a server nor --local was named; says how to name one."""

    blame: ClassVar[Blame] = "submission"


class PreferencesWrong(DoorError):
    """A configuration file or variable that cannot be read; names the file, the key and the valid ones."""

    blame: ClassVar[Blame] = "submission"


class ServerAway(DoorError):
    """Nobody answers at the server's address, or only with 5xx, after all attempts."""

    retry: ClassVar[bool] = True


class ServerStrange(DoorError):
    """An answer that no kperflab gives: another service, or another version of it."""


class ServerBusy(DoorError):
    """429 or 503, and the server asks to wait longer than a command should."""

    retry: ClassVar[bool] = True


class Refused(DoorError):
    """The server refused the request (4xx): the first fault in a line, all of them in `detail`."""

    blame: ClassVar[Blame] = "submission"


class NotKnown(Refused):
    """404: no such row; the line is the server's."""


class NotLetIn(Refused):
    """401: no token, a wrong one, or one that expired; says how to get another."""


class Forbidden(Refused):
    """403: the token or its owner may not do that."""
