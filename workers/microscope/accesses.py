# SPDX-License-Identifier: GPL-2.0-or-later
"""Find a boot's recordings of its virtual CPUs' accesses to memory (native/trace.c), and refuse those that are not whole.

The records themselves are read by the program that replays them. docs/design/contention.md has the format.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from kernels.artifacts.store import Artifact
from workers.errors import BootDiscarded, ProfileUnreadable
from workloads.contention import MOST_CPUS

_HEADER = struct.Struct("<4sIIIQQII")
_MAGIC, _VERSION = b"KPMA", 1
# native/trace.h: enum lack.
_NO_ROOM, _NOT_WRITTEN, _NEVER_CLOSED = 1, 2, 3
_CALLS = re.compile(r"calls\.(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one program's measured intervals in a boot.

    calls: the call tree's file. accesses: a file for each CPU, in the order of the CPUs. instructions: executed by each
    CPU in its intervals. records: in all files. stored: bytes of all files.
    """

    calls: Path
    accesses: tuple[Path, ...]
    instructions: tuple[int, ...]
    records: int
    stored: int


@dataclass(frozen=True, slots=True)
class _Header:
    cpu: int
    lack: int
    instructions: int
    records: int
    size: int


def check_cpus(artifact: Artifact, cpus: int) -> None:
    """Raise ProfileUnreadable for a number of CPUs that the kernel or the microscope does not allow."""
    configured = re.search(r"^CONFIG_NR_CPUS=(\d+)$", artifact.config.read_text(), re.MULTILINE)
    most = min(MOST_CPUS, int(configured[1]) if configured else MOST_CPUS)
    if not 1 <= cpus <= most:
        limit = "the microscope" if most == MOST_CPUS else "the kernel's CONFIG_NR_CPUS"
        raise ProfileUnreadable(f"cpus = {cpus} cannot be recorded: {limit} allows 1 to {most}")


def read_recordings(directory: Path, cpus: int) -> tuple[Recording, ...]:
    """Return the recordings in a run's directory, one for each program that measured, in their order.

    cpus: how many CPUs each program was to measure on, the first ones of the guest. Raises ProfileUnreadable for a
    workload that never entered its interval, a CPU that is missing, and a file that is cut short or not whole;
    BootDiscarded where the host could not write it.
    """
    numbers = sorted(int(name[1]) for path in directory.iterdir() if (name := _CALLS.fullmatch(path.name)))
    if not numbers:
        raise ProfileUnreadable("nothing was recorded: the workload never entered its measured interval")
    return tuple(_recording(directory, number, cpus) for number in numbers)


def _recording(directory: Path, number: int, cpus: int) -> Recording:
    paths = sorted(directory.glob(f"accesses.{number}.*"), key=lambda path: int(path.suffix[1:]))
    headers = [_header(path) for path in paths]
    missing = set(range(cpus)) ^ {int(path.suffix[1:]) for path in paths}
    if missing:
        raise ProfileUnreadable(
            f"the recording is not whole: {cpus} CPUs were to measure, and CPU {min(missing)} "
            f"{'left nothing' if min(missing) < cpus else 'measured too'}"
        )
    return Recording(
        directory / f"calls.{number}",
        tuple(paths),
        tuple(header.instructions for header in headers),
        sum(header.records for header in headers),
        sum(header.size for header in headers),
    )


def _header(path: Path) -> _Header:
    with path.open("rb") as file:
        data = file.read(_HEADER.size)
    if len(data) < _HEADER.size:
        raise ProfileUnreadable(f"the recording {path.name} is cut short")
    magic, version, cpu, whole, instructions, records, lack, size = _HEADER.unpack(data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ProfileUnreadable(
            f"the recording {path.name} was not written by this version of the microscope"
        )
    if not whole or lack:
        _refuse_lack(int(path.suffix[1:]), lack)
    if size != path.stat().st_size:
        raise ProfileUnreadable(f"the recording {path.name} is cut short")
    # A record has two bytes or more; an instruction has at most some thousand accesses (xsave).
    if str(cpu) != path.suffix[1:] or instructions >= 1 << 53 or 2 * records > size:
        raise ProfileUnreadable(f"the recording {path.name} is garbled: its header contradicts the file")
    return _Header(cpu, lack, instructions, records, size)


def _refuse_lack(cpu: int, lack: int) -> None:
    if lack == _NOT_WRITTEN:
        raise BootDiscarded(
            f"the accesses of CPU {cpu} could not be written: is the disk of the state root full?"
        )
    if lack == _NO_ROOM:
        raise ProfileUnreadable(
            f"the recording is not whole: with CPU {cpu} it outgrew 256 MiB; "
            "measure fewer operations (smaller parameters, fewer iterations) or fewer CPUs"
        )
    if lack == _NEVER_CLOSED:
        raise ProfileUnreadable(
            f"the recording is not whole: a measured thread of CPU {cpu} outlived its program's last interval"
        )
    raise ProfileUnreadable(f"the recording of CPU {cpu} is not whole")
