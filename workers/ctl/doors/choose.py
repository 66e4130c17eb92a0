# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the client of a command, local or remote, from an option, the environment or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workers.ctl.doors.base import Door, Say
from workers.ctl.doors.errors import NoDoor
from workers.ctl.preferences import Preferences, config_file, read_preferences

if TYPE_CHECKING:
    from workers.ctl.doors.remote import RemoteDoor


@contextmanager
def open_door(*, is_local: bool, server: str, say: Say, hasty: bool = False) -> Iterator[Door]:
    """The door that these options name, or else the preferences. Raises NoDoor, PreferencesWrong.

    hasty: a shell waits; one attempt of a second.
    """
    if is_local and server:
        raise NoDoor(f"--local is this machine, --server is {server}: give one of them")
    found = read_preferences()
    if is_local or (found.local and not server):
        yield local_door()
        return
    with remote_door(found, server, say, hasty=hasty) as door:
        yield door


def local_door() -> Door:
    """The lab in this process. Makes Django ready, which takes a while: nothing else does."""
    from workers.ctl.doors.local import LocalDoor

    return LocalDoor()


@contextmanager
def remote_door(
    found: Preferences, server: str, say: Say, *, hasty: bool = False, token: str | None = None
) -> Iterator[RemoteDoor]:
    """The lab at an address, with `token` or else the one for it. Raises NoDoor, PreferencesWrong."""
    from workers.ctl.doors.http import Server
    from workers.ctl.doors.remote import RemoteDoor

    url = address(found, server)
    door = RemoteDoor(
        Server(url, token=token_for(found, url) if token is None else token, say=say, hasty=hasty)
    )
    try:
        yield door
    finally:
        door.close()


def address(found: Preferences, server: str) -> str:
    """The server's URL. Raises NoDoor."""
    url = (server or found.server).rstrip("/")
    if not url:
        raise NoDoor(
            f"no server is named: --server URL, LABCTL_SERVER, or server in {config_file()}; "
            "or add --local to work on this machine alone"
        )
    return url


def token_for(found: Preferences, url: str) -> str:
    """The token for a server: LABCTL_TOKEN, else what `labctl login` kept for this very address."""
    from workers.ctl.tokenfile import read_token

    return found.token or read_token(found.token_file, url)
