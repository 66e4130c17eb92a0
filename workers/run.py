# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot, workload and collect: a claimed run → samples, profile and surroundings, or its outcome.

`carry_out` reads like the rows of the straight path: artifact → guest → records → readings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernels.artifact import Artifact, ArtifactStore
from kernels.decode import decode_oops
from kernels.elf import read_build_id
from kernels.errors import ArtifactMissing, KernelsError
from lab.claims import Claim
from lab.queries.orders import RunOrder, run_order
from lab.queue import release
from lab.rawprofiles import keep_raw
from lab.record import RunRecord, SampleValue, TakenProfile, forget_artifact, record_run
from lab.states import Outcome
from workers.accelerator import choose_accelerator
from workers.collect.dmesg import Finding, scan_console
from workers.collect.perfdata import Kernel, read_perf_data
from workers.drivers.base import BootRequest, Driver, Machine
from workers.errors import WorkersError
from workers.lease import Lease
from workers.request import Job, boot_request
from workloads.catalog import Workload, load_catalog
from workloads.errors import WorkloadFailed, WorkloadsError
from workloads.guest.plan import Plan
from workloads.guest.records import Record
from workloads.instruction_clock import Clock
from workloads.readings import Readings, files_of
from workloads.step import PERF_DATA, Purpose

# Beyond what the steps themselves may take: unpacking, power-off.
SLACK_S = 60.0
OURS = (WorkersError, WorkloadsError, KernelsError)


@dataclass(frozen=True, slots=True)
class Bench:
    """What every run on this machine shares: the state root and the drivers by name."""

    home: Path
    drivers: Mapping[str, Driver]


@dataclass(frozen=True, slots=True)
class Answers:
    """What came back from a guest: its records, and what it and its host said of themselves."""

    records: tuple[Record, ...]
    environment: Mapping[str, Any]


def run_claimed(claim: Claim, bench: Bench) -> None:
    """Boot what is claimed and record how it went. Raises ClaimLost when it was cancelled."""
    order = run_order(claim.id)
    directory = bench.home / "runs" / f"{order.id}-{order.attempt}"
    directory.mkdir(parents=True, exist_ok=True)
    console = directory / "console.log"
    try:
        artifact = ArtifactStore(bench.home / "artifacts").get(order.artifact_key)
    except ArtifactMissing:
        # Somebody cleared the store: the kernel is built again, and this boot waits for it.
        forget_artifact(order.build_id)
        release(claim)
        return
    try:
        found = carry_out(order, artifact, bench, directory, Lease(claim))
    except OURS as exc:
        found = _ended_badly(exc, console, bench, order)
    record_run(claim, found)


def carry_out(order: RunOrder, artifact: Artifact, bench: Bench, directory: Path, lease: Lease) -> RunRecord:
    """One boot from artifact to readings. Raises whatever keeps it from an honest end."""
    workload = load_catalog()[order.workload]
    purpose: Purpose = order.purpose  # type: ignore[assignment]  # the tables know the same three
    clock = clock_of(order)
    plan = workload.plan(
        order.params, iterations=order.iterations, warmup=order.warmup, purpose=purpose, clock=clock
    )
    job = _job(order, workload, plan, artifact, bench)
    request = boot_request(job, artifact, bench.home, directory)
    answers = boot(request, plan, bench.drivers[order.driver], lease)
    readings = workload.read(answers.records, purpose=purpose, clock=clock)
    return RunRecord(
        outcome=Outcome.FINISHED,
        samples=_samples(readings),
        environment={**answers.environment, "config_sha256": artifact.metadata.config_sha256},
        line=readings.line,
        extras=readings.extras,
        findings=_findings(request.console),
        console=str(request.console),
        directory=str(directory),
        profile=_profile(answers.records, artifact, bench, directory) if purpose == "profiled" else None,
    )


def clock_of(order: RunOrder) -> Clock:
    """What the guest of a run counts: profiles and proofs are taken of the machine that people know."""
    return "instructions" if order.clock == "instructions" and order.purpose == "measured" else "wall"


