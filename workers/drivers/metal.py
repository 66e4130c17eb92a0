# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots kernels on machines: power by their BMC or kexec from the previous kernel, files over the network, records back over HTTP.

The machine fetches its script, kernel and initrd from the lab's web server and posts its records there; we
meet it in the tables alone (lab/targets/netboot/). docs/howto/netboot.md says what its network needs.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from django.db import connections

from kernels.architecture import BUILT
from kernels.artifacts.store import sha256_of
from lab.errors import LabError, one_row
from lab.models import Run, Target
from lab.models.states import RunState
from lab.targets.access_schema import Access, read_access
from lab.targets.drivers import MACHINES
from lab.targets.netboot.address import netboot_url
from lab.targets.netboot.boots import (
    Opening,
    close_netboot,
    extend_netboot,
    forget_fetches,
    left_on,
    netboot_progress,
    open_netboot,
)
from lab.targets.netboot.files import offer_initrd, withdraw_initrd
from lab.targets.netboot.next_boot import leave_waiting
from workers.drivers.base import BootRequest, Way
from workers.drivers.kexec import TAKE_S, await_heard, await_waiting
from workers.drivers.machine_session import LIFETIME_SLACK_S, Booting, MachineSession
from workers.drivers.netboot_streams import POLL_S, PostedStreams, check_uncontested
from workers.errors import ClaimLost, MachineUnfit, TargetLost, WorkersError
from workers.power.apart import power_of
from workers.power.base import Power
from workers.power.console import console_of, console_words
from workloads.errors import WorkloadsError

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
# COMMAND_LINE_SIZE of x86, less room for the address to report to.
LONGEST_CMDLINE = 1800
# The console of a kexec that failed, after which the machine booted by power.
KEXEC_CONSOLE = "console.kexec.log"


@dataclass
class Attempt:
    """One attempt to boot a machine. kexec_failed: why kexec did not work, if it was tried."""

    request: BootRequest
    access: Access
    power: Power
    kexec_failed: str = ""

    def facts(self, before: int | None) -> dict[str, Any]:
        """Return how this kernel, and those it is compared with, were started."""
        way: Way = "power" if before is None else "kexec"
        facts = {"power": self.access.power.kind, "way": way}
        if self.request.way:
            facts["way_of_block"] = self.request.way
        return facts | ({"kexec_failed": self.kexec_failed} if self.kexec_failed else {})


