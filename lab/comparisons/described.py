# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a comparison that describe the experiment: what was asked for, the base, the kernels, the environment."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from lab.comparisons.shape import BaseData, EnvironmentData, ExperimentData, SwitchData, VariantData
from lab.experiments.environment import lab_version, stored_artifact
from lab.experiments.page import variants_of
from lab.experiments.shown_description import measure_of
from lab.from_attributes import attributes, from_attributes
from lab.models import Experiment, Run, Variant
from lab.models.states import Purpose, Role, RunState
from workloads.contention import LEAST_MIB, most_cpus


def experiment_data(row: Experiment) -> ExperimentData:
    """Return the description and the end of an experiment."""
    measure = measure_of(row.spec)
    return from_attributes(
        ExperimentData,
        row,
        **attributes(measure, ("placebo", "profile", "profile_boots", "off_cpu")),
        measure=measure.model_dump(mode="json"),
        submitted=_moment(row.created_at),
        finished=_moment(row.finished_at),
    )


def _moment(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else ""


def base_data(row: Experiment) -> BaseData:
    """Return the tree and commit under all kernels of an experiment."""
    base = _base(row)
    return BaseData(
        name=base.name if base else "base",
        tree=row.tree.name,
        location=public_location(row),
        revision=row.base_name,
        commit=row.base_commit,
        tree_id=row.base_tree_id,
    )


def _base(row: Experiment) -> Variant | None:
    return next((variant for variant in variants_of(row) if variant.role == Role.BASE), None)


def public_location(row: Experiment) -> str:
    """Return the URL of a git tree for others; "" for paths of this machine and URLs that may hold a password."""
    location = row.tree.location
    known = row.tree.kind == "git" and location.startswith(("https://", "http://", "git://"))
    return location if known and "@" not in location else ""


def environment_data(row: Experiment) -> EnvironmentData:
    """Return the environment of the boots as the first boot of the base that finished recorded it."""
    base = _base(row)
    kernel = stored_artifact(base.build, settings.HOME) if base else None
    finished = Run.objects.filter(variant=base, purpose=Purpose.MEASURED, state=RunState.DONE)
    environment = (finished.values_list("environment", flat=True).first() or {}) if base else {}
    guest, host, machine = (_part(environment, name) for name in ("guest", "host", "machine"))
    vcpus, memory_mib = _size(row)
    cpus = host.get("host_cpus")
    return EnvironmentData(
        target=row.target.name,
        driver=row.target.driver,
        vcpus=vcpus,
        memory_mib=memory_mib,
        lab=lab_version(),
        cpu=str(guest.get("cpu_model", "")),
        accelerator=str(machine.get("accelerator") or host.get("accelerator") or ""),
        host_cpu=str(host.get("host_cpu", "")),
        host_cpus=cpus if isinstance(cpus, int) else 0,
        host_kernel=str(host.get("host_kernel", "")),
        emulator=f"QEMU {host['qemu']}" if host.get("qemu") else "",
        cmdline=str(guest.get("cmdline", "")),
        config_sha256=kernel.metadata.config_sha256 if kernel else str(environment.get("config_sha256", "")),
        toolchain=kernel.metadata.toolchain if kernel else "",
    )


def _part(environment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = environment.get(name)
    return part if isinstance(part, Mapping) else {}


def _size(row: Experiment) -> tuple[int, int]:
    """Return the CPUs and the MiB of what boots: the target's, unless the clock decides; of several cases the most."""
    target = row.target
    if row.clock == "contention":
        cpus = max((most_cpus(case.params) for case in row.cases.all()), default=target.vcpus)
        return cpus, max(target.memory_mib, LEAST_MIB)
    return 1 if row.clock == "instructions" else target.vcpus, target.memory_mib


def switches_data(row: Experiment) -> list[SwitchData]:
    """Return the patches and config changes of an experiment in their order."""
    return [from_attributes(SwitchData, switch) for switch in row.switches.all()]


def variants_data(row: Experiment) -> list[VariantData]:
    """Return the kernels of an experiment in their order, also those that were not built."""
    return [
        from_attributes(
            VariantData,
            variant,
            switches=list(variant.switches),
            blame=variant.build.blame if variant.build else "submission" if variant.problem else "",
            release=variant.build.release if variant.build else "",
            code_hash=variant.build.code_hash if variant.build else "",
        )
        for variant in variants_of(row)
    ]
