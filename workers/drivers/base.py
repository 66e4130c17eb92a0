# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of drivers: each boots one kernel on one target and hands over its records."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from workloads.guest.records import Record
from workloads.instruction_clock import Clock

# "none": the machine itself, not emulated, or not a machine.
Accelerator = Literal["kvm", "tcg", "none"]
RECORDS_FILE = "records.bin"
ReadMemory = Callable[[int, int], bytes]
"""(address, bytes) → that many bytes of a guest's physical memory; raises TargetLost."""
# How a machine's kernel is started: by its firmware, or by the kernel that it runs already.
Way = Literal["power", "kexec"]


@dataclass(frozen=True, slots=True)
class Machine:
    """The size of a guest, what runs it, and what its clock counts.

    clock "instructions" requires one CPU, the accelerator tcg, and no disks: see docs/instruction-clock.md.
    """

    vcpus: int
    memory_mib: int
    accelerator: Accelerator
    clock: Clock = "wall"

    @property
    def has_disks(self) -> bool:
        """Return whether images can be plugged in; else the guest brings its disk along, as a ramdisk."""
        return self.clock == "wall" and self.accelerator != "none"


@dataclass(frozen=True, slots=True)
class Disk:
    """A golden image; the guest writes to an overlay that lives as long as its run.

    serial: the guest finds the disk as /dev/disk/by-id/virtio-<serial>.
    """

    path: Path
    format: Literal["raw", "qcow2"]
    serial: str


@dataclass(frozen=True, slots=True)
class Microscope:
    """A plugin of the emulator, and the table of functions that it reads (workers/microscope/).

    accesses: it records each access to memory too, by virtual CPU.
    """

    plugin: Path
    functions: Path
    accesses: bool = False


def ignore_wait() -> None:
    """Do nothing while a machine starts; it has a name, so that a request can be sent to another process."""


@dataclass(frozen=True, slots=True)
class BootRequest:
    """One boot.

    name: for people, shown by `virsh list --title`.
    kernel: a vmlinux with a PVH entry. initrd: initramfs and plan in one file.
    cmdline: added to what the driver itself needs.
    release: the `uname -r` that proves the right kernel; "" if it is not known.
    directory: the run's own; gets console.log and records.bin.
    boot_deadline_s: from power-on to the agent's hello.
    silence_deadline_s: longest time without a record, heartbeats included; they come every second, but not under
        the instruction clock, where all records come at the end and this deadline does not apply.
    hz: the kernel's CONFIG_HZ, if known: the kernel then need not measure its delay loop.
    target, access: the machine's name and how to reach it, where the driver has more than one.
    microscope: has the emulator keep the call tree of what is measured; takes the instruction or contention clock.
    way: the way of the boots that this one is compared with, if the driver has a choice; None leaves it to the driver.
    on_wait: called at least every few minutes until the agent's hello, for firmware may take long; what it raises ends the boot.
    """

    name: str
    kernel: Path
    initrd: Path
    cmdline: str
    machine: Machine
    disks: tuple[Disk, ...]
    release: str
    directory: Path
    boot_deadline_s: float
    silence_deadline_s: float
    hz: int = 0
    target: str = ""
    access: Mapping[str, Any] = field(default_factory=dict)
    way: Way | None = None
    microscope: Microscope | None = None
    on_wait: Callable[[], None] = ignore_wait

    @property
    def console(self) -> Path:
        """Return the file of the guest's console."""
        return self.directory / "console.log"

    @property
    def raw_records(self) -> Path:
        """Return the file of the raw records."""
        return self.directory / RECORDS_FILE

    @property
    def call_trees(self) -> tuple[Path, ...]:
        """Return the files that the microscope left, one for each program that measured."""
        return tuple(sorted(self.directory.glob("calls.*")))


class Session(Protocol):
    """A booted guest, until its context ends."""

    @property
    def hello(self) -> Mapping[str, Any]:
        """Return the agent's report of its machine: release, cpus, clocksource, cmdline, mitigations, ..."""

    @property
    def host(self) -> Mapping[str, Any]:
        """Return the host's state; gains a `load_after` and `steal_share` when the records have ended."""

    def records(self, deadline_s: float) -> Iterator[Record]:
        """Yield the records after hello, heartbeats included, the last one a bye.

        Under the instruction clock all come at the end; until then the session yields heartbeats of its own, numbered 0.

        deadline_s: from now to bye. Raises GuestPanicked, GuestHung, GuestSilent, TargetLost, RecordCorrupt.
        """

    def memory(self) -> AbstractContextManager[ReadMemory | None]:
        """Stop the guest and return a reader of its memory; None where there is none. Raises TargetLost."""


class Driver(Protocol):
    """Boots one kind of target."""

    def boot(self, request: BootRequest) -> AbstractContextManager[Session]:
        """Power on and wait for the agent; the guest is always stopped when the context ends.

        Raises BootFailed, WrongKernel; TargetLost and the other lab faults.
        """
