# SPDX-License-Identifier: GPL-2.0-or-later
"""Accesses to memory of a real kernel on several virtual CPUs: they arrive complete, and are those of the path that ran."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact
from workers.boot_request import Job, boot_request
from workers.drivers.base import BootRequest, Machine
from workers.drivers.libvirt import LibvirtDriver
from workers.errors import ProfileUnreadable
from workers.microscope.accesses import check_cpus, read_recordings
from workers.microscope.looking import Look, look_at
from workers.microscope.slab_pages import SlabPages, slab_pages
from workers.tests.libvirtd import repeated
from workers.tests.test_accesses import decoded
from workers.tests.test_driver_real import driver, home  # noqa: F401 fixtures
from workloads.catalog import load_catalog
from workloads.compile import compile_programs
from workloads.errors import WorkloadFailed
from workloads.guest.records import Record

pytestmark = pytest.mark.real

CPUS, FILES = 4, 32


Boot = Callable[[int], tuple[Look, BootRequest, list[Record], SlabPages | None]]


@pytest.fixture
def boot(driver: LibvirtDriver, home: Path, artifact: Artifact) -> Boot:  # noqa: F811
    """Opens some files from as many threads as said on a guest of four CPUs."""
    return lambda threads: repeated(partial(_boot, driver, home, artifact, threads))


def _boot(
    driver: LibvirtDriver,  # noqa: F811
    home: Path,  # noqa: F811
    artifact: Artifact,
    threads: int,
) -> tuple[Look, BootRequest, list[Record], SlabPages | None]:
    workload = load_catalog()["showgids"]
    directory = home / "runs" / "accesses"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    programs = compile_programs(home / "programs", [workload])
    look = look_at(artifact, programs[workload.definition.program], home, directory)
    params = workload.resolve("smoke", {"cpus": [threads], "most": FILES}, clock="contention")
    plan = workload.plan(params, iterations=2, warmup=1, clock="contention")
    job = Job("a test", workload, plan, Machine(CPUS, 1024, "tcg", "contention"))
    request = boot_request(job, artifact, home, directory, replace(look.microscope, accesses=True))
    with driver.boot(request) as session:
        records, slabs = [], None
        for record in session.records(300):
            records.append(record)
            if (record.kind, record.name) == ("exit", "open"):
                slabs = slab_pages(session, request)
    return look, request, records, slabs


def test_each_cpu_s_accesses_come_home_whole(boot: Boot) -> None:
    look, request, _, slabs = boot(CPUS)
    (recording,) = read_recordings(request.directory, CPUS)
    (tree,) = look.call_trees(request)
    assert tree.windows == 2 * CPUS
    assert sum(recording.instructions) == int(tree.instructions.sum())

    def by_kernfs(node: int) -> bool:
        # The threads share their memory's lock, too; its place is another's once they have ended.
        caller = int(tree.parent[node])
        return tree.names[node] == "down_read" and caller >= 0 and tree.names[caller].startswith("kernfs_")

    locks = []
    for path, instructions in zip(recording.accesses, recording.instructions, strict=True):
        rows = decoded(path)
        assert [kind for _, _, kind, _, _ in rows if kind in ("begin", "end")] == ["begin", "end"] * 2
        assert all(0 <= node < len(tree.names) for _, node, _, _, _ in rows)
        assert 0.999 < rows[-1][0] / instructions < 1.001
        taken = Counter(address for _, node, kind, _, address in rows if kind == "atomic" and by_kernfs(node))
        locks.append({address for address, count in taken.items() if count >= FILES})
    # All CPUs take the one lock of kernfs, at least once for each file in each of two windows.
    assert slabs is not None
    places = [place for lock in set.intersection(*locks) if (place := slabs.place(lock))]
    # struct kernfs_root comes from kzalloc(), and its rwsem is none of the first words.
    (place,) = places
    assert place.cache.startswith("kmalloc-")
    assert 8 < place.offset < place.size
    assert {"dentry", "inode_cache", "kmem_cache", "task_struct"} <= set(slabs.names)


def test_threads_without_a_cpu_of_their_own_are_refused(boot: Boot) -> None:
    _, request, records, _ = boot(CPUS + 1)
    with pytest.raises(WorkloadFailed, match="threads=5: each needs a CPU of its own, and there are 4"):
        load_catalog()["showgids"].read(records, clock="contention")
    with pytest.raises(ProfileUnreadable, match="never entered its measured interval"):
        read_recordings(request.directory, CPUS)


def test_more_cpus_than_the_kernel_knows_are_refused(artifact: Artifact) -> None:
    check_cpus(artifact, 64)
    with pytest.raises(
        ProfileUnreadable, match="cpus = 65 cannot be recorded: the microscope allows 1 to 64"
    ):
        check_cpus(artifact, 65)
