# SPDX-License-Identifier: GPL-2.0-or-later
"""Read where an experiment ran and what its kernels were built with, for reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kernels.artifacts.store import Artifact
from kernels.errors import KernelsError
from lab.errors import LabError
from lab.models import Build, Experiment, Run
from lab.models.states import Purpose, Role, RunState
from lab.storage.artifacts import artifacts_of, fetch_papers
from lab.storage.store import lab_store


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One boot's machine and host as it recorded them, and the base's toolchain; empty or 0 where unknown."""

    cpu: str = ""
    accelerator: str = ""
    host_cpu: str = ""
    host_cpus: int = 0
    host_kernel: str = ""
    emulator: str = ""
    cmdline: str = ""
    config_sha256: str = ""
    toolchain: str = ""


def lab_version() -> str:
    """The version of this program, "unknown" where it is not installed."""
    try:
        return version("kperflab")
    except PackageNotFoundError:
        return "unknown"


def surroundings(experiment: Experiment, *, root: Path) -> Surroundings:
    """Return where the first boot of the base that finished ran. root: the state root, where artifacts are."""
    base = experiment.variants.select_related("build").filter(role=Role.BASE).first()
    if base is None:
        return Surroundings()
    kernel = stored_artifact(base.build, root)
    run = Run.objects.filter(variant=base, purpose=Purpose.MEASURED, state=RunState.DONE).first()
    environment = run.environment if run else {}
    guest, host, machine = (_part(environment, name) for name in ("guest", "host", "machine"))
    config = kernel.metadata.config_sha256 if kernel else str(environment.get("config_sha256", ""))
    return Surroundings(
        cpu=str(guest.get("cpu_model", "")),
        accelerator=str(machine.get("accelerator") or host.get("accelerator") or ""),
        host_cpu=str(host.get("host_cpu", "")),
        host_cpus=_whole(host.get("host_cpus")),
        host_kernel=str(host.get("host_kernel", "")),
        emulator=f"QEMU {host['qemu']}" if host.get("qemu") else "",
        cmdline=str(guest.get("cmdline", "")),
        config_sha256=config,
        toolchain=kernel.metadata.toolchain if kernel else "",
    )


def stored_artifact(build: Build | None, root: Path) -> Artifact | None:
    """Return the artifact of a build, None if neither this machine nor the store has all of it.

    An artifact that only the store has comes without its kernel: metadata, config, log and script.
    """
    return artifact_of(build.artifact_key, root) if build is not None and build.artifact_key else None


def artifact_of(key: str, root: Path) -> Artifact | None:
    """Return an artifact by its key, as stored_artifact does."""
    try:
        here = artifacts_of(root)
        if here.has(key):
            return here.get(key)
        store = lab_store()
        return fetch_papers(store, root / "papers", key) if store is not None else None
    except (KernelsError, LabError):
        return None


def _part(environment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = environment.get(name)
    return part if isinstance(part, Mapping) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
