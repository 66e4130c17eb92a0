# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel through a bucket: sent from the state root that built it, fetched into another, booted there by libvirt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from kernels.artifacts.store import Artifact
from kernels.files.scratch import remove_tree
from lab.storage.artifacts import artifacts_of
from lab.storage.signing_keys import register_key
from lab.tests.stores import bucket_store
from lab.tests.stores import moto as moto
from workers import artifact_transfer as carry
from workers.drivers.base import BootRequest, Machine
from workers.drivers.libvirt import LibvirtDriver
from workloads.guest.initramfs import build_initramfs
from workloads.guest.pack import append_plan, pack_plan
from workloads.guest.plan import Plan, Step
from workloads.guest.records import gather

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db]


@pytest.fixture
def other() -> Iterator[Path]:
    """A second state root, where QEMU's user may enter."""
    home: Path = django_settings.HOME / "carry-tests"
    remove_tree(home)
    home.mkdir(parents=True)
    yield home
    LibvirtDriver(home).sweep(lambda _pid, _started: False)
    remove_tree(home)


def test_a_kernel_that_came_from_a_bucket_boots(
    artifact: Artifact, settings: Any, moto: str, other: Path
) -> None:
    bucket_store(settings, moto)
    register_key(artifact.directory.parents[1])
    carry.send(artifact.directory.parents[1], artifact)
    with carry.at_hand(other, artifact.key) as fetched:
        assert fetched.directory.parent == other / "artifacts"
        assert artifacts_of(other).verify(artifact.key).metadata == artifact.metadata
        directory = other / "runs" / "carried"
        directory.mkdir(parents=True)
        plan = Plan((Step("talk", ("/bin/sh", "-c", "uname -r"), 30, "measure", ()),))
        append_plan(build_initramfs(other, {}).for_plan(plan), pack_plan(plan, {}), directory / "initrd")
        request = BootRequest(
            name="carried",
            kernel=fetched.boot_vmlinux,
            initrd=directory / "initrd",
            cmdline="",
            machine=Machine(1, 512, "tcg"),
            disks=(),
            release=fetched.metadata.release,
            directory=directory,
            boot_deadline_s=240.0,
            silence_deadline_s=60.0,
        )
        driver = LibvirtDriver(other)
        try:
            with driver.boot(request) as session:
                records = list(session.records(240))
        finally:
            driver.close()
    assert gather(records, "out", "talk").decode().strip() == artifact.metadata.release