@dataclass
class MetalDriver:
    """Boots the machine that a request's access reaches.

    home: the state root, below which the web server of this lab finds artifacts and initrds.
    fetch_deadline_s: from power-on to the script: a server's firmware takes minutes. load_deadline_s: from there to the
    initrd. wait_s: how long a machine that boots by kexec is left on for what follows.
    """

    home: Path
    power_of: Callable[[Access], Power] = power_of
    fetch_deadline_s: float = 600.0
    load_deadline_s: float = 120.0
    wait_s: float = 300.0
    _leaving: dict[str, Thread] = field(default_factory=dict, init=False)

    @contextmanager
    def boot(self, request: BootRequest) -> Iterator[MachineSession]:
        """See base.Driver.boot; also raises TargetLost, MachineUnfit and the errors of workers.power.

        A machine that waits after the previous boot is offered this one by kexec. If that fails for any reason, it boots
        by power: a kernel is judged by that alone.
        """
        _check(request)
        access = _access(request)
        power = self.power_of(access)
        request.directory.mkdir(parents=True, exist_ok=True)
        if leaving := self._leaving.pop(request.target, None):
            leaving.join()
        with ExitStack() as stack:
            initrd = str(request.initrd.relative_to(self.home))
            stack.callback(withdraw_initrd, initrd)
            offer_initrd(initrd)
            attempt = Attempt(request, access, power)
            session = self._by_kexec(stack, attempt) or self._greeted(stack, attempt, None)
            yield session
            session.booting.waits = access.kexec and session.went_well()

    def _by_kexec(self, stack: ExitStack, attempt: Attempt) -> MachineSession | None:
        """Offer the boot to a machine that waits; None if there is none, or it does not reach its hello."""
        request = attempt.request
        if not attempt.access.kexec or request.way == "power":
            return None
        before = await_waiting(request.target)
        if before is None:
            return None
        with ExitStack() as tried:
            try:
                session = self._greeted(tried, attempt, before)
            except ClaimLost:
                raise
            except (WorkersError, WorkloadsError) as error:
                log.warning("%s: no kexec, so by power: %s", request.target, error)
                attempt.kexec_failed = str(error)
            else:
                stack.enter_context(tried.pop_all())
                return session
        with suppress(FileNotFoundError):
            request.console.replace(request.directory / KEXEC_CONSOLE)
        return None

    def _greeted(self, stack: ExitStack, attempt: Attempt, before: int | None) -> MachineSession:
        """Boot the kernel up to its hello. before: start it by kexec from this boot, whose machine waits; None: start it by power."""
        request, access = attempt.request, attempt.access
        console = None
        if access.console.kind != "none":
            tap = stack.enter_context(console_of(access, request.console))
            console = request.console
            if tap.problem:
                log.warning("%s: nothing is seen of its console for now: %s", request.target, tap.problem)
        booting = Booting(_open(request, access, self.home, self._before_s(before), before))
        # From here on, whatever happens: the machine is off in the end, waits for what follows, or is known to have been left on.
        stack.callback(self._leave, attempt.power, booting, request.target)
        started_at, facts = self._started(attempt, booting.id, before)
        streams = PostedStreams(
            booting.id, attempt.power.is_on, console, request.raw_records, _posted_console(request, console)
        )
        stack.callback(streams.close)
        session = MachineSession(request, streams, booting, attempt.facts(before))
        session.greet()
        session.host |= facts | {
            "boot_s": time.monotonic() - started_at,
            "fetched_from": netboot_progress(booting.id).fetched_from,
        }
        return session

    def _started(self, attempt: Attempt, boot_id: int, before: int | None) -> tuple[float, dict[str, float]]:
        """Have the machine start its boot; return the time it began, and the seconds of its parts."""
        started_at = time.monotonic()
        if before is not None:
            start_s = self.load_deadline_s + attempt.request.boot_deadline_s
            await_heard(boot_id, start_s, attempt.request.on_wait)
            return started_at, {}
        attempt.power.turn_off()
        # If its last worker was killed, it was still on, and its firmware may have asked.
        forget_fetches(boot_id)
        attempt.power.boot_from_network()
        started_at = time.monotonic()
        attempt.power.turn_on()
        return started_at, {"firmware_s": self._await_files(boot_id, attempt, started_at)}

    def _before_s(self, before: int | None) -> float:
        """Return how long it may take until the kernel has the machine."""
        return self.load_deadline_s + (self.fetch_deadline_s if before is None else TAKE_S)

    def sweep(self) -> list[str]:
        """Turn off machines that a dead process had booted; returns their names."""
        removed = []
        for boot in left_on():
            if Run.objects.filter(target__name=boot.target, state=RunState.RUNNING).exists():
                # The worker that boots it now turned it off first.
                continue
            try:
                self.power_of(_access_of(boot.target)).turn_off()
            except (WorkersError, LabError) as error:
                log.warning("%s was left on and cannot be turned off: %s", boot.target, error)
                continue
            close_netboot(boot.id)
            removed.append(boot.target)
        return removed

    def _leave(self, power: Power, booting: Booting, target: str) -> None:
        """Let the machine wait, or turn it off in a thread of its own, which an interrupt of ours does not reach."""
        if booting.waits:
            leave_waiting(booting.id, self.wait_s)
            return
        thread = Thread(target=_turn_off, args=(power, booting.id, target), name=f"turn off {target}")
        self._leaving[target] = thread
        thread.start()
        thread.join()

    def _await_files(self, boot_id: int, attempt: Attempt, started_at: float) -> float:
        """Wait until the machine has asked for its initrd; returns the seconds from power-on to its script.

        Raises TargetLost.
        """
        fetched_s = 0.0
        mac, end = attempt.access.mac, started_at + self.fetch_deadline_s
        while True:
            attempt.request.on_wait()
            progress = netboot_progress(boot_id)
            check_uncontested(progress)
            now = time.monotonic()
            if progress.loaded:
                return fetched_s or now - started_at
            if progress.fetches > 1:
                raise TargetLost(
                    f"the machine asked for its script {progress.fetches} times and for no kernel in between: it starts "
                    f"again and again, or somebody else asks as {mac} (first from {progress.fetched_from})"
                )
            if progress.fetches and not fetched_s:
                fetched_s, end = now - started_at, now + self.load_deadline_s
            if now >= end and fetched_s:
                raise TargetLost(
                    f"the machine fetched its script (from {progress.fetched_from}) but not its kernel and initrd within "
                    f"{self.load_deadline_s:g} s: can it reach {netboot_url()}?"
                )
            if now >= end:
                raise TargetLost(
                    f"the machine is on, but did not ask for its script within {self.fetch_deadline_s:g} s: does it boot "
                    f"from the network, and does DHCP send it to {netboot_url()}/netboot/{mac}.ipxe?"
                )
            time.sleep(POLL_S)


def _check(request: BootRequest) -> None:
    """Raise MachineUnfit for what no machine can do."""
    if request.machine.clock == "instructions":
        raise MachineUnfit(
            "no physical machine has an instruction clock: use a guest as the target, or the wall clock"
        )
    if request.disks:
        raise MachineUnfit("a physical machine has no disks of the lab: its plan must contain them")


def _access(request: BootRequest) -> Access:
    try:
        return read_access(request.access)
    except LabError as error:
        raise MachineUnfit(f"target {request.target}: {error}") from error


def _open(request: BootRequest, access: Access, home: Path, before_s: float, before: int | None) -> int:
    """Permit the machine's boot for as long as it may take; by kexec if it follows another boot. Raises MachineUnfit."""
    words = [*CMDLINE, console_words(access)]
    if access.console.kind == "none":
        words.append("kperflab.console=report")
    if access.kexec:
        words.append("kperflab.then=kexec")
    cmdline = " ".join(filter(None, (*words, request.cmdline)))
    if len(cmdline) > LONGEST_CMDLINE:
        raise MachineUnfit(f"a command line of {len(cmdline)} bytes is too long; {LONGEST_CMDLINE} fit")
    by_kexec = {}
    if before is not None:
        image = request.kernel.parent / BUILT.image
        by_kexec = {"kernel_sha256": sha256_of(image), "initrd_sha256": sha256_of(request.initrd)}
    try:
        netboot_url()
        return open_netboot(
            Opening(
                target=request.target,
                artifact_key=request.kernel.parent.name,
                initrd=str(request.initrd.relative_to(home)),
                cmdline=cmdline,
                lifetime_s=before_s + request.boot_deadline_s + LIFETIME_SLACK_S,
                follows=before,
                **by_kexec,
            )
        )
    except LabError as error:
        raise MachineUnfit(str(error)) from error


def _posted_console(request: BootRequest, console: Path | None) -> Path:
    """Return the file of the console that the machine posts itself; it posts none if there is another console."""
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


def _access_of(name: str) -> Access:
    """Return the access to a machine. Raises UnknownRow, FieldRefused."""
    target = one_row(Target.objects.filter(name=name, driver__in=MACHINES), f'machine "{name}"')
    return read_access(target.access)
