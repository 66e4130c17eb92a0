# SPDX-License-Identifier: GPL-2.0-or-later
"""The session between a guest's hello and its bye, and the error when there is no bye."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal, Protocol

from workers.drivers.base import BootRequest, ReadMemory
from workers.drivers.hostfacts import Moment, change, host_facts, take_moment
from workers.drivers.streams import Streams
from workers.errors import (
    BootFailed,
    GuestHung,
    GuestPanicked,
    GuestSilent,
    TargetLost,
    TargetVanished,
    WorkersError,
    WrongKernel,
)
from workloads.guest.greeting import read_hello
from workloads.guest.records import Record

STACKS_S = 5.0
"""The time limit for an interrupted guest to print its stacks. The guest resets afterwards, which ends the wait early."""

OWN_BEAT_S = 5.0
"""Seconds between the heartbeats that the session itself makes while a guest keeps back its records; a worker renews its claim at each."""


Ending = Literal["itself", "outside", "unclear"]
"""Who ended a machine: its own kernel, somebody else for sure, or one of the two."""


class RemoteControl(Protocol):
    """Control and observation of a machine from outside."""

    def how_it_ended(self) -> Ending:
        """Return what ended it, once it is gone without a bye."""

    def interrupt(self) -> None:
        """Make a stuck kernel show on its console where it is, if the machine has a way to."""


class GuestSession:
    """A Session over two streams, no matter how they were connected. noun: the name of the other side in messages."""

    noun: ClassVar[str] = "guest"

    def __init__(
        self, request: BootRequest, streams: Streams, machine: RemoteControl, facts: Mapping[str, Any]
    ) -> None:
        self._request = request
        self._streams = streams
        self._machine = machine
        self._before: Moment = take_moment()
        self._step = "before its first step"
        self.host: dict[str, Any] = {**self.host_facts(), **facts, "accelerator": request.machine.accelerator}
        self.hello: dict[str, Any] = {}

    def greet(self) -> None:
        """Wait for hello. Raises BootFailed, WrongKernel, TargetLost, RecordCorrupt."""
        deadline_s = self._request.boot_deadline_s
        try:
            record = self._streams.next(time.monotonic() + deadline_s)
        except GuestPanicked as panic:
            raise BootFailed(f"while it booted: {panic}", panic.detail) from panic
        if record is None and self._streams.ended:
            raise self._gone(
                BootFailed(
                    f"the {self.noun} reset or switched itself off while it booted", self._streams.tail()
                )
            )
        if record is None:
            self.show_stacks()
            raise BootFailed(
                f"the kernel did not reach its user space within {deadline_s:g} s", self._streams.tail()
            )
        self.hello = read_hello(record)
        release = self.hello["release"]
        if self._request.release and release != self._request.release:
            raise WrongKernel(
                f'the {self.noun} runs kernel "{release}", not "{self._request.release}"',
                self._streams.tail(),
            )

    def records(self, deadline_s: float) -> Iterator[Record]:
        """See base.Session.records."""
        end = time.monotonic() + deadline_s
        try:
            while True:
                record = self._next(end, deadline_s)
                yield record
                if record.kind == "bye":
                    return
        finally:
            self.host.update(self.host_change())

    def memory(self) -> AbstractContextManager[ReadMemory | None]:
        """See base.Session.memory."""
        return nullcontext()

    def host_facts(self) -> dict[str, Any]:
        """Return the constant facts of this host that the guest's side needs."""
        return host_facts()

    def host_change(self) -> dict[str, Any]:
        """Return the facts of this host that changed since the session began."""
        return change(self._before, take_moment())

    def _next(self, end: float, deadline_s: float) -> Record:
        # Under the instruction clock nothing is sent while the plan runs: the host's reading would disturb it.
        held = self._request.machine.clock == "instructions"
        silence_s = math.inf if held else self._request.silence_deadline_s
        while True:
            listen_until = time.monotonic() + OWN_BEAT_S if held else math.inf
            record = self._streams.next(min(end, self._streams.last_record_at + silence_s, listen_until))
            now = time.monotonic()
            # A plan that does not end still sends heartbeats, so a record does not extend the deadline.
            if record is not None and (now < end or record.kind == "bye"):
                if record.kind == "step":
                    self._step = f'in step "{record.name}"'
                return record
            if self._streams.ended:
                message = f"the {self.noun} reset or switched itself off {self._step}"
                raise self._gone(GuestPanicked(message, self._streams.tail()))
            if now >= end:
                self.show_stacks()
                message = f"the {self.noun} did not finish within {deadline_s:g} s; it was {self._step}"
                raise GuestHung(message, self._streams.tail())
            if now >= self._streams.last_record_at + silence_s:
                self.show_stacks()
                message = f"no sign of life from the {self.noun} for {silence_s:g} s {self._step}"
                raise self.silent(message)
            if held:
                return Record(0, "beat", "-", b"")

    def show_stacks(self) -> None:
        """Have a stuck kernel show where it is, and wait for that."""
        self._machine.interrupt()
        self._streams.drain(STACKS_S)

    def silent(self, message: str) -> WorkersError:
        """Return the error for a machine that is on but silent."""
        return GuestSilent(message, self._streams.tail())

    def _gone(self, own_doing: WorkersError) -> WorkersError:
        ending = self._machine.how_it_ended()
        if ending == "itself":
            return own_doing
        if ending == "unclear":
            return TargetVanished(
                f"the {self.noun} was turned off or crashed {self._step}, by its kernel or from outside",
                self._streams.tail(),
            )
        return TargetLost(f"the {self.noun} was ended from outside {self._step}", self._streams.tail())
