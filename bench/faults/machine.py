# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine under a lab that is to break: disks small enough to fill, another host on a wire that can be cut."""

import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kernels.processes.stats import family_of

_SOURCE = Path(__file__).with_name("lies.c")
_FILLER = "filler"


@contextmanager
def small_disk(image: Path, at: Path, mebibytes: int) -> Iterator[None]:
    """An ext4 of this size, mounted at a folder for the block; a sparse file holds it."""
    image.parent.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", str(image))
    at.mkdir(parents=True, exist_ok=True)
    _run("mount", "-o", "loop", str(image), str(at))
    (at / "lost+found").rmdir()
    at.chmod(0o755)
    try:
        yield
    finally:
        remove_disk(image, at)


def remove_disk(image: Path, at: Path) -> None:
    """Unmount such a disk and remove its file; nothing happens where there is none."""
    if at.is_mount():
        subprocess.run(["umount", "--lazy", str(at)], check=False, capture_output=True)
    image.unlink(missing_ok=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Not a byte is free on a folder's disk during the block."""
    filler = folder / _FILLER
    with filler.open("wb", buffering=0) as file:
        try:
            while (free := free_bytes(folder)) > 0:
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
                    continue
                # What fallocate finds no whole piece for is written.
                file.seek(0, os.SEEK_END)
                with suppress(OSError):
                    while True:
                        file.write(bytes(4096))
                break
            yield
        finally:
            filler.unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """Return how much of a folder's disk is free."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


@dataclass(frozen=True, slots=True)
class Wire:
    """Two ends of a cable: the server's address here, the other host's in its namespace."""

    name: str
    server: str
    other: str

    def cut(self) -> None:
        """From now on nothing gets through, and no error is returned."""
        _run("ip", "link", "set", f"{self.name}-s", "down")

    def mend(self) -> None:
        """As before."""
        _run("ip", "link", "set", f"{self.name}-s", "up")

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that starts a program on the other host, under a host name of its own."""
        inner = f'hostname {self.name}; exec "$@"'
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", inner, "sh", *command]


def server_of(number: int) -> str:
    """Return the address of this end of a cable."""
    return f"10.231.{number}.1"


def address_in_use(address: str) -> bool:
    """Return whether an interface of this host has an address."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


@contextmanager
def wired(name: str, number: int) -> Iterator[Wire]:
    """Another host for the block: a network namespace with one interface, which leads here."""
    wire = Wire(name, server_of(number), f"10.231.{number}.2")
    with ExitStack() as stack:
        _run("ip", "netns", "add", name)
        stack.callback(remove_wire, name)
        _run("ip", "link", "add", f"{name}-s", "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "addr", "add", f"{wire.server}/30", "dev", f"{name}-s")
        _run("ip", "link", "set", f"{name}-s", "up")
        _run("ip", "-n", name, "addr", "add", f"{wire.other}/30", "dev", "eth0")
        _run("ip", "-n", name, "link", "set", "eth0", "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        yield wire


def remove_wire(name: str) -> None:
    """Remove a cable and the other host's network; nothing happens where there is none."""
    for command in (["link", "del", f"{name}-s"], ["netns", "del", name]):
        subprocess.run(["ip", *command], check=False, capture_output=True)


@dataclass(frozen=True, slots=True)
class Lies:
    """Wrong answers of a host to programs that were started with `environment`; they can be changed while those run."""

    library: Path
    file: Path

    def clock(self, seconds: float) -> None:
        """Set the wall clock off by so many seconds."""
        self._write(0, int(seconds * 1e9))

    def disk(self, free: int | None) -> None:
        """Say that every disk has so many bytes free; None for the truth."""
        self._write(8, -1 if free is None else free)

    def _write(self, place: int, value: int) -> None:
        with self.file.open("r+b") as file:
            file.seek(place)
            file.write(struct.pack("=q", value))

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a program."""
        return {"LD_PRELOAD": str(self.library), "KPERFLAB_LIES": str(self.file)}


def make_lies(folder: Path) -> Lies:
    """Compile the preload; the host tells the truth at first."""
    folder.mkdir(parents=True, exist_ok=True)
    lies = Lies(folder / "lies.so", folder / "lies")
    _run("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(lies.library), str(_SOURCE), "-ldl")
    lies.file.write_bytes(struct.pack("=qq", 0, -1))
    return lies


def descendants(pid: int) -> dict[int, str]:
    """All processes below one, by number, with their names."""
    family = {}
    for process in family_of(pid)[1:]:
        with suppress(OSError):
            family[process.pid] = Path(f"/proc/{process.pid}/comm").read_text().rstrip("\n")
    return family


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal, kill -9 unless another is named; False where there is no such process."""
    if not pid:  # which would be our own group
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def is_able() -> str:
    """Return why this machine cannot have such disks and networks; empty if it can."""
    if os.geteuid() != 0:
        return "only root mounts disks and makes network namespaces"
    missing = [tool for tool in ("mkfs.ext4", "losetup", "ip", "unshare", "gcc") if not shutil.which(tool)]
    return f"{', '.join(missing)} not installed" if missing else ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