def _job(order: RunOrder, workload: Workload, plan: Plan, artifact: Artifact, bench: Bench) -> Job:
    clock = clock_of(order)
    if clock == "instructions":
        machine = Machine(1, order.memory_mib, "tcg", clock)
    else:
        accelerator = choose_accelerator(bench.home, artifact.boot_vmlinux)
        machine = Machine(order.vcpus, order.memory_mib, accelerator)
    name = f"{order.variant}: {order.workload}, {order.purpose} {order.block + 1}"
    return Job(name, workload, plan, machine)


def boot(request: BootRequest, plan: Plan, driver: Driver, lease: Lease) -> Answers:
    """Power on, hear the guest out, power off."""
    deadline_s = sum(step.deadline_s for step in plan.steps) + SLACK_S
    records: list[Record] = []
    try:
        with driver.boot(request) as session:
            for record in session.records(deadline_s):
                lease.beat()
                if record.kind != "beat":
                    records.append(record)
    finally:
        request.initrd.unlink(missing_ok=True)
    environment = {
        "guest": {**session.hello, **_afterwards(records[-1])},
        "host": dict(session.host),
        "machine": asdict(request.machine),
    }
    return Answers(tuple(records), environment)


def _afterwards(bye: Record) -> dict[str, str]:
    """What a guest says of its clock source when it leaves; nothing if it does not make sense."""
    with suppress(ValueError, TypeError, KeyError):
        return {"clocksource_after": str(json.loads(bye.payload)["clocksource"])}
    return {}


def _samples(readings: Readings) -> tuple[SampleValue, ...]:
    return tuple(
        SampleValue(metric, iteration.index, iteration.warmup, value)
        for iteration in readings.iterations
        for metric, value in iteration.values.items()
    )


def _profile(records: tuple[Record, ...], artifact: Artifact, bench: Bench, directory: Path) -> TakenProfile:
    """Keep perf.data as it came, and read it with the kernel's own symbols."""
    perf_data = directory / "perf.data"
    # What an earlier attempt left may be a link into the store.
    perf_data.unlink(missing_ok=True)
    perf_data.write_bytes(files_of(records).get(PERF_DATA, b""))
    sha256 = keep_raw(bench.home, perf_data)
    kernel = Kernel(artifact.system_map, artifact.metadata.release, read_build_id(artifact.vmlinux))
    found = read_perf_data(perf_data, kernel)
    return TakenProfile(
        tree=found.tree,
        lost=found.lost,
        throttled=found.throttled,
        truncated=found.truncated,
        kernel_build_id=found.kernel_build_id,
        perf_data_sha256=sha256,
    )


def _findings(console: Path) -> tuple[dict[str, Any], ...]:
    return tuple(asdict(finding) for finding in _scan(console))


def _scan(console: Path) -> list[Finding]:
    with suppress(FileNotFoundError):
        return scan_console(console.read_bytes())
    return []


def _ended_badly(
    exc: WorkersError | WorkloadsError | KernelsError, console: Path, bench: Bench, order: RunOrder
) -> RunRecord:
    """Turn the reason into an outcome; an oops is decoded against the kernel that printed it."""
    if isinstance(exc, WorkloadFailed):
        outcome = Outcome.WORKLOAD_FAILED
    else:
        outcome = Outcome(getattr(exc, "outcome", Outcome.LOST))
    detail = exc.detail
    with suppress(KernelsError):
        artifact = ArtifactStore(bench.home / "artifacts").get(order.artifact_key)
        if outcome in {Outcome.PANICKED, Outcome.BOOT_FAILED} and detail:
            detail = "\n".join(decode_oops(detail.splitlines(), artifact))
    return RunRecord(
        outcome=outcome,
        blame=exc.blame,
        problem=str(exc),
        problem_detail=detail,
        retry=exc.retry,
        findings=_findings(console),
        console=str(console),
        directory=str(console.parent),
    )
