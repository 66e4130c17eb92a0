# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection to libvirt: the choice of daemon, the error if it is missing, and the end of domains."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import libvirt

from kernels.architecture import BUILT
from workers.drivers.guest_session import Ending
from workers.errors import DomainRefused, LibvirtMissing, TargetLost

T = TypeVar("T")

ANSWER_DEADLINE_S = 90.0
"""For any one request; the slowest start of a domain seen took 56 s (see access.mend_kvm)."""
INTERRUPT_DEADLINE_S = 2.0

_ENDINGS: dict[int, Ending] = {
    libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: "itself",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED: "itself",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED: "unclear",
}


@dataclass(frozen=True, slots=True)
class QemuUser:
    """The user and group that libvirt runs QEMU as."""

    uid: int
    gid: int


class Hypervisor:
    """One connection, and how each domain ended."""

    def __init__(self, uri: str = "") -> None:
        self.uri = uri or ("qemu:///system" if os.geteuid() == 0 else "qemu:///session")
        self._ends: dict[str, int] = {}
        self._ended = threading.Condition()
        self._connect()

    @property
    def connection(self) -> libvirt.virConnect:
        """Return the connection; a new one if the daemon has been restarted. Raises LibvirtMissing, TargetLost."""
        if not self._connection.isAlive():
            self._connect()
        return self._connection

    def _connect(self) -> None:
        _start_events(os.getpid())
        self._connection = within(ANSWER_DEADLINE_S, "to open", lambda: _open(self.uri))
        lifecycle = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
        self._connection.domainEventRegisterAny(None, lifecycle, self._on_lifecycle, None)

    def start(self, xml: str) -> None:
        """Start a transient domain, which ends with our connection: a killed worker's guest does not run on.

        Raises DomainRefused, LibvirtMissing, TargetLost.
        """
        connection = self.connection
        try:
            within(
                ANSWER_DEADLINE_S,
                "to start a guest",
                lambda: connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY),
            )
        except libvirt.libvirtError as error:
            if "virtlogd" in str(error):
                raise LibvirtMissing(
                    "libvirt needs virtlogd to start guests; start it: virtlogd -d", str(error)
                ) from error
            # QEMU's own words come last and say most.
            line = str(error).splitlines()[0].rpartition(f"{BUILT.qemu}: ")[2]
            raise DomainRefused(f"libvirt would not start the guest: {line}", f"{error}\n\n{xml}") from error

    def how_it_ended(self, name: str, timeout_s: float) -> Ending:
        """Return what ended a guest that is gone. "outside" also where libvirt does not say, or has stopped itself.

        A guest that found a way to crash its QEMU looks like one whose QEMU was killed: "unclear".
        """
        with self._ended:
            self._ended.wait_for(lambda: name in self._ends, timeout_s)
            return _ENDINGS.get(self._ends.get(name, -1), "outside")

    def destroy(self, name: str) -> None:
        """Make sure that no domain of that name runs."""
        try:
            domain = self.connection.lookupByName(name)
            within(ANSWER_DEADLINE_S, "to destroy a guest", domain.destroy)
        except libvirt.libvirtError as error:
            gone = {libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID}
            if error.get_error_code() not in gone:
                raise TargetLost(f"libvirt cannot destroy {name}: {error}") from error
        with self._ended:
            self._ends.pop(name, None)

    def interrupt(self, name: str) -> None:
        """Send a guest an NMI, which makes a kernel with unknown_nmi_panic show where it is; a guest that has stopped is no error."""
        with suppress(libvirt.libvirtError, TargetLost):
            domain = self.connection.lookupByName(name)
            within(INTERRUPT_DEADLINE_S, "to interrupt a guest", domain.injectNMI)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Stop a guest for as long as the context lasts. Raises TargetLost."""
        self._ask(name, "to stop a guest", lambda domain: domain.suspend())
        try:
            yield
        finally:
            self._ask(name, "to let a guest go on", lambda domain: domain.resume())

    def peek(self, name: str, address: int, size: int) -> bytes:
        """Return a piece of a guest's physical memory. Raises TargetLost."""
        physical = libvirt.VIR_MEMORY_PHYSICAL
        return bytes(
            self._ask(
                name, "to read a guest's memory", lambda domain: domain.memoryPeek(address, size, physical)
            )
        )

    def _ask(self, name: str, what: str, request: Callable[[libvirt.virDomain], T]) -> T:
        """Return the answer of a request about a guest. Raises TargetLost."""
        try:
            domain = self.connection.lookupByName(name)
            return within(ANSWER_DEADLINE_S, what, lambda: request(domain))
        except libvirt.libvirtError as error:
            raise TargetLost(f"libvirt cannot be asked {what}: {error}") from error

    def domains(self, prefix: str) -> list[str]:
        """Names of the running domains that begin with a prefix."""
        return [
            domain.name() for domain in self.connection.listAllDomains() if domain.name().startswith(prefix)
        ]

    def qemu_user(self) -> QemuUser:
        """Return the user that must be able to read a guest's files; ourselves with a session daemon."""
        match = re.search(
            r"<baselabel type='qemu'>\+(\d+):\+(\d+)</baselabel>", self.connection.getCapabilities()
        )
        return QemuUser(int(match[1]), int(match[2])) if match else QemuUser(os.geteuid(), os.getegid())

    def versions(self) -> dict[str, str]:
        """Return the versions of QEMU and libvirt, as people write them."""
        return {
            "qemu": _dotted(self.connection.getVersion()),
            "libvirt": _dotted(self.connection.getLibVersion()),
        }

    def _on_lifecycle(
        self, _connection: object, domain: libvirt.virDomain, event: int, detail: int, _opaque: object
    ) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
            with self._ended:
                self._ends[domain.name()] = detail
                self._ended.notify_all()


def within(deadline_s: float, what: str, request: Callable[[], T]) -> T:
    """Return the answer of a request to libvirt, whose calls have no deadline of their own.

    Raises TargetLost when it does not come in time; the request's own thread is left behind then.
    """
    answers: list[T] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(request())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True, name=f"libvirt {what}")
    thread.start()
    thread.join(deadline_s)
    if errors:
        raise errors[0]
    if not answers:
        raise TargetLost(f"libvirt took more than {deadline_s:.0f} s {what}")
    return answers[0]


def _open(uri: str) -> libvirt.virConnect:
    try:
        return libvirt.open(uri)
    except libvirt.libvirtError as error:
        start = "virtlogd -d; libvirtd -d" if uri.endswith("/system") else "libvirtd --daemon"
        raise LibvirtMissing(f"libvirt does not answer at {uri}; start it: {start}", str(error)) from error


def _dotted(version: int) -> str:
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"


@cache
def _start_events(_pid: int) -> None:
    """Run libvirt's event loop in this process: it must run before the first connection, and a fork has none."""
    # Errors come as exceptions; without this libvirt prints them too.
    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    libvirt.virEventRegisterDefaultImpl()

    def run() -> None:
        while True:
            libvirt.virEventRunDefaultImpl()

    threading.Thread(target=run, daemon=True, name="libvirt events").start()
