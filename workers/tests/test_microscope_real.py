# SPDX-License-Identifier: GPL-2.0-or-later
"""The exact profile of a real kernel: it repeats, it adds up, and it names what a patch changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernels.artifacts.store import Artifact
from workers.boot_request import Job, boot_request
from workers.drivers.base import Machine
from workers.drivers.libvirt import LibvirtDriver
from workers.microscope.calltree import CallTree
from workers.microscope.looking import look_at
from workers.tests.test_driver_real import driver, home  # noqa: F401 fixtures
from workloads.catalog import load_catalog
from workloads.compile import compile_programs

pytestmark = pytest.mark.real

MACHINE = Machine(1, 768, "tcg", "instructions")
OPENS = "instructions_per_open"


class Scope:
    """Boots showgids under the microscope."""

    def __init__(self, driver: LibvirtDriver, home: Path) -> None:  # noqa: F811
        self.driver, self.home, self.boots = driver, home, 0
        self.workload = load_catalog()["showgids"]
        programs = compile_programs(home / "programs", [self.workload])
        self.program = programs[self.workload.definition.program]

    def look(self, artifact: Artifact, microscope: bool = True) -> tuple[CallTree | None, dict[str, float]]:
        """Return the call tree of a boot, and the last iteration's values."""
        self.boots += 1
        directory = self.home / "runs" / f"microscope-{self.boots}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        params = self.workload.resolve("smoke", {}, clock="instructions")
        plan = self.workload.plan(params, iterations=2, warmup=1, clock="instructions")
        look = look_at(artifact, self.program, self.home, directory)
        job = Job("a test", self.workload, plan, MACHINE)
        request = boot_request(job, artifact, self.home, directory, look.microscope if microscope else None)
        with self.driver.boot(request) as session:
            records = [record for record in session.records(300) if record.kind != "beat"]
        values = self.workload.read(records, clock="instructions").iterations[-1].values
        if not microscope:
            return None, dict(values)
        (tree,) = look.call_trees(request)
        return tree, dict(values)


@pytest.fixture
def scope(driver: LibvirtDriver, home: Path) -> Scope:  # noqa: F811
    return Scope(driver, home)


def test_a_profile_repeats_adds_up_and_changes_nothing_that_is_measured(
    scope: Scope, artifact: Artifact
) -> None:
    (first, values), (second, again), (_, without) = (
        scope.look(artifact), scope.look(artifact), scope.look(artifact, microscope=False)
    )  # fmt: skip
    assert first is not None
    assert second is not None
    assert values == again == without
    assert dict(first.stacks(first.instructions)) == dict(second.stacks(second.instructions))
    assert dict(first.stacks(first.calls)) == dict(second.stacks(second.calls))
    assert first.windows == 2
    stacks = dict(first.stacks(first.instructions))
    opens = sum(count for stack, count in first.stacks(first.calls) if stack[-1] == "do_sys_openat2")
    assert opens > 100
    of_the_program = sum(count for stack, count in stacks.items() if not stack[0].startswith("["))
    # What the program measures of itself holds the threads' creation and end, too.
    assert 0.8 < of_the_program / opens / values[OPENS] < 1.02
    assert any("kernfs_fop_open" in stack for stack in stacks)
    # Whatever ran has a caller as far down as where its thread, its program or its interrupt began.
    assert {stack[0] for stack in stacks} <= {
        "clone3",
        "harness_main",
        "main",
        "[interrupts]",
        "[kernel threads]",
    }
    threads = {stack[1] for stack in stacks if stack[0] == "[kernel threads]"}
    assert threads <= {
        "rcu_gp_kthread",
        "smpboot_thread_fn",
        "worker_thread",
        "kcompactd",
        "kthread",
        "ret_from_fork",
    }
