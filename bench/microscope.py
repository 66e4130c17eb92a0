# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the cost of an exact profile, and check that it repeats.

Boots each kernel in turn with and without the microscope, under the instruction clock. Prints QEMU's CPU seconds of
both and their ratio, and whether all boots' trees and values were the same.

    python -m bench.microscope [--home DIR] [--boots N] [--case WORKLOAD/PRESET,NAME=VALUE …] KEY [KEY …]

KEY: an artifact's key in the home, or its beginning.
"""

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from bench.instructions import DEADLINE_S, HOME, MEMORY_MIB, Case, artifact_of, case_of, cpu_seconds
from kernels.artifacts.store import Artifact
from workers.boot_request import Job, boot_request
from workers.drivers.base import Machine
from workers.drivers.libvirt import LibvirtDriver
from workers.microscope.calltree import CallTree
from workers.microscope.looking import look_at
from workloads.compile import compile_programs

ITERATIONS = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """One boot. values: of each timed iteration; tree: None without the microscope; calls_bytes: of the plugin's file."""

    cpu_s: float
    values: tuple[dict[str, float], ...]
    tree: CallTree | None
    calls_bytes: int


def main(
    keys: Annotated[list[str], typer.Argument(metavar="KEY")],
    home: Path = HOME,
    boots: Annotated[int, typer.Option(help="of each kernel, with and without")] = 2,
    text: Annotated[str, typer.Option("--case")] = "showgids/smoke",
) -> None:
    """Boot them all and print the tables."""
    case, artifacts = case_of(text), [artifact_of(home, key) for key in keys]
    driver = LibvirtDriver(home)
    seen: dict[tuple[str, bool], list[Seen]] = {}
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        Path(scratch).chmod(0o711)
        for number in range(boots):
            for artifact in artifacts:
                for looked in (False, True):
                    directory = Path(scratch, f"{number}-{artifact.metadata.release}-{looked}")
                    boot = _boot(driver, case, artifact, directory, looked=looked)
                    seen.setdefault((artifact.metadata.release, looked), []).append(boot)
    driver.close()
    print(case.name)
    for artifact in artifacts:
        _print_cost(artifact.metadata.release, seen)


def _boot(driver: LibvirtDriver, case: Case, artifact: Artifact, directory: Path, *, looked: bool) -> Seen:
    directory.mkdir(mode=0o711)
    programs = compile_programs(driver.home / "programs", [case.workload])
    look = look_at(artifact, programs[case.workload.definition.program], driver.home, directory)
    plan = case.workload.plan(case.params, iterations=ITERATIONS, warmup=1, clock="instructions")
    job = Job(f"bench: {case.name}", case.workload, plan, Machine(1, MEMORY_MIB, "tcg", "instructions"))
    request = boot_request(job, artifact, driver.home, directory, look.microscope if looked else None)
    driver.close()  # the one before is forgotten: ours is the only guest of this process
    with driver.boot(request) as session:
        records = [record for record in session.records(DEADLINE_S) if record.kind != "beat"]
        cpu_s = cpu_seconds(driver)
    iterations = case.workload.read(records, clock="instructions").iterations
    trees = look.call_trees(request)
    return Seen(
        cpu_s,
        tuple(dict(iteration.values) for iteration in iterations if not iteration.warmup),
        trees[0] if trees else None,
        sum(path.stat().st_size for path in request.call_trees),
    )


def _print_cost(release: str, seen: dict[tuple[str, bool], list[Seen]]) -> None:
    plain, looked = seen[release, False], seen[release, True]
    alike = all(boot.values == plain[0].values for boot in (*plain, *looked))
    trees = [boot.tree for boot in looked if boot.tree is not None]
    same = all(_by_stack(tree) == _by_stack(trees[0]) for tree in trees)
    ratio = statistics.median(
        with_.cpu_s / without.cpu_s for with_, without in zip(looked, plain, strict=True)
    )
    print(
        f"  {release}: {statistics.median(boot.cpu_s for boot in plain):.1f} CPU s, with the microscope "
        f"{ratio:.2f} times that; values {'the same' if alike else 'DIFFERENT'} with and without, "
        f"{len(trees)} trees {'the same' if same else 'DIFFERENT'}: {len(trees[0].names)} chains of calls, "
        f"{int(trees[0].instructions.sum()):,} instructions, {looked[0].calls_bytes / 1e6:.1f} MB as QEMU wrote them"
    )


def _by_stack(tree: CallTree) -> dict[tuple[str, ...], int]:
    return dict(tree.stacks(tree.instructions))


if __name__ == "__main__":
    run(main)
