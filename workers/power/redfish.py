# SPDX-License-Identifier: GPL-2.0-or-later
"""Power by Redfish, with sushy.

Every question is a request of its own under HTTP's basic authentication: each time one of our processes is killed, a
session would stay with the BMC, which has few. Run in a separate process (apart.py): a read of the library is limited
by a pause, not by a total time, so a BMC that sends a byte now and then would block it for ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import sushy
from requests.exceptions import SSLError
from sushy import exceptions
from sushy.auth import BasicAuth
from sushy.resources.system.system import System

from lab.targets.access_schema import RedfishPower
from workers.errors import BmcFailed, BmcRefused
from workers.power.base import await_state, read_password

CONNECT_S, READ_S = 10, 20
PXE = sushy.BOOT_SOURCE_TARGET_PXE
ONCE = sushy.BOOT_SOURCE_ENABLED_ONCE
DISABLED = sushy.BOOT_SOURCE_ENABLED_DISABLED
LONGEST = 300


class Redfish:
    """A Power; see base.Power."""

    def __init__(self, access: RedfishPower) -> None:
        self._access = access
        self._password = read_password(access.password_file)
        self._who = f"the BMC at {access.address}"

    def is_on(self) -> bool:
        """See Power."""
        with self._translated():
            return _is_on(self._system())

    def turn_on(self) -> None:
        """See Power."""
        self._turn(True, (sushy.RESET_TYPE_ON, sushy.RESET_TYPE_FORCE_ON))

    def turn_off(self) -> None:
        """See Power."""
        self._turn(False, (sushy.RESET_TYPE_FORCE_OFF,))

    def boot_from_network(self) -> None:
        """See Power."""
        with self._translated():
            system = self._system()
            system.set_system_boot_options(target=PXE, enabled=ONCE)
            system.refresh(force=True)
        # Emulated BMCs keep it for longer than once; off is the only answer that is wrong.
        if system.boot.target != PXE or system.boot.enabled in {None, DISABLED}:
            raise BmcFailed(f"{self._who} accepted the order to boot from the network, but did not set it")

    def _turn(self, wanted: bool, resets: tuple[sushy.ResetType, ...]) -> None:
        with self._translated():
            system = self._system()
            if _is_on(system) == wanted:
                return
            allowed = system.get_allowed_reset_system_values()
            reset = next((candidate for candidate in resets if candidate in allowed), resets[0])
            system.reset_system(reset)

            def is_on() -> bool:
                system.refresh(force=True)
                return _is_on(system)

            # A Redfish service may answer "202, later": the machine's state shows whether it happened.
            await_state(is_on, wanted, self._who)

    def _system(self) -> System:
        root = sushy.Sushy(
            self._access.address,
            auth=BasicAuth(self._access.user, self._password),
            verify=self._access.verify,
            # One try, and one more where the BMC says 5xx: 0 would mean three.
            server_side_retries=1,
            server_side_retries_delay=1,
            read_timeout=READ_S,
            connect_timeout=CONNECT_S,
        )
        name = self._access.system
        path = name if name.startswith("/") or not name else f"/redfish/v1/Systems/{name}"
        return root.get_system(path or None)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        access = self._access
        try:
            yield
        except exceptions.AccessError as error:
            raise BmcRefused(
                f'{self._who} does not let user "{access.user}" do this (HTTP {error.status_code}): '
                f"see user, role and {access.password_file}"
            ) from None
        except exceptions.ResourceNotFoundError:
            raise BmcRefused(
                f'{self._who} has no machine "{access.system}": give power.system as its Systems list does'
            ) from None
        except exceptions.ServerSideError as error:
            raise BmcFailed(
                f"{self._who} answers HTTP {error.status_code}: {self._without_password(error)}"
            ) from None
        except exceptions.UnknownDefaultError:
            raise BmcRefused(
                f"{self._who} has not exactly one machine: name one of them in power.system"
            ) from None
        except exceptions.ConnectionError as error:
            if _is_of_tls(error):
                raise BmcRefused(
                    f"{self._who} has a certificate that is not trusted: name its CA's file in power.verify "
                    f"({self._without_password(error)})"
                ) from None
            raise BmcFailed(f"{self._who} does not answer: {self._without_password(error)}") from None
        except (exceptions.SushyError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BmcRefused(
                f"{self._who} does not answer as Redfish does: {self._without_password(error)}"
            ) from None

    def _without_password(self, error: BaseException) -> str:
        text = " ".join(str(error).split()).replace(self._password, "***")
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _is_on(system: System) -> bool:
    """Return whether it has power: a machine that is only starting, or still stopping, has."""
    return system.power_state not in {None, sushy.PowerState.OFF}


def _is_of_tls(error: BaseException) -> bool:
    """Return whether the library's error is about a certificate: it passes on the text alone."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SSLError):
            return True
        cause = cause.__context__
    return False
