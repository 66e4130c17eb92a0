# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots kernels on machines: power by their BMC, kernel and initrd over the network, records back over HTTP.

The machine fetches its script, kernel and initrd from the lab's web server and hands in what it has to say there; we
meet it in the tables alone (lab/netboot/). docs/howto/netboot.md says what its network needs.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from django.db import connections

from lab.errors import LabError
from lab.netboot.address import netboot_url
from lab.netboot.boots import (
    Opening,
    close_netboot,
    extend_netboot,
    left_on,
    netboot_progress,
    open_netboot,
)
from lab.netboot.files import offer_initrd, withdraw_initrd
from lab.queries.machines import access_of, is_booting
from lab.targets.machine import Access, read_access
from workers.drivers.base import BootRequest
from workers.drivers.guest_session import GuestSession
from workers.drivers.posted import POLL_S, PostedStreams
from workers.errors import MachineUnfit, NeverFetched, NotLoaded, WorkersError
from workers.power.apart import power_of
from workers.power.base import Power
from workers.power.console import console_of, console_words

log = logging.getLogger(__name__)

CMDLINE = (
    # The kernel asks for an address itself: when the agent starts there is a network.
    "ip=dhcp",
    # As guests: a kernel that oopsed measures nothing any more. It starts again, and asks for its script again.
    "oops=panic",
    "panic=-1",
    "quiet",
    "loglevel=5",
    "nokaslr",
    "cryptomgr.notests",
    "rcupdate.rcu_expedited=1",
    "random.trust_cpu=on",
)
# What COMMAND_LINE_SIZE of x86 leaves beside the address to report to.
LONGEST_CMDLINE = 1800
TOKEN = re.compile(r"(/netboot/)[\w-]{20,}")
LIFETIME_SLACK_S = 120.0


@dataclass
class MetalDriver:
    """Boots the machine that a request's access reaches.

    home: the state root, below which the web server of this lab finds artifacts and initrds.
    fetch_deadline_s: from power-on to the script: a server's firmware takes minutes. load_deadline_s: from there to the
    initrd.
    """

    home: Path
    power_of: Callable[[Access], Power] = power_of
    fetch_deadline_s: float = 600.0
    load_deadline_s: float = 120.0
    _leaving: dict[str, Thread] = field(default_factory=dict, init=False)

    @contextmanager
    def boot(self, request: BootRequest) -> Iterator[MachineSession]:
        """See base.Driver.boot; also raises NeverFetched, NotLoaded, MachineUnfit and the errors of workers.power."""
        _check(request)
        access = _access(request)
        power = self.power_of(access)
        request.directory.mkdir(parents=True, exist_ok=True)
        if leaving := self._leaving.pop(request.target, None):
            leaving.join()
        with ExitStack() as stack:
            boot_id = _open(request, access, self.home, self.fetch_deadline_s + self.load_deadline_s)
            # From here on, whatever happens: the machine is off in the end, or known to have been left on.
            stack.callback(self._leave, power, boot_id, request.target)
            initrd = str(request.initrd.relative_to(self.home))
            stack.callback(withdraw_initrd, initrd)
            offer_initrd(initrd)
            console = None
            if access.console.kind != "none":
                stack.enter_context(console_of(access, request.console))
                console = request.console
            power.turn_off()
            power.boot_from_network()
            started_at = time.monotonic()
            power.turn_on()
            fetched_s = self._await_files(boot_id, access, started_at)
            streams = PostedStreams(
                boot_id, power.is_on, console, request.raw_records, _posted_console(request, console)
            )
            stack.callback(streams.close)
            session = MachineSession(request, streams, boot_id, {"power": access.power.kind})
            session.greet()
            session.host |= {
                "firmware_s": fetched_s,
                "boot_s": time.monotonic() - started_at,
                "fetched_from": netboot_progress(boot_id).fetched_from,
            }
            yield session

    def sweep(self) -> list[str]:
        """Turn off machines that a process that is gone had booted; returns their names."""
        removed = []
        for one in left_on():
            if is_booting(one.target):
                # Whoever boots it now turned it off first.
                continue
            try:
                self.power_of(access_of(one.target)).turn_off()
            except (WorkersError, LabError) as error:
                log.warning("%s was left on and cannot be turned off: %s", one.target, error)
                continue
            close_netboot(one.id)
            removed.append(one.target)
        return removed

    def _leave(self, power: Power, boot_id: int, target: str) -> None:
        """Turn the machine off in a thread of its own, which an interrupt of ours does not reach, and wait for it."""
        thread = Thread(target=_turn_off, args=(power, boot_id, target), name=f"turn off {target}")
        self._leaving[target] = thread
        thread.start()
        thread.join()

    def _await_files(self, boot_id: int, access: Access, started_at: float) -> float:
        """Wait until the machine has asked for its initrd; returns the seconds from power-on to its script.

        Raises NeverFetched, NotLoaded.
        """
        fetched_s = 0.0
        end = started_at + self.fetch_deadline_s
        while True:
            progress = netboot_progress(boot_id)
            now = time.monotonic()
            if progress.loaded:
                return fetched_s or now - started_at
            if progress.fetches > 1:
                raise NotLoaded(
                    f"the machine asked for its script {progress.fetches} times and for no kernel in between: it starts "
                    f"again and again, or somebody else asks as {access.mac} (first from {progress.fetched_from})"
                )
            if progress.fetches and not fetched_s:
                fetched_s, end = now - started_at, now + self.load_deadline_s
            if now >= end and fetched_s:
                raise NotLoaded(
                    f"the machine fetched its script (from {progress.fetched_from}) but not its kernel and initrd within "
                    f"{self.load_deadline_s:g} s: can it reach {netboot_url()}?"
                )
            if now >= end:
                raise NeverFetched(
                    f"the machine is on, but did not ask for its script within {self.fetch_deadline_s:g} s: does it boot "
                    f"from the network, and does DHCP send it to {netboot_url()}/netboot/{access.mac}.ipxe?"
                )
            time.sleep(POLL_S)


