# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot kernels as transient libvirt guests on this host."""

from __future__ import annotations

import atexit
import logging
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import libvirt

from kernels.architecture import BUILT
from kernels.processes.environment import minimal
from workers.drivers.access import check_own, check_readable, mend_kvm
from workers.drivers.base import BootRequest, Disk, ReadMemory
from workers.drivers.calls import bring_home, own_directory
from workers.drivers.domain_xml import Wiring, domain_xml
from workers.drivers.guest_session import Ending, GuestSession
from workers.drivers.hypervisor import Hypervisor
from workers.drivers.leftovers import Alive, BootId, Traces, process_alive
from workers.drivers.streams import Fifo, LocalStreams, Streams, accept, listen
from workers.errors import DomainRefused, MachineUnfit, PluginUnusable, TargetLost, WorkersError

log = logging.getLogger(__name__)

CONNECT_DEADLINE_S = 15.0
COMMAND_DEADLINE_S = 60
LEAVE_DEADLINE_S = 20.0
WHY_DEADLINE_S = 10.0
# How often to ask a libvirt that was killed to end a guest, until it is back.
AGAIN_S = 1.0


@dataclass
class LibvirtDriver:
    """Boots on this host's libvirt: qemu:///system for root, qemu:///session for others.

    home: the state root; guests of different roots do not meet. Raises LibvirtMissing when made.
    """

    home: Path
    uri: str = ""
    _leaving: list[_Leave] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        atexit.register(self.close)
        self.traces = Traces(self.home)
        self.hypervisor = Hypervisor(self.uri)
        self.user = self.hypervisor.qemu_user()
        mend_kvm(self.user)

    @contextmanager
    def boot(self, request: BootRequest) -> Iterator[GuestSession]:
        """See base.Driver.boot; also raises TargetLost, TargetUnready, MachineUnfit."""
        self._await_rest()
        boot = BootId.new()
        name = f"{self.traces.prefix}{boot}"
        with ExitStack() as stack:
            # Entered first, so left last: whatever fails from here on, nothing stays behind.
            leave = stack.enter_context(self._leaving_nothing(boot, name))
            wiring = self._wire(request, boot, name)
            listeners = [
                stack.enter_context(_listener(path, request)) for path in (wiring.console, wiring.records)
            ]
            for path in (
                request.kernel,
                request.initrd,
                *((scope.plugin, scope.functions) if (scope := request.microscope) else ()),
                *wiring.overlays,
                *(disk.path for disk in request.disks),
            ):
                check_readable(path, self.user)
            started_at = time.monotonic()
            try:
                self.hypervisor.start(domain_xml(request, wiring))
            except DomainRefused as error:
                raise plugin_refused(error) if request.microscope else error from error
            console, records = (
                accept(listener, CONNECT_DEADLINE_S) if isinstance(listener, socket.socket) else listener
                for listener in listeners
            )
            streams = leave.streams = LocalStreams(
                console,
                records,
                request.console.open("wb"),
                request.raw_records.open("wb"),
            )
            facts = {"machine": BUILT.machine, **self.hypervisor.versions()}
            session = _LibvirtSession(request, streams, _Remote(self.hypervisor, name), facts)
            session.greet()
            session.host["boot_s"] = time.monotonic() - started_at
            yield session
            if wiring.calls:
                bring_home(wiring.calls.parent, request.directory)

    def sweep(self, alive: Alive = process_alive) -> list[str]:
        """Remove guests, sockets and overlays of workers of this home that have ended; returns what it removed."""
        removed = []
        for name in self.hypervisor.domains(self.traces.prefix):
            boot = BootId.read(name)
            if not alive(boot.pid, boot.started):
                self.hypervisor.destroy(name)
                removed.append(name)
        for boot in self.traces.boots():
            if not alive(boot.pid, boot.started):
                self.traces.remove(boot)
                removed.append(str(boot))
        return removed

    def close(self) -> None:
        """Wait until libvirt has forgotten the last guests; any that remain are left to the next sweep."""
        for leave in self._leaving:
            leave.join(LEAVE_DEADLINE_S)

    def _await_rest(self) -> None:
        """Raise TargetLost while a guest that should be gone still runs: it would disturb the measurement."""
        for leave in self._leaving:
            if not leave.hung_up:
                leave.join(LEAVE_DEADLINE_S)
                if leave.is_alive():
                    raise TargetLost(f"guest {leave.name} still runs: libvirt has not ended it yet")

    def _wire(self, request: BootRequest, boot: BootId, name: str) -> Wiring:
        """Make the directories and overlays of a boot."""
        request.directory.mkdir(parents=True, exist_ok=True)
        sockets, overlays = self.traces.sockets / str(boot), self.traces.overlays / str(boot)
        for directory in (sockets, overlays):
            directory.mkdir(parents=True)
            # QEMU's user passes through; the files in it belong to root until libvirt lends them.
            directory.chmod(0o711)
            check_own(directory.parent)
            directory.parent.chmod(0o711)
        images = tuple(_overlay(disk, overlays / f"{disk.serial}.qcow2") for disk in request.disks)
        calls = own_directory(overlays / "calls", self.user) / "calls" if request.microscope else None
        return Wiring(name, sockets / "console", sockets / "records", images, calls)

    @contextmanager
    def _leaving_nothing(self, boot: BootId, name: str) -> Iterator[_Leave]:
        leave = _Leave(name)
        try:
            yield leave
        finally:
            leave.begin(lambda: self._remove(boot, name))
            # Once QEMU has hung up on us it is dead. libvirt may notice only seconds later where process 1
            # is slow to reap it, and the next boot need not wait for that.
            leave.drain()
            self._leaving = [other for other in self._leaving if other.is_alive()] + [leave]

    def _remove(self, boot: BootId, name: str) -> None:
        is_logged = False
        while True:
            try:
                self.hypervisor.destroy(name)
                break
            except (libvirt.libvirtError, WorkersError) as error:
                if not is_logged:
                    log.warning("guest %s could not be destroyed; this is retried: %s", name, error)
                is_logged = True
            time.sleep(AGAIN_S)
        self.traces.remove(boot)


