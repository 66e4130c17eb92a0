# SPDX-License-Identifier: GPL-2.0-or-later
"""The repeatability and cost of the instruction clock, and differences of kernels that should be equal.

Boots each kernel several times for each case while busy loops load the host. Tells whether every number of every
iteration was the same in all boots, what QEMU spent beside the same machine on the wall clock, and each metric's
change from the first kernel to the others.

    python -m bench.instructions [--home DIR] [--boots N] [--load N] [--wall N] [--case WORKLOAD/PRESET,NAME=VALUE …]
                                 [KEY …]

KEY: an artifact's key in the home, or its beginning; the first is the one that the others are compared with.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from kernels.artifacts.store import Artifact, ArtifactStore
from workers.boot_request import Job, boot_request
from workers.drivers.base import Machine
from workers.drivers.leftovers import BootId
from workers.drivers.libvirt import LibvirtDriver
from workers.processes import usage_of
from workloads.catalog import Workload, load_catalog
from workloads.instruction_clock import Clock

CASES = ("stat-walk/smoke,cache=warm", "stat-walk/smoke", "showgids/smoke", "bh-lookup/smoke")
HOME = Path("/var/lib/kperflab")
MEMORY_MIB = 1024
DEADLINE_S = 900.0


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and its parameters, as the command line had them."""

    name: str
    workload: Workload
    params: dict[str, object]


@dataclass(frozen=True, slots=True)
class Boot:
    """The results of one boot: each timed iteration's values by metric, and QEMU's CPU seconds."""

    values: dict[str, tuple[float, ...]]
    cpu_s: float


def main(
    keys: Annotated[list[str], typer.Argument(metavar="KEY")],
    home: Path = HOME,
    boots: int = 6,
    wall: Annotated[int, typer.Option(help="boots on the wall clock, of the first kernel")] = 0,
    load: Annotated[int, typer.Option(help="busy loops on the host meanwhile")] = 2,
    case: Annotated[list[str] | None, typer.Option(help="WORKLOAD/PRESET,NAME=VALUE,…")] = None,
) -> None:
    """Boot them all and print three tables."""
    artifacts = [artifact_of(home, key) for key in keys]
    cases = [case_of(text) for text in case or CASES]
    results: dict[tuple[str, str, Clock], list[Boot]] = {}
    driver = LibvirtDriver(home)
    with tempfile.TemporaryDirectory(dir=home) as scratch, _loaded(load):
        directory = Path(scratch)
        directory.chmod(0o711)
        rounds: list[tuple[Clock, int]] = [("instructions", boots), ("wall", wall)]
        for clock, count in rounds:
            for _, test_case in product(range(count), cases):
                for artifact in artifacts if clock == "instructions" else artifacts[:1]:
                    boot = _boot(driver, test_case, artifact, clock, directory)
                    key = (test_case.name, artifact.metadata.release, clock)
                    results.setdefault(key, []).append(boot)
                    print(f"{key}: {boot.cpu_s:.1f} CPU s {boot.values}", file=sys.stderr, flush=True)
    driver.close()
    for test_case in cases:
        _print_case(test_case, artifacts, results)


def artifact_of(home: Path, key: str) -> Artifact:
    """Return the artifact whose key begins so."""
    (path,) = (home / "artifacts").glob(f"{key}*")
    return ArtifactStore(home / "artifacts").get(path.name)


def case_of(text: str, clock: Clock = "instructions") -> Case:
    """Return the case of WORKLOAD/PRESET,NAME=VALUE,…."""
    name, *words = text.split(",")
    workload_name, _, preset = name.partition("/")
    workload = load_catalog()[workload_name]
    params = dict(word.split("=", 1) for word in words)
    return Case(text, workload, dict(workload.resolve(preset, params, clock=clock)))


@contextmanager
def _loaded(loops: int) -> Iterator[None]:
    """Busy loops on the host while the context lasts."""
    busy = [
        subprocess.Popen(["nice", "-n", "5", sys.executable, "-c", "while True: pass"]) for _ in range(loops)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _boot(driver: LibvirtDriver, case: Case, artifact: Artifact, clock: Clock, directory: Path) -> Boot:
    plan = case.workload.plan(case.params, iterations=5, warmup=1, clock=clock)
    machine = Machine(1, MEMORY_MIB, "tcg", clock)
    request = boot_request(
        Job(f"bench: {case.name}", case.workload, plan, machine), artifact, driver.home, directory
    )
    driver.close()  # the one before is forgotten: ours is the only guest of this process
    with driver.boot(request) as session:
        records = [record for record in session.records(DEADLINE_S) if record.kind != "beat"]
        cpu_s = cpu_seconds(driver)
    readings = case.workload.read(records, clock=clock)
    timed = [iteration.values for iteration in readings.iterations if not iteration.warmup]
    return Boot({name: tuple(values[name] for values in timed) for name in timed[0]}, cpu_s)


def cpu_seconds(driver: LibvirtDriver) -> float:
    """Return what this process's QEMU has used up to now, in seconds, from /proc.

    virDomainGetInfo says 0 where libvirtd was started in a control group that it cannot account for.
    """
    running = driver.hypervisor.domains(driver.traces.prefix)
    (name,) = (name for name in running if BootId.read(name).pid == os.getpid())
    return usage_of(int(Path("/run/libvirt/qemu", f"{name}.pid").read_text())).cpu_s


def _print_case(
    case: Case, artifacts: list[Artifact], boots: dict[tuple[str, str, Clock], list[Boot]]
) -> None:
    print(f"\n{case.name}")
    first = boots[case.name, artifacts[0].metadata.release, "instructions"]
    for artifact in artifacts:
        release = artifact.metadata.release
        own = boots[case.name, release, "instructions"]
        same = sum(boot.values == own[0].values for boot in own)
        print(
            f"  {release}: {same} of {len(own)} boots alike, {statistics.median(b.cpu_s for b in own):.1f} CPU s"
        )
        for name, values in own[0].values.items():
            middle, of_first = statistics.median(values), statistics.median(first[0].values[name])
            within = (max(values) - min(values)) / middle
            between = max(
                abs(a / b - 1) for boot in own for a, b in zip(boot.values[name], values, strict=True)
            )
            print(
                f"    {name:34}{middle:16.3f}  iterations ±{within / 2:8.4%}  boots {between:8.4%}"
                f"  kernel {middle / of_first - 1:+8.4%}"
            )
    if walls := boots.get((case.name, artifacts[0].metadata.release, "wall")):
        wall_s = statistics.median(boot.cpu_s for boot in walls)
        ratio = statistics.median(boot.cpu_s for boot in first) / wall_s
        print(f"  on the wall clock: {wall_s:.1f} CPU s; the instruction clock costs {ratio:.2f} times that")


if __name__ == "__main__":
    run(main)
