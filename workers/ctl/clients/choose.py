# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the client of a command, local or remote, from an option, the environment or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workers.ctl.clients.base import Say
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import SettingsWrong
from workers.ctl.preferences import Preferences, config_file, read_preferences

if TYPE_CHECKING:
    from workers.ctl.clients.client import Client


@contextmanager
def open_client(*, is_local: bool, server: str, say: Say, hasty: bool = False) -> Iterator[Client]:
    """The client that these options name, or else the preferences. Raises SettingsWrong.

    hasty: for a shell that waits, one attempt of one second.
    """
    if is_local and server:
        raise SettingsWrong(f"--local and --server {server} exclude each other: give one of them")
    preferences = read_preferences()
    if is_local or (preferences.local and not server):
        yield local_client()
        return
    with remote_client(preferences, server, say, hasty=hasty) as client:
        yield client


def local_client() -> Client:
    """Return the lab in this process. Only this makes Django ready, which takes a while."""
    from workers.ctl.clients.local import LocalClient

    return LocalClient()


@contextmanager
def remote_client(
    preferences: Preferences, server: str, say: Say, *, hasty: bool = False, token: str | None = None
) -> Iterator[Client]:
    """The lab at an address, with `token` or else the one for it. Raises SettingsWrong."""
    from workers.ctl.clients.client import Client
    from workers.ctl.clients.http import Server

    url = address(preferences, server)
    client = Client(
        Server(url, token=token_for(preferences, url) if token is None else token, say=say, hasty=hasty)
    )
    try:
        yield client
    finally:
        client.close()


def address(preferences: Preferences, server: str) -> str:
    """Return the server's URL. Raises SettingsWrong."""
    url = (server or preferences.server).rstrip("/")
    if not url:
        raise SettingsWrong(
            f"no server is named: --server URL, LABCTL_SERVER, or server in {config_file()}; "
            "or add --local to work on this machine alone"
        )
    return url


def token_for(preferences: Preferences, url: str) -> str:
    """Return the token for a server: LABCTL_TOKEN, else what `labctl login` kept for this very address."""
    from workers.ctl.tokenfile import read_token

    return preferences.token or read_token(preferences.token_file, url)