@dataclass(frozen=True, slots=True)
class _Remote:
    """One guest, seen from outside."""

    hypervisor: Hypervisor
    name: str

    def how_it_ended(self) -> Ending:
        return self.hypervisor.how_it_ended(self.name, WHY_DEADLINE_S)

    def interrupt(self) -> None:
        self.hypervisor.interrupt(self.name)


class _LibvirtSession(GuestSession):
    """A session with a guest whose memory can be read."""

    def __init__(
        self, request: BootRequest, streams: Streams, machine: _Remote, facts: Mapping[str, Any]
    ) -> None:
        super().__init__(request, streams, machine, facts)
        self._guest = machine

    @contextmanager
    def memory(self) -> Iterator[ReadMemory]:
        """See base.Session.memory."""
        hypervisor, name = self._guest.hypervisor, self._guest.name
        with hypervisor.stopped(name):
            yield partial(hypervisor.peek, name)


@dataclass
class _Leave:
    """One guest being taken down, with its remaining output. hung_up: its QEMU has certainly ended."""

    name: str
    streams: Streams | None = None
    hung_up: bool = False
    _takedown: threading.Thread | None = None

    def begin(self, takedown: Callable[[], None]) -> None:
        """Take the guest down in a thread, however long that takes, which does not keep this process from exiting."""
        self._takedown = threading.Thread(target=takedown, name=f"leave {self.name}", daemon=True)
        self._takedown.start()

    def is_alive(self) -> bool:
        """Return whether it is still being taken down."""
        return self._takedown is not None and self._takedown.is_alive()

    def join(self, timeout_s: float) -> None:
        """Wait until it is down."""
        if self._takedown is not None:
            self._takedown.join(timeout_s)

    def drain(self) -> None:
        """Read on until the guest has stopped, then close the streams."""
        end = time.monotonic() + LEAVE_DEADLINE_S
        while self.is_alive() and not self.hung_up and time.monotonic() < end:
            if self.streams is None:
                self.join(LEAVE_DEADLINE_S)
            else:
                self.hung_up = self.streams.drain(0.1)
        if self.streams is not None:
            self.streams.close()


def plugin_refused(error: DomainRefused) -> WorkersError:
    """Return the error for a start that was refused; with a plugin, the likely reason is a QEMU without plugins."""
    if "plugin" not in str(error):
        return error
    return PluginUnusable(
        f"{error}; exact profiles and the contention clock need a QEMU built with --enable-plugins, such as Debian's",
        error.detail,
    )


def _listener(path: Path, request: BootRequest) -> AbstractContextManager[Fifo | socket.socket]:
    return Fifo(path) if request.machine.clock == "instructions" else listen(path)


def _overlay(disk: Disk, path: Path) -> Path:
    """Make a qcow2 file for the guest's changes to a golden image."""
    command = [
        "qemu-img",
        "create",
        "-q",
        "-f",
        "qcow2",
        "-b",
        str(disk.path.resolve()),
        "-F",
        disk.format,
        str(path),
    ]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, env=minimal()
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise MachineUnfit(f"no overlay of {disk.path}: {error}", str(error.stderr or "")) from error
    except FileNotFoundError as error:
        raise MachineUnfit('"qemu-img" is not installed: apt-get install qemu-utils') from error
    return path
