# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a comparison that describe the experiment: what was asked for, the base, the kernels, the environment."""

from datetime import datetime

from django.conf import settings

from lab.comparisons.shape import BaseData, EnvironmentData, ExperimentData, SwitchData, VariantData
from lab.experiments.environment import lab_version, surroundings
from lab.experiments.shown_description import measure_of
from lab.models import Experiment
from lab.models.states import Role


def experiment_data(row: Experiment) -> ExperimentData:
    """Return the description and the end of an experiment."""
    measure = measure_of(row.spec)
    return ExperimentData(
        id=row.pk,
        name=row.name,
        state=row.state,
        problem=row.problem,
        clock=row.clock,
        design=row.design,
        boots=row.boots,
        sequential=row.sequential,
        iterations=row.iterations,
        warmup=row.warmup,
        placebo=measure.placebo,
        profile=measure.profile,
        profile_boots=measure.profile_boots,
        off_cpu=measure.off_cpu,
        verify=row.verify,
        seed=row.seed,
        measure=measure.model_dump(mode="json"),
        submitted=_moment(row.created_at),
        finished=_moment(row.finished_at),
    )


def _moment(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else ""


def base_data(row: Experiment) -> BaseData:
    """Return the tree and commit under all kernels of an experiment."""
    base = row.variants.filter(role=Role.BASE).first()
    return BaseData(
        name=base.name if base else "base",
        tree=row.tree.name,
        location=public_location(row),
        revision=row.base_name,
        commit=row.base_commit,
        tree_id=row.base_tree_id,
    )


def public_location(row: Experiment) -> str:
    """The URL of a git tree, as others may see it: paths of this machine and what carries a password stay here."""
    location = row.tree.location
    known = row.tree.kind == "git" and location.startswith(("https://", "http://", "git://"))
    return location if known and "@" not in location else ""


def environment_data(row: Experiment) -> EnvironmentData:
    """Return the environment of the boots as a boot of the base recorded it."""
    found = surroundings(row, root=settings.HOME)
    target = row.target
    return EnvironmentData(
        target=target.name,
        driver=target.driver,
        vcpus=1 if row.clock == "instructions" else target.vcpus,
        memory_mib=target.memory_mib,
        lab=lab_version(),
        cpu=found.cpu,
        accelerator=found.accelerator,
        host_cpu=found.host_cpu,
        host_cpus=found.host_cpus,
        host_kernel=found.host_kernel,
        emulator=found.emulator,
        cmdline=found.cmdline,
        config_sha256=found.config_sha256,
        toolchain=found.toolchain,
    )


def switches_data(row: Experiment) -> list[SwitchData]:
    """Return the patches and config changes of an experiment in their order."""
    return [
        SwitchData(name=one.name, kind=one.kind, title=one.title, author=one.author, link=one.link)
        for one in row.switches.all()
    ]


def variants_data(row: Experiment) -> list[VariantData]:
    """Return the kernels of an experiment in their order, also those that were not built."""
    return [
        VariantData(
            id=one.pk,
            name=one.name,
            role=one.role,
            switches=list(one.switches),
            state=one.state,
            problem=one.problem,
            blame=one.build.blame if one.build else "submission" if one.problem else "",
            note=one.note,
            release=one.build.release if one.build else "",
            code_hash=one.build.code_hash if one.build else "",
        )
        for one in row.variants.select_related("build")
    ]