class MachineSession(GuestSession):
    """A Session with a machine. What the lab's own host is like does not matter to it, so `host` is about the boot."""

    noun = "machine"

    def __init__(
        self, request: BootRequest, streams: PostedStreams, boot_id: int, facts: dict[str, Any]
    ) -> None:
        super().__init__(request, streams, _Outside(streams), {**facts, "machine": "metal"})
        self._boot_id = boot_id

    def greet(self) -> None:
        """See GuestSession.greet. The token in its command line is of no use to anybody else: it is not kept."""
        super().greet()
        self.hello["cmdline"] = TOKEN.sub(r"\1…", str(self.hello.get("cmdline", "")))

    def records(self, deadline_s: float) -> Iterator[Any]:
        """See base.Session.records."""
        extend_netboot(self._boot_id, deadline_s + LIFETIME_SLACK_S)
        return super().records(deadline_s)

    def show_stacks(self) -> None:
        """Nothing: there is no way to ask a machine from outside that all BMCs have."""

    def host_facts(self) -> dict[str, Any]:
        """Nothing: the worker's host is not the machine's."""
        return {}

    def host_change(self) -> dict[str, Any]:
        """Nothing; see host_facts."""
        return {}


@dataclass(frozen=True, slots=True)
class _Outside:
    """A machine seen from outside, once it is gone without a bye."""

    streams: PostedStreams

    def ended_itself(self) -> bool:
        """One that starts again did it by itself; one that is off may have been turned off."""
        return self.streams.reset

    def interrupt(self) -> None:
        """Nobody asks: see MachineSession.show_stacks."""


def _check(request: BootRequest) -> None:
    """Raise MachineUnfit for what no machine can do."""
    if request.machine.clock == "instructions":
        raise MachineUnfit(
            "no machine has an instruction clock: take a guest as the target, or the wall clock"
        )
    if request.disks:
        raise MachineUnfit("a machine has no disks of ours: its plan must bring them along")


def _access(request: BootRequest) -> Access:
    try:
        return read_access(request.access)
    except LabError as error:
        raise MachineUnfit(f"target {request.target}: {error}") from error


def _open(request: BootRequest, access: Access, home: Path, before_s: float) -> int:
    """Let the machine boot, for as long as that may take. Raises MachineUnfit."""
    words = [*CMDLINE, console_words(access)]
    if access.console.kind == "none":
        words.append("kperflab.console=report")
    cmdline = " ".join(filter(None, (*words, request.cmdline)))
    if len(cmdline) > LONGEST_CMDLINE:
        raise MachineUnfit(f"a command line of {len(cmdline)} bytes is too long; {LONGEST_CMDLINE} fit")
    try:
        netboot_url()
        return open_netboot(
            Opening(
                target=request.target,
                artifact_key=request.kernel.parent.name,
                initrd=str(request.initrd.relative_to(home)),
                cmdline=cmdline,
                lifetime_s=before_s + request.boot_deadline_s + LIFETIME_SLACK_S,
            )
        )
    except LabError as error:
        raise MachineUnfit(str(error)) from error


def _posted_console(request: BootRequest, console: Path | None) -> Path:
    """Where the machine's own account of its console goes: it sends none where there is a console."""
    return request.console if console is None else Path("/dev/null")


def _turn_off(power: Power, boot_id: int, target: str) -> None:
    try:
        try:
            power.turn_off()
        except WorkersError as error:
            log.error("%s is left on, and turned off as soon as its BMC answers: %s", target, error)
            extend_netboot(boot_id, 0)
        else:
            close_netboot(boot_id)
    finally:
        connections.close_all()
