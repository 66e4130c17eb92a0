# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine without a machine: once it is turned on it asks the lab's pages for its boot and posts records."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from django.test import Client

from workers.errors import WorkersError
from workloads.guest.records import Record, encode_record

MAC = "52:54:00:6b:70:01"
THREAD = "a pretend machine"


@dataclass
class PretendMachine:
    """A Power whose machine does what `boots` says, in a thread of its own, each time it is turned on.

    done: what was asked of the power, in order. problem: what asking it raises from now on.
    while_off: is called while it is being turned off.
    """

    boots: Callable[[PretendMachine], None]
    on: bool = False
    done: list[str] = field(default_factory=list)
    problem: WorkersError | None = None
    while_off: Callable[[], object] = lambda: None
    place: str = ""
    files: str = ""
    cmdline: str = ""
    sums: dict[str, str] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)

    def is_on(self) -> bool:
        """See Power."""
        self._asked("is_on")
        return self.on

    def turn_on(self) -> None:
        """See Power."""
        self._asked("turn_on")
        self.on, self.sums = True, {}
        self.sent = {"records": 0, "console": 0, "seq": 0}
        threading.Thread(target=self._run, name=THREAD, daemon=True).start()

    def turn_off(self) -> None:
        """See Power."""
        self._asked("turn_off")
        self.while_off()
        self.on = False

    def boot_from_network(self) -> None:
        """See Power."""
        self._asked("boot_from_network")

    def fetch_script(self) -> str:
        """Ask for the script; remember the addresses of the boot's files, if given."""
        script = Client().get(f"/netboot/{MAC}.ipxe").content.decode()
        if chain := re.search(r"chain http://[0-9.:]+(/netboot/\S+)", script):
            script = Client().get(chain[1]).content.decode()
        if match := re.search(r"kperflab\.report=http://[0-9.:]+(/netboot/\S+)", script):
            self.place = match[1]
        if match := re.search(r"kernel http://[0-9.:]+(/netboot/\S+)/kernel", script):
            self.files = match[1]
        return script

    def load(self) -> None:
        """Fetch kernel and initrd."""
        for part in ("kernel", "initrd"):
            answer = Client().get(f"{self.files}/{part}")
            assert answer.status_code == 200, answer.content
            digest = hashlib.sha256(answer.getvalue()).hexdigest()
            assert digest == self.sums.get(part, digest)

    def ask(self) -> Any:
        """Ask once what to start by kexec."""
        return Client().get(f"{self.place}/next")

    def follow(self) -> bool:
        """Ask what to start by kexec until there is something: true if there is, and then that is what all else is about."""
        while (answer := self.ask()).status_code == 204:
            time.sleep(0.02)
        if answer.status_code != 200:
            return False
        fields = dict(line.split(" ", 1) for line in answer.content.decode().splitlines())
        self.sums = {part: fields[part].split()[0] for part in ("kernel", "initrd")}
        self.files = fields["kernel"].split()[1].removesuffix("/kernel")
        self.place, self.cmdline = fields["report"], fields["cmdline"]
        self.sent = {"records": 0, "console": 0, "kexec": 0, "seq": 0}
        return True

    def send(self, kind: str, name: str = "-", payload: bytes = b"") -> None:
        """Post one record as a piece."""
        self.sent["seq"] += 1
        self.post("records", encode_record(Record(self.sent["seq"], kind, name, payload)))

    def hello(self, release: str) -> None:
        """Load, then say hello."""
        self.load()
        said = {"release": release, "cmdline": f"quiet kperflab.report=http://10.0.2.2:8000{self.place}"}
        self.send("hello", "-", json.dumps(said).encode())

    def post(self, stream: str, data: bytes) -> int:
        """Post one piece; returns the answer's status."""
        answer = Client().post(
            f"{self.place}/{stream}/{self.sent[stream]}", data, content_type="application/octet-stream"
        )
        self.sent[stream] += 1
        return answer.status_code

    def _asked(self, what: str) -> None:
        self.done.append(what)
        if self.problem:
            raise self.problem

    def _run(self) -> None:
        try:
            self.boots(self)
        finally:
            connections.close_all()
