# SPDX-License-Identifier: GPL-2.0-or-later
"""Record a machine's console in a file: Serial over LAN of its BMC, or datagrams of its kernel (netconsole).

A console is evidence, not a condition: without one the run continues, and the tap says why there was none.
It is scanned like a guest's console: workers/collect/dmesg.py.
"""

import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import IO, BinaryIO, TypeVar

from lab.targets.access_schema import Access, IpmiPower, NetConsole, SolConsole
from workers.drivers.streams import CONSOLE_LIMIT
from workers.power.apart import bare_environment

CONNECT_DEADLINE_S = 30.0
AGAIN_S = 2.0
LEAVE_DEADLINE_S = 8.0
LOOK_S = 0.5
# netconsole sends at most 1,000 bytes of text in a datagram.
LARGEST = 2048
CONNECTED = b"connected\n"

Where = TypeVar("Where")


@dataclass
class Tap:
    """A console while it is open. problem: why nothing comes, "" while something can. written: bytes in the file."""

    file: BinaryIO
    problem: str = "not connected yet"
    written: int = 0
    stopped: Event = field(default_factory=Event)
    ready: Event = field(default_factory=Event)

    def take(self, data: bytes) -> None:
        """Append to the file; what comes beyond CONSOLE_LIMIT is read and thrown away."""
        kept = data[: max(0, CONSOLE_LIMIT - self.written)]
        self.file.write(kept)
        self.file.flush()
        self.written += len(kept)

    def connected(self) -> None:
        """Note that the machine's output arrives from now on."""
        self.problem = ""
        self.ready.set()


@contextmanager
def console_of(access: Access, into: Path) -> Iterator[Tap]:
    """Write what the machine prints into a file for as long as the context lasts.

    Returns once it is connected, or after CONNECT_DEADLINE_S without; then it goes on trying.
    """
    console = access.console
    with ExitStack() as stack:
        tap = Tap(stack.enter_context(into.open("wb")))
        if isinstance(console, SolConsole):
            stack.enter_context(_running(_follow_line, access.sol(), tap))
        elif isinstance(console, NetConsole):
            stack.enter_context(_running(_follow_datagrams, console, tap))
        else:
            tap.problem = "it has no console: see its access"
        yield tap


def console_words(access: Access) -> str:
    """Return the words of the kernel's command line that make the machine print where we listen."""
    console = access.console
    if isinstance(console, SolConsole):
        return f"console={console.line}"
    if isinstance(console, NetConsole):
        ours = f"{console.port}@{console.to}/"
        return f"netconsole={console.port}@{console.address}/{console.device},{ours}"
    return ""


@contextmanager
def _running(follow: Callable[[Where, Tap], None], where: Where, tap: Tap) -> Iterator[None]:
    thread = Thread(target=follow, args=(where, tap), name="console", daemon=True)
    thread.start()
    try:
        tap.ready.wait(CONNECT_DEADLINE_S)
        yield
    finally:
        tap.stopped.set()
        thread.join(LEAVE_DEADLINE_S)


def _follow_datagrams(console: NetConsole, tap: Tap) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as listener:
        try:
            listener.bind((console.to, console.port))
        except OSError as error:
            tap.problem = f"cannot listen on {console.to}:{console.port}: {error.strerror}"
            tap.ready.set()
            return
        listener.settimeout(LOOK_S)
        tap.connected()
        while not tap.stopped.is_set():
            try:
                data, (sender, _port) = listener.recvfrom(LARGEST)
            except TimeoutError:
                continue
            # Anybody can send here; only the machine itself is believed.
            if sender == console.address:
                tap.take(data)


def _follow_line(bmc: IpmiPower, tap: Tap) -> None:
    """Keep the line: BMCs drop it when they restart, or when somebody else takes it; then connect again."""
    while not tap.stopped.is_set():
        said = _one_connection(bmc, tap)
        tap.problem = said or "the BMC ended the connection"
        tap.stopped.wait(AGAIN_S)


def _one_connection(bmc: IpmiPower, tap: Tap) -> str:
    """Read until the program that holds the connection ends; returns its last words."""
    with subprocess.Popen(
        [sys.executable, "-m", "workers.power.sol"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=bare_environment(),
    ) as program:
        if program.stdin is None or program.stdout is None or program.stderr is None:
            raise RuntimeError("Popen was asked for three pipes")
        try:
            program.stdin.write(json.dumps(bmc.model_dump()).encode() + b"\n")
            program.stdin.flush()
            return _copy(program.stdout, program.stderr, tap)
        finally:
            # The program closes the line when its input ends.
            program.stdin.close()
            try:
                program.wait(LEAVE_DEADLINE_S / 2)
            except subprocess.TimeoutExpired:
                program.kill()


def _copy(out: IO[bytes], err: IO[bytes], tap: Tap) -> str:
    words = b""
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        selector.register(err, selectors.EVENT_READ)
        while selector.get_map() and not tap.stopped.is_set():
            for key, _ in selector.select(LOOK_S):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is out:
                    tap.take(data)
                else:
                    words = (words + data)[-4000:]
                    if CONNECTED in words:
                        words = b""
                        tap.connected()
    lines = words.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
