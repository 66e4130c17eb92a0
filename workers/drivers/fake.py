# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver without a machine: plays scripted records and outcomes, so that everything above it can be tested quickly."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from workers.drivers.base import BootRequest, ReadMemory
from workers.errors import GuestSilent, WorkersError, WrongKernel
from workloads.guest.records import Record, encode_record

CONSOLE = "[    0.000000] Linux version (a fake one)\n"
BEAT_S = 0.2


@dataclass(frozen=True, slots=True)
class Script:
    """The behaviour of one fake guest: it says hello, sends records, and ends well or by raising.

    records: (kind, name, payload) after hello; step, exit and bye records are the script's own affair.
    problem: raised after the records instead of the bye; before hello if `boots` is false.
    release: what `uname -r` says; the requested one if empty.
    seconds: how long all of it takes, with heartbeats; a guest that hangs spends them in silence.
    host: facts of the boot in addition to those of every fake boot. call_trees: files that the microscope leaves, if the
    boot has one.
    """

    records: tuple[tuple[str, str, bytes], ...] = ()
    problem: WorkersError | None = None
    boots: bool = True
    release: str = ""
    console: str = CONSOLE
    seconds: float = 0.0
    host: Mapping[str, Any] = field(default_factory=dict)
    call_trees: tuple[bytes, ...] = ()
    memory: ReadMemory | None = None


@dataclass
class FakeDriver:
    """Plays the script that `script_for` gives for each request; remembers the requests.

    open_guests: how many sessions are open now, which must be none in the end.
    """

    script_for: Callable[[BootRequest], Script]
    requests: list[BootRequest] = field(default_factory=list)
    open_guests: int = 0

    @contextmanager
    def boot(self, request: BootRequest) -> Iterator[FakeSession]:
        """See base.Driver.boot."""
        self.requests.append(request)
        script = self.script_for(request)
        request.directory.mkdir(parents=True, exist_ok=True)
        for left in request.call_trees:
            left.unlink()
        request.console.write_text(script.console)
        if script.problem and not script.boots:
            time.sleep(script.seconds)
            raise script.problem
        release = script.release or request.release
        if request.release and release != request.release:
            raise WrongKernel(f'the guest runs kernel "{release}", not "{request.release}"', script.console)
        self.open_guests += 1
        try:
            yield FakeSession(request, script, release)
            for number, data in enumerate(script.call_trees if request.microscope else ()):
                (request.directory / f"calls.{number}").write_bytes(data)
        finally:
            self.open_guests -= 1


class FakeSession:
    """A Session that reads from its script."""

    def __init__(self, request: BootRequest, script: Script, release: str) -> None:
        self._request = request
        self._script = script
        self.hello: Mapping[str, Any] = {
            "release": release,
            "machine": "x86_64",
            "cmdline": request.cmdline,
            "cpus": request.machine.vcpus,
            "clocksource": "tsc",
            "memory_kib": request.machine.memory_mib * 1024,
            "mitigations": {"meltdown": "Not affected"},
            "uptime_s": 0.5,
            "cpu_model": "fake",
        }
        self.host: dict[str, Any] = {
            "accelerator": request.machine.accelerator,
            "machine": "fake",
            "qemu": "0.0.0",
            "libvirt": "0.0.0",
            "host_cpus": 1,
            "load_before": 0.0,
            "boot_s": 0.5,
            **script.host,
        }

    def records(self, deadline_s: float) -> Iterator[Record]:
        """The script's records, then its bye or its problem."""
        hello = ("hello", "-", json.dumps(self.hello).encode())
        records = [
            Record(seq, kind, name, payload)
            for seq, (kind, name, payload) in enumerate((hello, *self._script.records), 1)
        ]
        if not self._script.problem:
            records.append(Record(len(records) + 1, "bye", "-", b'{"completed":true,"uptime_s":1.0}'))
        self._request.raw_records.write_bytes(b"".join(map(encode_record, records)))
        yield from self._in_time(records[1:])
        self.host.update(load_after=0.0, steal_share=0.0)
        if self._script.problem:
            raise self._script.problem

    def memory(self) -> AbstractContextManager[ReadMemory | None]:
        """The script's memory."""
        return nullcontext(self._script.memory)

    def _in_time(self, records: list[Record]) -> Iterator[Record]:
        """Yield the records; the last one, or the problem, comes when the script's seconds are over."""
        yield from records[:-1]
        end = time.monotonic() + self._script.seconds
        beats = not isinstance(self._script.problem, GuestSilent)
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, BEAT_S) if beats else left)
            if beats:
                yield Record(0, "beat", "-", b"")
        yield from records[-1:]


def played(step: str, out: str, *, status: int = 0, err: str = "") -> tuple[tuple[str, str, bytes], ...]:
    """Return the records of one step as the agent sends them."""
    ending = {
        "status": status,
        "signal": 0,
        "timed_out": False,
        "wall_s": 0.1,
        "user_s": 0.05,
        "system_s": 0.05,
    }
    records = [
        ("step", step, b'{"kind":"measure","uptime_s":0.6}'),
        ("out", step, out.encode()),
        ("err", step, err.encode()),
        ("exit", step, json.dumps(ending).encode()),
    ]
    return tuple(record for record in records if record[2])


def sent(path: str, data: bytes) -> tuple[tuple[str, str, bytes], ...]:
    """Return the records of one file as the agent sends it: its bytes, and nothing at its end."""
    return (("file", path, data), ("file", path, b""))
