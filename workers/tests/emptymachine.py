# SPDX-License-Identifier: GPL-2.0-or-later
"""An empty Debian 12 that ssh reaches: a machine to set up, in namespaces of this one. It shares the network alone."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.tests.debianbase import CACHE, base_archive, package_caches

# Arguments: lower upper work root port, then pairs of a folder here and its place there. Everything mounted is gone with the
# mount namespace. pivot_root, since who is in a chroot may make no user namespaces, which builds need.
START = r"""
set -eu
lower=$1 upper=$2 work=$3 root=$4 port=$5; shift 5
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work" "$root"
while [ $# -gt 0 ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else touch "$root$2"; fi
    mount --bind "$1" "$root$2"; shift 2
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/sshd"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
# As on a machine whose KVM is closed to all but root.
mknod -m 0600 "$root/dev/kvm" c 10 232
hostname lab
cd "$root"; mkdir -p .old; pivot_root . .old; cd /; umount -l /.old
/usr/sbin/sshd -D -e -p "$port" -o ListenAddress=127.0.0.1 -o UsePAM=no -o UseDNS=no -o MaxStartups=100 &
wait
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """root: its files, seen from here only while nothing is mounted over them. Reached as root by ssh."""

    port: int
    key: Path
    upper: Path

    @property
    def ssh(self) -> list[str]:
        """The command that runs others there."""
        options = [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        ]
        return ["ssh", *options, "-i", str(self.key), "-p", str(self.port), "root@127.0.0.1"]

    def run(self, command: str, given: str = "") -> str:
        """What a shell command there prints; its failure fails the test."""
        done = subprocess.run(
            [*self.ssh, command], input=given, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def empty_machine() -> Iterator[Machine]:
    """A machine for as long as the block runs; every process of it ends with it."""
    lower = _unpacked()
    folder = Path(tempfile.mkdtemp(prefix="machine-", dir=CACHE))
    try:
        for name in ("upper/root/.ssh", "work", "root", "home"):
            (folder / name).mkdir(parents=True)
        (folder / "upper/root").chmod(0o700)
        (folder / "upper").chmod(0o755)
        key = folder / "key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=30
        )
        shutil.copy(f"{key}.pub", folder / "upper/root/.ssh/authorized_keys")
        machine = Machine(free_port(), key, folder / "upper")
        # Builds lay an overlay over the lab's home, which must not be one.
        mounts = package_caches() | {Path("/var/lib/kperflab"): folder / "home"}
        pairs = [str(side) for there, here in mounts.items() for side in (here, there)]
        paths = [str(lower), *(str(folder / name) for name in ("upper", "work", "root")), str(machine.port)]
        namespaces = [
            "--mount",
            "--pid",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child=KILL",
            "--propagation",
            "private",
        ]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                ["unshare", *namespaces, "--", "/bin/bash", "-c", START, "bash", *paths, *pairs],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        try:
            _await_ssh(machine, process, folder / "log")
            yield machine
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
    finally:
        _remove(folder)


def _unpacked() -> Path:
    archive = base_archive()
    folder = archive.with_suffix("")
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix="unpacking-", dir=CACHE))
        draft.chmod(0o755)
        subprocess.run(
            ["tar", "--extract", "--numeric-owner", "--xattrs", "--exclude=./dev/*", "--file", str(archive)],
            cwd=draft,
            check=True,
            timeout=300,
        )
        draft.rename(folder)
    return folder


def _await_ssh(machine: Machine, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run([*machine.ssh, "true"], capture_output=True, timeout=30, check=False).returncode:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def _remove(folder: Path) -> None:
    """The last mounts go a moment after the last process."""
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.2)
    assert not folder.exists(), f"{folder} cannot be removed"
