# SPDX-License-Identifier: GPL-2.0-or-later
"""Lays out a boot: a workload's plan and all that it uses, in one initrd, on one machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernels.artifacts.store import Artifact
from workers.drivers.base import BootRequest, Disk, Machine, Microscope, Way
from workloads.catalog import Workload
from workloads.compile import compile_programs
from workloads.guest.initramfs import Initramfs, build_initramfs, kexec_archive
from workloads.guest.pack import append_plan, pack_plan
from workloads.guest.plan import DISK_FILE, DISK_SERIAL, Plan
from workloads.guest.ramdisk import check_memory, ramdisk_option
from workloads.guest.tuning import Tuning
from workloads.image import build_image
from workloads.instruction_clock import GUEST_SECONDS, Clock

BOOT_DEADLINE_S: dict[Clock, float] = {"wall": 90.0, "instructions": 300.0, "contention": 300.0}
"""By clock: the instruction clock also runs on hosts that are too busy for timing."""
SILENCE_DEADLINE_S = 60.0
SLOWER: dict[Clock, float] = {"wall": 1, "instructions": GUEST_SECONDS, "contention": 10}
"""By clock: factor for the deadlines of steps, which the guest's clock measures; recording each access takes time."""


@dataclass(frozen=True, slots=True)
class Job:
    """The purpose of a boot. name: for people; target, access, way: see BootRequest."""

    name: str
    workload: Workload
    plan: Plan
    machine: Machine
    target: str = ""
    access: Mapping[str, Any] = field(default_factory=dict)
    tuning: Tuning = field(default_factory=Tuning)
    way: Way | None = None


def boot_request(
    job: Job, artifact: Artifact, home: Path, directory: Path, microscope: Microscope | None = None
) -> BootRequest:
    """Put initramfs and plan into one file, and the disk beside it, or into that file for a machine without disks.

    microscope: see BootRequest. home: the state root, which keeps initramfs, programs and images. Raises CaseRejected, and what making these raises.
    """
    modules = [f"{module.name}.ko" for module in job.workload.modules]
    files = {name: (artifact.modules / name).read_bytes() for name in modules}
    image = build_image(job.plan.disk, home / "images") if job.plan.disk else None
    disks: tuple[Disk, ...] = ()
    cmdline = ""
    if image and not job.machine.has_disks:
        check_memory(image, job.machine.memory_mib)
        files[DISK_FILE], cmdline = image.read_bytes(), ramdisk_option(image)
    elif image:
        disks = (Disk(image, "raw", DISK_SERIAL),)
    initramfs = user_space(home)
    initrd = directory / "initrd"
    plan = _slowed(job.plan, SLOWER[job.machine.clock])
    # A machine that starts the next boot by kexec receives the kexec program with this boot.
    kexec = kexec_archive() if job.access.get("kexec") else b""
    append_plan(initramfs.for_plan(plan), pack_plan(plan, files), initrd, kexec)
    return BootRequest(
        name=job.name,
        kernel=artifact.boot_vmlinux,
        initrd=initrd,
        cmdline=" ".join(filter(None, (cmdline, job.plan.cmdline, job.tuning.cmdline()))),
        machine=job.machine,
        disks=disks,
        release=artifact.metadata.release,
        directory=directory,
        boot_deadline_s=BOOT_DEADLINE_S[job.machine.clock],
        silence_deadline_s=SILENCE_DEADLINE_S,
        hz=_hz(artifact),
        target=job.target,
        access=job.access,
        way=job.way,
        microscope=microscope,
    )


def user_space(home: Path) -> Initramfs:
    """Return the initramfs of all guests of a state root; make it if it is missing. Raises WorkloadsError."""
    return build_initramfs(home / "initramfs", compile_programs(home / "programs"))


def _slowed(plan: Plan, times: float) -> Plan:
    """Return a plan whose deadlines suit a guest on that clock."""
    steps = (replace(step, deadline_s=step.deadline_s * times) for step in plan.steps)
    return replace(plan, steps=tuple(steps))


def _hz(artifact: Artifact) -> int:
    """Timer interrupts a second, from the artifact's config; 0 if it does not say."""
    match = re.search(r"^CONFIG_HZ=(\d+)$", artifact.config.read_text(), re.MULTILINE)
    return int(match[1]) if match else 0
