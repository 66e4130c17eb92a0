# SPDX-License-Identifier: GPL-2.0-or-later
"""An empty Debian 12 that ssh reaches: a machine to set up, in namespaces of this one. Its first process is systemd.

It shares the network alone, where it has an address of its own, and a second network is its own. Its power can be cut and come back.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from workers.tests.debianbase import CACHE, base_archive, package_caches

# What concerns the kernel or the disks, which are not this machine's own, or a screen, which it has not.
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "console-getty.service",
    "dev-hugepages.mount",
    "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-journald-audit.socket",
    "systemd-modules-load.service",
    "systemd-sysctl.service",
    "systemd-udevd.service",
)
SSHD = "Port {port}\nListenAddress {address}\nUsePAM no\nUseDNS no\nMaxStartups 100\n"
# Arguments: lower upper work root log name kvm, then pairs of a folder here and its place there. Everything mounted is gone with
# the mount namespace. pivot_root, since a process in a chroot cannot create user namespaces, which builds need. Beside the network that
# it shares there is one of its own, with a cable of two ends.
START = r"""
set -eu
# The processes here, which have other numbers in the old /proc.
mount -t proc proc /proc
lower=$1 upper=$2 work=$3 root=$4 log=$5 name=$6 kvm=$7; shift 7
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work" "$root"
while [ $# -gt 0 ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else touch "$root$2"; fi
    mount --bind "$1" "$root$2"; shift 2
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
umount --recursive --lazy "$root/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/netns"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
touch "$root/dev/console" "$root/run/netns/bench"
mount --bind "$log" "$root/dev/console"
unshare --net="$root/run/netns/bench" sh -ec '
    # Both ends are here: what comes by the cable has an address of our own.
    echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
    ip link add lab0 type veth peer name bench0
    ip address add 198.51.100.1/24 dev lab0
    for name in lo lab0 bench0; do ip link set "$name" up; done'
# As on a machine whose KVM is closed to all but root.
[ "$kvm" = without ] || mknod -m 0600 "$root/dev/kvm" c 10 232
hostname lab
cd "$root"; mkdir -p .old; pivot_root . .old; cd /; umount -l /.old
exec env -i container=kperflab PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=true
"""
# The group of processes first: the namespace of groups begins where its maker is.
APART = """
echo $$ >"$1/cgroup.procs"; shift
exec unshare --mount --pid --ipc --uts --cgroup --fork --kill-child=KILL --propagation private -- /bin/bash -c "$@"
"""


@dataclass(slots=True)
class Machine:
    """A host of one name and address, whose files are in a folder here. Reached as root by ssh.

    mounts: a folder there → a folder here. has_kvm: whether it has a /dev/kvm, which says nothing about what boots under it.
    process: what holds its namespaces while it is on.
    """

    name: str
    address: str
    folder: Path
    mounts: Mapping[Path, Path]
    port: int = 0
    has_kvm: bool = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def key(self) -> Path:
        """Return the private key that opens it."""
        return self.folder / "key"

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
        return ["ssh", *options, "-i", str(self.key), "-p", str(self.port), f"root@{self.address}"]

    def run(self, command: str, stdin: str = "") -> str:
        """Run a shell command there and return its output; its failure fails the test."""
        done = subprocess.run(
            [*self.ssh, command], input=stdin, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def power_on(self) -> None:
        """Start its first process on the files that are there, and wait for ssh."""
        group, log = self._group, self.folder / "log"
        group.mkdir()
        pairs = [str(side) for there, here in self.mounts.items() for side in (here, there)]
        paths = [str(_unpacked()), *(str(self.folder / name) for name in ("upper", "work", "root", "log"))]
        kvm = "with" if self.has_kvm else "without"
        with log.open("a") as out:
            self.process = subprocess.Popen(
                ["/bin/bash", "-c", APART, "bash", str(group), START, "bash", *paths, self.name, kvm, *pairs],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        _await_ssh(self, self.process, log)

    def cut_power(self) -> None:
        """Kill every process of it at once; its files stay."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)
            self.process = None
        _remove_group(self._group)

    @property
    def _group(self) -> Path:
        return _groups() / self.folder.name


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def empty_machine(
    name: str = "lab",
    address: str = "127.0.0.1",
    mounts: Mapping[Path, Path] = MappingProxyType({}),
    *,
    has_kvm: bool = True,
) -> Iterator[Machine]:
    """A machine for as long as the block runs; every process of it ends with it. mounts, has_kvm: see Machine."""
    folder = Path(tempfile.mkdtemp(prefix=f"machine-{name}-", dir=CACHE))
    # Builds lay an overlay over the lab's home, which must not be one.
    home = {Path("/var/lib/kperflab"): folder / "home"}
    try:
        with _own_packages(folder) as packages:
            every = package_caches() | packages | home | dict(mounts)
            machine = Machine(name, address, folder, every, free_port(), has_kvm)
            _lay_out(machine)
            try:
                machine.power_on()
                yield machine
            finally:
                machine.cut_power()
    finally:
        _remove(folder)


def _lay_out(machine: Machine) -> None:
    """Lay out the machine beside an empty Debian: a key, where its sshd listens, and what it need not start."""
    folder = machine.folder
    units, sshd = folder / "upper/etc/systemd/system", folder / "upper/etc/ssh/sshd_config.d"
    for place in (folder / "upper/root/.ssh", folder / "work", folder / "root", folder / "home", units, sshd):
        place.mkdir(parents=True)
    (folder / "upper").chmod(0o755)
    (folder / "upper/root").chmod(0o700)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(machine.key)], check=True, timeout=30
    )
    shutil.copy(f"{machine.key}.pub", folder / "upper/root/.ssh/authorized_keys")
    (sshd / "machine.conf").write_text(SSHD.format(port=machine.port, address=machine.address))
    (folder / "upper/etc/hostname").write_text(f"{machine.name}\n")
    # Others have the network too, and maybe the ports: nothing starts because it was installed, but as a playbook says.
    policy = folder / "upper/usr/sbin/policy-rc.d"
    policy.parent.mkdir(parents=True)
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")


@contextmanager
def _own_packages(folder: Path) -> Iterator[dict[Path, Path]]:
    """Debian's packages by links of the machine's own: apt locks its cache, and several machines fetch at a time."""
    place = Path("/var/cache/apt/archives")
    common, own = package_caches()[place], folder / "apt"
    (own / "partial").mkdir(parents=True)
    _link_packages(common, own)
    try:
        yield {place: own}
    finally:
        _link_packages(own, common)


def _link_packages(source: Path, folder: Path) -> None:
    """Link each package of a folder into another that lacks it."""
    for package in source.glob("*.deb"):
        with suppress(FileExistsError):
            (folder / package.name).hardlink_to(package)


def _groups() -> Path:
    """Return the directory of this machine's cgroups of the second version; beside those of the first it has them too."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, place, kind, _rest = line.split(" ", 3)
        if kind == "cgroup2":
            return Path(place)
    raise AssertionError("no cgroup2 is mounted here: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")


def _remove_group(group: Path) -> None:
    """Ends what is left in it. The folders of a group are all that can be removed of it."""
    deadline = time.monotonic() + 30
    while group.exists() and time.monotonic() < deadline:
        (group / "cgroup.kill").write_text("1")
        for place, _folders, _files in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(place).rmdir()
        time.sleep(0.1)
    assert not group.exists(), f"{group} cannot be removed"


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
