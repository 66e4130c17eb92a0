# SPDX-License-Identifier: GPL-2.0-or-later
"""Run one command of an untrusted tree where it can touch nothing but its own build.

The command sees /usr read-only, its source at /build/linux, its objects at /build/obj and a
directory for its results at /build/out; no network, no capabilities, no other process. Source
and objects are always at these two paths, because absolute paths are in every compiler command line:
an object directory that appears elsewhere is rebuilt from nothing. Each may be a layer: an overlay
over a directory that the command can read but never change. Further directories may be shown, read-only, below /build.

If root starts it, root makes the mounts and the command runs as the lab's build user. If an ordinary
user starts it, both happen in a user namespace of that user.
"""

import contextlib
import math
import os
import pwd
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernels.errors import HostUnfit, SandboxFailed
from kernels.processes.environment import minimal
from kernels.sandbox.cpu_time import CpuUse
from kernels.sandbox.disk_quota import DiskUse, Quota, free_room
from kernels.sandbox.memory import memory_group, physical_memory
from kernels.sandbox.output import LineReader
from kernels.sandbox.syscalls import filter_file

SOURCE = "/build/linux"
OBJECTS = "/build/obj"
OUT = "/build/out"
BUILD_USER = "kperflab-build"

# Exit status of the set-up script when a mount fails; make itself ends with 0, 1 or 2.
_MOUNT_FAILED = 121
_POLL_S = 0.5
NICE = 10
_KEYS = ("keys", "key-users", "kallsyms", "kcore")
_HIDDEN = (*_KEYS, "sched_debug", "timer_list", "latency_stats", "modules", "kmsg")
TMP_BYTES, SHM_BYTES = 2 << 30, 64 << 20
# Share of the machine's memory for all processes of a build together.
MEMORY_PERCENT = 75
# How long a command that closed its output may take to end.
_END_S = 10.0
_MARK = "kperflab-sandbox:"
# bwrap does not wait for its children, so their CPU time never reaches us: the shell inside prints it.
# Where the kernel schedules sessions as groups (autogroup), nice has no effect on other sessions, so the group is made nice.
# The kernel accepts that from ordinary users at most every 100 ms, from all of them together.
_NICE = (
    "for again in $(seq 30); do [ -e /proc/self/autogroup ] || break; "
    f"{{ echo {NICE} >/proc/self/autogroup; }} 2>/dev/null && break; sleep 0.11; done; "
)
_INNER = (
    _NICE + f'echo {_MARK}; read -r go || exit; "$@" </dev/null; status=$?; echo {_MARK}; times; exit $status'
)
_TIMES = re.compile(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s")

# Arguments: linux-lower linux-upper obj-lower obj-upper work out overlay-option groups, pairs of a name and a directory, --, the command.
# An empty upper means a bind mount. /mnt is hidden by a tmpfs of this mount namespace only, so that
# the build user can reach the mounts whatever the permissions of the directories above the originals.
_SETUP = f"""
fail() {{ exit {_MOUNT_FAILED}; }}
place() {{
    if [ -n "$2" ]
    then mount -t overlay -o "lowerdir=$1,upperdir=$2,workdir=$work/$3$option" overlay "/mnt/$3"
    else mount --bind "$1" "/mnt/$3"
    fi
}}
for group in $8; do echo $$ >"$group" || fail; done
mount -t tmpfs -o mode=0755,size=64k tmpfs /mnt || fail
mkdir /mnt/linux /mnt/obj /mnt/out || fail
work=$5; option=$7
place "$1" "$2" linux || fail
place "$3" "$4" obj || fail
place "$6" "" out || fail
shift 8
while [ "$1" != -- ]
do mkdir "/mnt/$1" && place "$2" "" "$1" || fail; shift 2
done
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """A directory of the sandbox: `lower` itself, or, with `upper`, an overlay that keeps `lower` as it is."""

    lower: Path
    upper: Path | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one command, in bytes and seconds; cores is the number of jobs that make starts.

    seconds: of wall time. cpu_seconds: of CPU time, of all its processes together.
    memory: address space of each process. total_memory: of all together, where control groups allow.
    disk, files: limits on all that it writes, see disk_quota.py.
    reserve, reserve_files: free disk space, and free inodes, below which the command is stopped, no matter which process used the rest.
    """

    seconds: float = 3600.0
    cpu_seconds: float = math.inf
    memory: int = 6 << 30
    total_memory: int = field(default_factory=lambda: physical_memory() * MEMORY_PERCENT // 100)
    processes: int = 1024
    file_bytes: int = 4 << 30
    log_bytes: int = 64 << 20
    reserve: int = 256 << 20
    disk: int = 24 << 30
    files: int = 500_000
    reserve_files: int = 50_000
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class SandboxPlace:
    """The directories of a command: its layers, one for results, one for overlayfs; shown: others, by their name below /build."""

    source: Layer
    objects: Layer
    out: Path
    work: Path
    shown: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command, as the lab measured it. The command's own output is not considered.

    stopped: "", or why we ended it: "time", "cpu", "log", "disk" (the lab's is full), "quota".
    out_of_memory: whether the kernel killed one of its processes for memory, as far as we can determine (memory.py).
    disk_short: whether the lab's disk was below its reserve at any check, including one after the command ended.
    starved: whether other processes occupied the CPUs while its own were ready to run, see cpu_time.py.
    killed: whether a process around the sandbox, which the command cannot reach, was killed, and not by us.
    """

    status: int
    stopped: str
    cpu_seconds: float
    wall_seconds: float
    out_of_memory: bool = False
    disk_short: bool = False
    starved: bool = False
    killed: bool = False


def build_owner() -> tuple[int, int]:
    """Return the user and group id that commands run as: our own unless we are root. Raises SandboxFailed."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    try:
        entry = pwd.getpwnam(BUILD_USER)
    except KeyError as exc:
        raise SandboxFailed(f'the system user "{BUILD_USER}" is missing; run: ./bootstrap') from exc
    return entry.pw_uid, entry.pw_gid


def run(
    argv: Sequence[str],
    place: SandboxPlace,
    environment: dict[str, str],
    limits: Limits,
    *,
    on_line: Callable[[str], None] = lambda line: None,
    on_tick: Callable[[], None] = lambda: None,
) -> Ended:
    """Run argv in /build/obj and pass on its output line by line.

    on_tick is called at least once a second. An exception that either callback raises kills the command
    and is passed on. Raises SandboxFailed when the command could not even start, HostUnfit.
    """
    started = time.monotonic()
    with memory_group(limits.total_memory) as group:
        outer = _outer(place, " ".join(group.joins))
        child = _start(outer, [*_limited(limits), *argv], environment, place.shown)
        watch = _Watch(place, limits, started + limits.seconds, CpuUse(group, child.pid, limits.cores))
        output = _Output(child, on_line)
        with LineReader(child, limits.log_bytes) as reader:
            try:
                while not reader.ended and not watch.verdict(reader.overflow):
                    for line in reader.lines(_POLL_S):
                        output.take(line)
                    on_tick()
            finally:
                status, ours = _end(child, kill=not reader.ended)
        short, counted = group.out_of_memory(), group.cpu_seconds()
    if not output.began and not watch.stopped:
        raise _not_started(output.complaints)
    return Ended(
        status,
        watch.stopped,
        # The shell's figures are second best: the command could print the same.
        output.cpu_seconds if counted is None else counted,
        time.monotonic() - started,
        out_of_memory=short,
        disk_short=watch.is_disk_short(),
        starved=watch.starved,
        killed=status < 0 and not ours,
    )


class _Output:
    """Tells the command's own lines from those of the sandbox around it."""

    def __init__(self, child: subprocess.Popen[bytes], on_line: Callable[[str], None]) -> None:
        self.child, self.on_line = child, on_line
        self.began, self.cpu_seconds = False, 0.0
        self.complaints: list[str] = []
        self._times = 0

    def take(self, line: str) -> None:
        if not self.began:
            if line == _MARK:
                self.began = True
                _go(self.child)
            else:
                self.complaints.append(line)
        elif line.endswith(_MARK):  # the command's last line may lack its line end
            self._times, self.cpu_seconds = 2, 0.0  # the shell's own, then its children's
            if line != _MARK:
                self.on_line(line.removesuffix(_MARK))
        elif self._times and (match := _TIMES.fullmatch(line)):
            self._times -= 1
            user, system = 60 * int(match[1]) + float(match[2]), 60 * int(match[3]) + float(match[4])
            self.cpu_seconds += user + system
        else:
            self.on_line(line)


class _Watch:
    """Decides when a command has reached a limit."""

    def __init__(self, place: SandboxPlace, limits: Limits, deadline: float, cpu: CpuUse) -> None:
        self.disk, self.limits, self.deadline, self.cpu = place.out, limits, deadline, cpu
        # The source is read-only inside.
        written = [place.objects.upper or place.objects.lower, place.out]
        self.quota = Quota(written, DiskUse(limits.disk, limits.files))
        self.stopped = ""
        self.starved = self._disk_short = False

    def verdict(self, overflow: bool) -> str:
        self.cpu.look()
        short = self.is_disk_short()
        if time.monotonic() > self.deadline:
            self.stopped, self.starved = "time", self.cpu.starved()
        elif self.cpu.seconds > self.limits.cpu_seconds:
            self.stopped = "cpu"
        elif overflow:
            self.stopped = "log"
        elif self.quota.exceeded():
            self.stopped = "quota"
        elif short:
            self.stopped = "disk"
        return self.stopped

    def is_disk_short(self) -> bool:
        """Return whether the lab's disk is, or was at an earlier check, below the reserve."""
        free = free_room(self.disk)
        self._disk_short |= free.size < self.limits.reserve or free.files < self.limits.reserve_files
        return self._disk_short


def _start(
    outer: list[str], inner: list[str], environment: dict[str, str], shown: Iterable[str]
) -> subprocess.Popen[bytes]:
    calls = filter_file()
    try:
        return subprocess.Popen(
            [*outer, *_bwrap(environment, calls, shown), *inner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=minimal(),
            pass_fds=(calls,),
        )
    except FileNotFoundError as exc:
        raise HostUnfit(f'program "{exc.filename}" is missing; run: apt-get install util-linux') from exc
    finally:
        os.close(calls)


def _go(child: subprocess.Popen[bytes]) -> None:
    """Let the command begin: by now the sandbox dies if we do.

    If we are killed before that, the command's shell reads the end of its input instead, and exits.
    """
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(b"go\n")
            child.stdin.close()


def _end(child: subprocess.Popen[bytes], *, kill: bool) -> tuple[int, bool]:
    """Wait for a command, or kill it; return its exit status, and whether it was killed here.

    The sandbox's init dies with the process we started, and with it every process inside.
    """
    killed = kill and child.poll() is None
    if killed:
        child.kill()
    try:
        status = child.wait(_END_S)
    except subprocess.TimeoutExpired:
        killed = True
        child.kill()
        status = child.wait(_END_S)
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    return status, killed


def _not_started(complaints: list[str]) -> SandboxFailed:
    reason = complaints[-1] if complaints else "it said nothing"
    return SandboxFailed(
        f"the build sandbox does not start: {reason[:200]} (needs bubblewrap 0.8, user namespaces and overlayfs)",
        "\n".join(complaints),
    )


def _outer(place: SandboxPlace, group: str) -> list[str]:
    """Return the command that makes the mounts in a namespace and switches to the build user."""
    uid, gid = build_owner()
    root = os.geteuid() == 0
    paths = [place.source.lower, place.source.upper, place.objects.lower, place.objects.upper]
    for path in (*paths, place.work, place.out, *place.shown.values()):
        if path is not None and any(char in str(path) for char in ",:\\\n"):
            raise SandboxFailed(f'the directory "{path}" cannot be an overlay layer; use one without , : \\')
    for name in ("linux", "obj"):
        (place.work / name).mkdir(exist_ok=True)
    space = ["--mount", "--propagation", "private"]
    user = [] if root else ["--user", "--map-root-user"]
    # Whiteouts and opaque marks live in user.* attributes when the mount is not root's own.
    option = "" if root else ",userxattr"
    named = ["" if path is None else str(path) for path in paths]
    setup = ["/bin/sh", "-c", _SETUP, "sh", *named, str(place.work), str(place.out), option, group]
    setup += [*(word for name, path in place.shown.items() for word in (name, str(path))), "--"]
    down = ["setpriv", "--reuid", str(uid), "--regid", str(gid), "--clear-groups"] if root else []
    return ["unshare", *user, *space, "--", *setup, *down]


def _bwrap(environment: dict[str, str], calls: int, shown: Iterable[str]) -> list[str]:
    """Return the bwrap command. calls: the descriptor of the filter of system calls; shown: see SandboxPlace."""
    uid, gid = build_owner()
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--uid", str(uid), "--gid", str(gid)]
    # Else process 1 of the sandbox is bwrap, which started outside: its memory and environment could be read inside.
    argv += ["--as-pid-1"]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "kperflab"]
    # In a user namespace of its own a process would have capabilities, and could reach all the kernel's code behind them.
    argv += ["--disable-userns", "--seccomp", str(calls)]
    argv += ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    for name in ("bin", "sbin", "lib", "lib64"):
        argv += ["--symlink", f"usr/{name}", f"/{name}"]
    argv += ["--proc", "/proc", *_hidden(), "--dev", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108
    argv += ["--dir", "/build"]
    argv += ["--ro-bind", "/mnt/linux", SOURCE, "--bind", "/mnt/obj", OBJECTS, "--bind", "/mnt/out", OUT]
    argv += [word for name in shown for word in ("--ro-bind", f"/mnt/{name}", f"/build/{name}")]
    # No quota counts this memory.
    argv += ["--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    argv += ["--remount-ro", "/", "--clearenv", "--chdir", OBJECTS]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    return [*argv, "--"]


def _hidden() -> list[str]:
    """Return options that hide the files of /proc about the machine: its keys, the addresses of its kernel, its timers."""
    files = [path for name in _HIDDEN if (path := Path("/proc", name)).exists()]
    return [part for path in files for part in ("--ro-bind", "/dev/null", str(path))]


def _limited(limits: Limits) -> list[str]:
    """Return the command that sets limits; it runs in the sandbox's user namespace, where only its processes count."""
    return [
        # Page requests, and a boot that another process times, go first.
        "nice",
        f"-n{NICE}",
        "prlimit",
        f"--as={limits.memory}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        f"--cpu={int(limits.seconds * max(1, limits.cores))}",
        "--core=0",
        "--",
        "/bin/sh",
        "-c",
        _INNER,
        "sh",
    ]
