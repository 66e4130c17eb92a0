# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the guest's user space from this host's programs: cpio archives, cached by content.

Not compressed: under emulation the kernel unpacks gzip more slowly than we load the bytes. perf and its libraries are
30 of 37 MB and take a quarter of a boot's instructions to unpack, so plans without perf get an archive without it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workloads.compile_once import Product, compile_once
from workloads.environment import minimal
from workloads.errors import GuestNotMade
from workloads.guest.cpio import Archive
from workloads.guest.plan import GUEST_PROGRAMS, Plan

TOOLS = {
    "busybox": "busybox-static",
    "cyclictest": "rt-tests",
    "ip": "iproute2",
    "rdma": "iproute2",
}
"""What every guest finds in /bin, and the Debian package that has it."""
PROFILER = {"perf": "linux-perf"}
"""What only guests with a use for it find there."""
KEXEC = {"kexec": "kexec-tools"}
"""What only machines with a use for it find there, in an archive of its own: most guests need not unpack it."""
# In sbin on Debian, which is not on an ordinary user's PATH.
SEARCH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
AGENT = Path(__file__).with_name("agent")
"""The folder of the agent's sources."""
COMMAND_DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Initramfs:
    """A finished user space; the names of its files hold their hashes, so they never change.

    path: with everything, for any plan. lean: without perf. sha256: of `path`.
    """

    path: Path
    sha256: str
    lean: Path

    def for_plan(self, plan: Plan) -> Path:
        """The smallest archive with all that a plan's commands name."""
        words = {
            word for step in plan.steps for argument in step.argv for word in re.split(r"[\s;|&/]+", argument)
        }
        return self.path if words & PROFILER.keys() else self.lean


def build_initramfs(root: Path, programs: Mapping[str, Path]) -> Initramfs:
    """The initramfs with the agent as /init and `programs` (name to static binary) in /programs.

    root: where initramfs files are kept; an equal one is not written again.
    Raises GuestNotMade, ProgramDiskFull.
    """
    tools = (_find(name, package) for name, package in (TOOLS | PROFILER).items())
    inputs = (*_agent_files(), *tools, *programs.values())
    identity = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in inputs)
    made = _build(root, tuple(sorted(programs.items())), identity)
    if not (made.path.exists() and made.lean.exists()):
        _build.cache_clear()
        made = _build(root, tuple(sorted(programs.items())), identity)
    return made


def kexec_archive() -> bytes:
    """Return the archive of tools with which a machine starts the next kernel by kexec. Raises GuestNotMade."""
    archive = Archive()
    _add_tools(archive, KEXEC)
    return archive.pack()


@lru_cache(maxsize=4)
def _build(root: Path, programs: tuple[tuple[str, Path], ...], _identity: object) -> Initramfs:
    """Read, pack and hash it all: half a second that a worker need not spend on each of its boots."""
    archive = Archive()
    archive.file("/init", _agent(root / "agents"), 0o755)
    archive.character_device("/dev/console", 5, 1)
    archive.character_device("/dev/null", 1, 3, 0o666)
    _add_tools(archive, TOOLS)
    _add_applets(archive)
    for name, path in programs:
        archive.file(str(GUEST_PROGRAMS / name), path.read_bytes(), 0o755)
    lean, _ = _keep(root, archive)
    _add_tools(archive, PROFILER)
    path, sha256 = _keep(root, archive)
    return Initramfs(path, sha256, lean)


def _keep(root: Path, archive: Archive) -> tuple[Path, str]:
    """The archive's file, named by its hash, and the hash."""
    packed = archive.pack()
    sha256 = hashlib.sha256(packed).hexdigest()
    path = root / f"{sha256[:16]}.cpio"
    if not path.exists():
        _write(path, packed)
    return path, sha256


def _add_tools(archive: Archive, tools: Mapping[str, str]) -> None:
    """Host programs in /bin, their libraries where the loader looks."""
    for name, package in tools.items():
        program = _find(name, package)
        archive.file(f"/bin/{name}", program.read_bytes(), 0o755)
        for library in _libraries(program):
            # ldd's own answer: /lib/x86_64-linux-gnu is in the loader's path, and so is the loader's.
            archive.file(str(library), library.read_bytes(), 0o755)


def _add_applets(archive: Archive) -> None:
    """Busybox under all its names but those of real tools."""
    done = subprocess.run(
        [_find("busybox", TOOLS["busybox"]), "--list"],
        capture_output=True,
        text=True,
        timeout=COMMAND_DEADLINE_S,
        env=minimal(),
    )
    if done.returncode:
        raise GuestNotMade(f"busybox ended with status {done.returncode}", done.stderr)
    for applet in done.stdout.split():
        if applet not in TOOLS | PROFILER | KEXEC:
            archive.link(f"/bin/{applet}", "busybox")


def _find(name: str, package: str) -> Path:
    program = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *SEARCH)))
    if not program:
        raise GuestNotMade(f'the guest needs "{name}", which is not here: apt-get install {package}')
    return Path(program)


def _libraries(program: Path) -> list[Path]:
    """The shared libraries that ldd names, the loader included; none for a static program."""
    done = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, env=minimal()
    )
    missing = re.findall(r"(\S+) => not found", done.stdout)
    if missing:
        raise GuestNotMade(f"{program} cannot run here either: {', '.join(missing)} not found")
    return [Path(path) for path in re.findall(r"(?:^\s*|=> )(/\S+) \(0x", done.stdout, re.MULTILINE)]


def _agent(cache: Path) -> bytes:
    """The compiled agent, kept under the hash of its sources and its compiler."""
    flags = ("-D_GNU_SOURCE", "-O2", "-static", "-s", "-Wall", "-Wextra")
    return compile_once(Product("the guest's agent", "agent", flags, _agent_files()), cache).read_bytes()


def _agent_files() -> tuple[Path, ...]:
    """Its sources and headers, in an order of their own."""
    return tuple(sorted(AGENT.glob("*.[ch]")))


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: it appears under its name only once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
        new.write(data)
        new.flush()
        os.fsync(new.fileno())
    Path(new.name).chmod(0o644)
    Path(new.name).rename(path)
