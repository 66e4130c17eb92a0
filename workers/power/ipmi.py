# SPDX-License-Identifier: GPL-2.0-or-later
"""Power by IPMI 2.0 over LAN, with pyghmi.

The library keeps its sessions and one thread for all of them in the process, shares a session between all that use
the same BMC, and waits for ever where that thread has died, as after a fork. So it is used in a separate
process (apart.py), one at a time, and only for plain chassis commands (IPMI 2.0, chapter 28): its own set_power first
queries the machine's maker, and then works in that maker's way.
"""

import hashlib
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyghmi.exceptions import IpmiException
from pyghmi.ipmi.command import Command
from pyghmi.ipmi.private.session import Session

from lab.targets.access_schema import IpmiPower, host_and_port
from workers.errors import BmcFailed, BmcRefused
from workers.power.base import await_state, read_password

CHASSIS, STATUS, CONTROL = 0, 1, 2
POWER_DOWN, POWER_UP = 0, 1
# Words in the library's messages for a refused login; its other messages for logins mean no answer, or "retry".
REFUSALS = (
    *("password", "Unauthorized", "RAKP4", "Invalid username", "privileg", "privelege", "cipher", "Cipher"),
)
BUSY = {0xC0, 0xC3, 0xD0, 0xFFFF}
SHA1 = 1
# Offsets in the answer to "open session" (IPMI 2.0, table 13-10): its status, and the algorithm of the login.
STATUS_AT, LOGIN_ALGORITHM_AT = 1, 16


class Ipmi:
    """A Power; see base.Power."""

    def __init__(self, access: IpmiPower) -> None:
        self._access = access
        self._password = read_password(access.password_file)
        self._who = f"the BMC at {access.address}"

    def is_on(self) -> bool:
        """See Power."""
        with self._opened() as bmc:
            return self._is_on(bmc)

    def turn_on(self) -> None:
        """See Power."""
        self._turn(True)

    def turn_off(self) -> None:
        """See Power."""
        self._turn(False)

    def boot_from_network(self) -> None:
        """See Power."""
        with self._opened() as bmc:
            bmc.set_bootdev("network", persist=False)
            boot_device = bmc.get_bootdev()
        if boot_device.get("bootdev") != "network":
            raise BmcFailed(f"{self._who} accepted the order to boot from the network, but did not set it")

    def _turn(self, wanted: bool) -> None:
        with self._opened() as bmc:
            if self._is_on(bmc) == wanted:
                return
            self._ask(bmc, CONTROL, (POWER_UP if wanted else POWER_DOWN,))
            await_state(lambda: self._is_on(bmc), wanted, self._who)

    def _is_on(self, bmc: Command) -> bool:
        return bool(self._ask(bmc, STATUS)["data"][0] & 1)

    def _ask(self, bmc: Command, command: int, data: tuple[int, ...] = ()) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = bmc.raw_command(netfn=CHASSIS, command=command, data=data)
        if "error" in answer:
            raise self._fault(str(answer["error"]), int(answer.get("code", 0)))
        return answer

    @contextmanager
    def _opened(self) -> Iterator[Command]:
        host, port = host_and_port(self._access.address)
        obey_the_bmcs_choice()
        try:
            bmc = Command(bmc=host, port=port, userid=self._access.user, password=self._password)
            try:
                yield bmc
            finally:
                bmc.ipmi_session.logout()
        except IpmiException as error:
            raise self._fault(str(error), int(error.ipmicode or 0)) from None
        except socket.gaierror as error:
            raise BmcFailed(f"{self._who} is not to be found: {error.strerror}") from None
        except OSError as error:
            raise BmcFailed(f"{self._who} does not answer: {error.strerror or error}") from None
        except (struct.error, LookupError, TypeError, ValueError, AssertionError) as error:
            raise BmcRefused(
                f"{self._who} does not answer as IPMI 2.0 does: {type(error).__name__}"
            ) from None

    def _fault(self, said: str, code: int) -> BmcRefused | BmcFailed:
        said = " ".join(said.split()).replace(self._password, "***")
        if any(word in said for word in REFUSALS):
            return BmcRefused(
                f'{self._who} does not let user "{self._access.user}" in ({said}): '
                f"see user and {self._access.password_file}"
            )
        if code and code not in BUSY:
            return BmcRefused(f"{self._who} will not: {said} (code {code:#x})")
        return BmcFailed(f"{self._who} does not answer: {said or 'no session'}")


def obey_the_bmcs_choice() -> None:
    """Use the login algorithm that the BMC chose.

    pyghmi 1.6 proposes SHA-256 and assumes it once the BMC has agreed, although the BMC may choose SHA-1, as
    virtualbmc does: the login then fails over the length of a checksum.
    """
    own = Session._got_rmcp_response
    if own.__module__ == __name__:
        return

    def got_rmcp_response(self: Any, data: Any) -> Any:
        if len(data) > LOGIN_ALGORITHM_AT and not data[STATUS_AT] and data[LOGIN_ALGORITHM_AT] & 0x3F == SHA1:
            self.attemptedhash, self.currhashlib, self.currhashlen = SHA1, hashlib.sha1, 12
        return own(self, data)

    Session._got_rmcp_response = got_rmcp_response
