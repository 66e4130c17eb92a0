# SPDX-License-Identifier: GPL-2.0-or-later
"""The accelerator for guests on this host: the first that has really booted a kernel in time.

/dev/kvm alone proves little: in a nested guest it may fail or be very slow at the first real kernel. So a kernel is
booted under it, once per host; the result is cached under the state root until something it depends on changes.

A stranger's kernel may be written to boot only under emulation, which would slow this host down for everybody: if it fails under KVM,
that counts for this kernel alone. Only a kernel of the lab's own trees, without patches, decides against KVM for all.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernels.architecture import BUILT
from kernels.artifacts.store import ArtifactMetadata
from kernels.trees.tree import DEFAULT_ARCHIVES
from workers.drivers.base import Accelerator, BootRequest, Driver, Machine
from workers.drivers.hostfacts import cpu_model
from workers.drivers.libvirt import LibvirtDriver
from workers.errors import KernelOutcome, TargetLost
from workloads.errors import RecordCorrupt
from workloads.guest.initramfs import build_initramfs
from workloads.guest.pack import append_plan, pack_plan
from workloads.guest.plan import Plan

log = logging.getLogger(__name__)

KVM_DEVICE = Path("/dev/kvm")
PROBE_DEADLINE_S = 20.0
"""A working KVM needs less than a second, emulation about two; a KVM slower than this is of no use."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An accelerator, the reason for it, and what it is valid for: a host (fingerprint), and one kernel, "" for all kernels."""

    accelerator: Accelerator
    reason: str
    fingerprint: str
    kernel: str = ""


def choose_accelerator(home: Path, kernel: Path, *, trusted: bool) -> Accelerator:
    """Return the accelerator to boot with on this host; probes with `kernel`, a vmlinux, if it is not known yet.

    trusted: the kernel is the lab's own, see is_trusted. Raises the lab faults of the libvirt driver.
    """
    return find_choice(home, kernel, lambda: LibvirtDriver(home), trusted=trusted).accelerator


def is_trusted(metadata: ArtifactMetadata) -> bool:
    """Return whether a kernel was built of a tree that comes with the lab, with nobody's patches."""
    return metadata.tree in DEFAULT_ARCHIVES and metadata.revision == metadata.base


def find_choice(home: Path, kernel: Path, make_driver: Callable[[], Driver], *, trusted: bool) -> Choice:
    """Return the remembered choice for this host or this kernel; without one, probe, and remember a certain result."""
    fingerprint, identity = host_fingerprint(), _identity(kernel)
    for_all = home / "accelerator.json"
    for_kernel = home / "accelerators" / f"{fingerprint}-{identity}.json"
    for kept in (for_all, for_kernel):
        remembered = _read(kept)
        # One kernel's result is checked again with a trusted kernel.
        if (
            remembered is not None
            and remembered.fingerprint == fingerprint
            and (not remembered.kernel or (remembered.kernel == identity and not trusted))
        ):
            return remembered
    choice, certain = _probe(home, kernel, make_driver, fingerprint)
    if certain and not trusted and KVM_DEVICE.exists() and choice.accelerator == "tcg":
        choice = replace(choice, kernel=identity)
    if certain:
        for_kernel.parent.mkdir(exist_ok=True)
        for kept in for_kernel.parent.glob("*.json"):
            if not kept.name.startswith(fingerprint):
                kept.unlink(missing_ok=True)
        _write(for_kernel if choice.kernel else for_all, choice)
    return choice


def _identity(kernel: Path) -> str:
    """A kernel's file, by its place and times: artifacts never change."""
    status = kernel.stat() if kernel.exists() else None
    text = f"{kernel.absolute()} {status and (status.st_ino, status.st_size, status.st_mtime_ns)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def host_fingerprint() -> str:
    """Return a hash of all that decides whether an accelerator works: device, processor, QEMU, this boot of the host."""
    qemu = Path(shutil.which(BUILT.qemu) or "/nonexistent")
    parts = [cpu_model(), os.uname().release, Path("/proc/sys/kernel/random/boot_id").read_text().strip()]
    for path in (KVM_DEVICE, qemu):
        status = path.stat() if path.exists() else None
        parts.append(f"{path} {status and (status.st_mode, status.st_uid, status.st_gid, status.st_size)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _probe(
    home: Path, kernel: Path, make_driver: Callable[[], Driver], fingerprint: str
) -> tuple[Choice, bool]:
    """Return the choice, and False if the kernel booted under neither accelerator."""
    if not KVM_DEVICE.exists():
        return Choice("tcg", f"there is no {KVM_DEVICE}", fingerprint), True
    driver = make_driver()
    trouble = _boots(home, kernel, "kvm", driver)
    if not trouble:
        return Choice("kvm", "a kernel booted under it", fingerprint), True
    reason = f"{KVM_DEVICE} is there, but no kernel boots under it: {trouble}"
    if _boots(home, kernel, "tcg", driver):
        # The kernel may be at fault; the run that follows finds out.
        return Choice("tcg", reason, fingerprint), False
    log.warning("%s. Guests are emulated instead (TCG), which is 10 to 50 times slower.", reason)
    return Choice("tcg", reason, fingerprint), True


def _boots(home: Path, kernel: Path, accelerator: Accelerator, driver: Driver) -> str:
    """Return why a kernel does not boot under an accelerator; "" if it boots."""
    initramfs = build_initramfs(home / "initramfs", {})
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="probe-") as scratch:
        directory = Path(scratch)
        directory.chmod(0o711)
        append_plan(initramfs.path, pack_plan(Plan(()), {}), directory / "initrd")
        request = BootRequest(
            name=f"accelerator probe: {accelerator}",
            kernel=kernel,
            initrd=directory / "initrd",
            cmdline="",
            machine=Machine(1, 512, accelerator),
            disks=(),
            release="",
            directory=directory,
            boot_deadline_s=PROBE_DEADLINE_S,
            silence_deadline_s=PROBE_DEADLINE_S,
        )
        try:
            with driver.boot(request) as session:
                for _ in session.records(PROBE_DEADLINE_S):
                    pass
        except (KernelOutcome, TargetLost, RecordCorrupt) as error:
            return str(error)
    return ""


def _read(path: Path) -> Choice | None:
    """Return the remembered choice; None if it is not readable."""
    try:
        return Choice(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write(path: Path, choice: Choice) -> None:
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(asdict(choice), indent=1))
    new.rename(path)
