# SPDX-License-Identifier: GPL-2.0-or-later
"""Leftovers that an idle lab must not have: processes, mounts, scratch directories and locks of work that is over."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.faults.lab import Lab
from bench.faults.machine import descendants
from kernels.builds.layers import Layers
from kernels.files.scratch import remove_leftovers
from workers.drivers.leftovers import Traces
from workers.service.leftover_processes import processes
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor
from workers.tests.libvirtd import guests

# What dies with its parent needs a moment for it.
GRACE_S = 15.0


def leftovers(lab: Lab) -> list[str]:
    """A line for each thing that is left, once what is ending has had time to end."""
    end = time.monotonic() + GRACE_S
    while (
        remnants := [*_strays(lab), *_mounts(lab), *_guests(lab), *locks(lab.home)]
    ) and time.monotonic() < end:
        time.sleep(0.5)
    return [*remnants, *_scratch(lab), *_drafts(lab)]


def _strays(lab: Lab) -> Iterator[str]:
    """Processes of the lab's below none of its programs, and whatever a program that is idle still runs."""
    place = ServicePlace(lab.home)
    states = Supervisor(place).states()
    roots = {state.pid for state in states if state.pid} | ({lab.far.pid} if lab.far else set())
    # PostgreSQL and gunicorn are several processes each.
    several = {state.pid for state in states if state.name in {"postgres", "web"}}
    known = set(roots)
    for pid in several:
        known |= set(descendants(pid))
    supervisor = int((place.folder / "supervisord.pid").read_text())
    for pid in roots - several:
        for child, name in descendants(pid).items():
            known.add(child)
            if not _serves_readers(child):
                yield f"process {child} ({name}) below an idle program"
    for pid, command in processes(place).items():
        if pid not in known and pid != supervisor:
            yield f"process {pid}: {command}"


def _serves_readers(pid: int) -> bool:
    """Return whether a process is the server that forks readers of strangers' files: each worker keeps one."""
    with suppress(OSError):
        return b"kernels.sandbox.reader_server" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def _guests(lab: Lab) -> Iterator[str]:
    """Guests of boots that are over."""
    for pid in guests(Traces(lab.home).prefix):
        yield f"guest of process {pid}"


def _mounts(lab: Lab) -> Iterator[str]:
    """Overlays of builds, in whatever namespace."""
    seen = set()
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):
            for line in path.read_text().splitlines():
                if " - overlay " in line and str(lab.home) in line and line not in seen:
                    seen.add(line)
                    yield f"mount of process {path.parent.name}: {line.partition(' - ')[2][:120]}"


def _scratch(lab: Lab) -> Iterator[str]:
    """Scratch directories that the next builder would not remove."""
    root = Layers(lab.home).scratch
    remove_leftovers(root)
    for path in root.iterdir() if root.is_dir() else ():
        yield f"scratch directory {path}"


def _drafts(lab: Lab) -> Iterator[str]:
    # Where artifacts of the store arrive; the next fetch removes what a killed process left.
    coming = lab.home / "artifacts" / ".coming"
    remove_leftovers(coming)
    for path in (*(lab.home / "artifacts").glob(".*"), *coming.glob("*")):
        if path != coming:
            yield f"draft of an artifact {path}"
    for path in (lab.home / "runs").glob("*/initrd"):
        yield f"initrd of a run that is over: {path}"


def locks(home: Path, held: Path = Path("/proc/locks")) -> Iterator[str]:
    """Yield a line for each flock of a file of the lab's, which an idle lab holds for a moment only."""
    files = {_identity(path): path for path in home.rglob("*lock*") if path.is_file()}
    for line in held.read_text().splitlines():
        fields = line.split()
        if "FLOCK" in fields and (path := files.get(fields[5])):
            # The process that took it; where that is gone, one that it forked holds it.
            command = Path(f"/proc/{fields[4]}/cmdline")
            text = (
                command.read_bytes().replace(b"\0", b" ").decode(errors="replace") if command.exists() else ""
            )
            yield f"lock {path} taken by process {fields[4]} ({text.strip() or 'gone'})"


def _identity(path: Path) -> str:
    """Return device and inode as /proc/locks writes them: two labs' disks have the same inodes."""
    status = path.stat()
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
