# SPDX-License-Identifier: GPL-2.0-or-later
"""A session with a machine that booted over the network, and what becomes of the machine after it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab.runs.validity import TROUBLE
from lab.targets.netboot.boots import extend_netboot, netboot_progress
from workers.collect.dmesg import scan_console
from workers.drivers.base import BootRequest
from workers.drivers.guest_session import Ending, GuestSession
from workers.drivers.netboot_streams import PostedStreams, check_uncontested
from workers.errors import TargetVanished, WorkersError
from workloads.guest.greeting import read_bye
from workloads.guest.records import Record

TOKEN = re.compile(r"(/netboot/)[\w-]{20,}")
LIFETIME_SLACK_S = 120.0


@dataclass
class Booting:
    """One boot under way. waits: it went well, and its machine stays on for what follows."""

    id: int
    waits: bool = False


class MachineSession(GuestSession):
    """A Session with a machine. The lab's own host does not affect it, so `host` is about the boot."""

    noun = "machine"

    def __init__(
        self, request: BootRequest, streams: PostedStreams, booting: Booting, facts: dict[str, Any]
    ) -> None:
        super().__init__(request, streams, _Outside(streams), {**facts, "machine": "metal"})
        self._posted = streams
        self.booting = booting
        self._bye: Record | None = None

    def greet(self) -> None:
        """See GuestSession.greet. The token in its command line is of no use to anybody else: it is not kept."""
        super().greet()
        self.hello["cmdline"] = TOKEN.sub(r"\1…", str(self.hello.get("cmdline", "")))

    def records(self, deadline_s: float) -> Iterator[Record]:
        """See base.Session.records."""
        extend_netboot(self.booting.id, deadline_s + LIFETIME_SLACK_S)
        for record in super().records(deadline_s):
            if record.kind == "bye":
                # No other address may have sent requests while its last pieces were on their way.
                check_uncontested(netboot_progress(self.booting.id))
                self._bye = record
            yield record

    def went_well(self) -> bool:
        """Return whether the plan was carried out and the kernel never complained: such a kernel may start the next."""
        completed = self._bye is not None and read_bye(self._bye).completed
        findings = scan_console(self._request.console.read_bytes()) if completed else []
        return completed and not any(finding.kind in TROUBLE for finding in findings)

    def show_stacks(self) -> None:
        """Do nothing: BMCs have no common way to interrupt a machine."""

    def silent(self, message: str) -> WorkersError:
        """See GuestSession.silent. A BMC that does not answer either suggests lost power; but a kernel can reset its BMC, too."""
        if not self._posted.trouble:
            return super().silent(message)
        return TargetVanished(
            f"{message}, and its BMC does not answer: {self._posted.trouble}", self._posted.tail()
        )

    def host_facts(self) -> dict[str, Any]:
        """Return nothing: the worker's host is not the machine's."""
        return {}

    def host_change(self) -> dict[str, Any]:
        """Return nothing; see host_facts."""
        return {}


@dataclass(frozen=True, slots=True)
class _Outside:
    """A machine seen from outside, once it is gone without a bye."""

    streams: PostedStreams

    def how_it_ended(self) -> Ending:
        """See RemoteControl. A machine that started again did so itself; one that is off was turned off by its kernel or from outside."""
        return "itself" if self.streams.reset else "unclear"

    def interrupt(self) -> None:
        """Do nothing: see MachineSession.show_stacks."""
