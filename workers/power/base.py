# SPDX-License-Identifier: GPL-2.0-or-later
"""Power control of machines, and the client for each kind of BMC."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from workers.errors import BmcFailed, BmcRefused

STATE_DEADLINE_S = 60.0
"""From a command to the state it asked for; servers take some seconds to cut their power."""
SETTLE_S = 2.0
"""A machine that is on is asked once more after this time: one with a broken supply is off again."""
POLL_S = 1.0
PASSWORD_LIMIT = 1024


class Power(Protocol):
    """A machine's power switch. Every method ends within a deadline.

    All raise BmcFailed, BmcRefused.
    """

    def is_on(self) -> bool:
        """Return whether the BMC says that the machine is on."""

    def turn_on(self) -> None:
        """Turn it on, and return once it is; nothing happens to one that is on."""

    def turn_off(self) -> None:
        """Cut its power, whatever it does, and return once it is off; nothing happens to one that is off."""

    def boot_from_network(self) -> None:
        """Make the next boot, and only that one, a network boot; the setting is read back from the BMC."""


def await_state(is_on: Callable[[], bool], wanted: bool, who: str) -> None:
    """Return once the machine is in the state, and stays there. Raises BmcFailed."""
    word = "on" if wanted else "off"
    end = time.monotonic() + STATE_DEADLINE_S
    while is_on() != wanted:
        if time.monotonic() >= end:
            raise BmcFailed(
                f"{who} took the command to turn the machine {word}, and after {STATE_DEADLINE_S:g} s it is not"
            )
        time.sleep(POLL_S)
    if wanted:
        time.sleep(SETTLE_S)
        if not is_on():
            raise BmcFailed(
                f"{who} said that the machine is on, and {SETTLE_S:g} s later it is off: see to its supply"
            )


def read_password(path: str) -> str:
    """Return the first line of a password's file. Raises BmcRefused."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            password = file.readline(PASSWORD_LIMIT).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BmcRefused(f'password file "{path}": {why}; put the password into its first line') from None
    if not password:
        raise BmcRefused(f'password file "{path}" is empty; put the password into its first line')
    return password
