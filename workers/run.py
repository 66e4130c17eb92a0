# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot, workload and collect: a claimed run → samples, profile and surroundings, or its outcome.

`carry_out` follows the straight path: artifact → guest → records → readings.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, cast

from kernels.artifacts.store import Artifact
from kernels.builds.decode_oops import decode_oops
from kernels.builds.function_lines import function_lines
from kernels.errors import ArtifactCorrupt, ArtifactMissing, KernelsError
from lab.errors import LabError
from lab.models import Profile
from lab.models.states import Outcome
from lab.profiles.analysis.source_lines import by_source_name, kernel_functions
from lab.runs.claim import MOST_ATTEMPTS, Claim
from lab.runs.hand_back import hand_back_unbooted, release
from lab.runs.record import (
    RunRecord,
    SampleValue,
    TakenProfile,
    forget_artifact,
    note_corrupt_artifact,
    record_run,
    record_run_console,
)
from lab.runs.work_orders import RunOrder, run_order
from lab.storage.artifacts import artifacts_of
from lab.storage.files import name_of
from lab.storage.signing_keys import heed_revocation
from lab.targets.access_schema import read_tuning
from lab.targets.drivers import is_guest
from workers.accelerator import choose_accelerator, is_trusted
from workers.artifact_transfer import at_hand
from workers.boot_request import SLOWER, Job, boot_request
from workers.collect.contended import RecordedBoot, replayed
from workers.collect.dmesg import scan_console
from workers.collect.fromguest import Sent, read_guest
from workers.collect.transcript import Transcript
from workers.drivers.base import BootRequest, Driver, Machine, Microscope
from workers.errors import ClaimLost, GuestPanicked, TargetUnready, TargetVanished, WorkersError
from workers.lease import Lease
from workers.microscope.accesses import check_cpus
from workers.microscope.looking import look_at
from workers.microscope.slab_pages import SlabPages, slab_pages
from workers.refused import note_cut_console, note_refused_guest
from workers.run_files import send_runs
from workers.tail import shown_live
from workloads.catalog import Workload, load_catalog
from workloads.compile import compile_programs
from workloads.contention import LEAST_MIB, most_cpus
from workloads.errors import WorkloadsError
from workloads.guest.plan import Plan
from workloads.guest.tuning import Tuning, untuned
from workloads.instruction_clock import Clock
from workloads.readings import Readings
from workloads.step import Purpose

# Beyond what the steps themselves may take: unpacking, power-off.
SLACK_S = 60.0
OURS = (WorkersError, WorkloadsError, KernelsError, LabError)
# A kernel whose artifact is spoilt more often than this is not built once more: the store or its disk is broken.
MOST_CORRUPT = 3
# Profiles whose trees hold the functions of the program.
_EXACT = (Profile.Kind.EXACT, Profile.Kind.WAITING)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bench:
    """The state that all runs on this machine share: the state root and the drivers by name."""

    home: Path
    drivers: Mapping[str, Driver]


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of a boot besides its records, which are in its directory: what guest and host are like, seconds by step.

    slabs: under the contention clock, the guest's slab caches after the measurement, as far as they could be read.
    """

    environment: Mapping[str, Any]
    steps: Mapping[str, float] = field(default_factory=dict)
    slabs: SlabPages | None = None


def run_claimed(claim: Claim, bench: Bench) -> None:
    """Boot what is claimed and record how it went. Raises ClaimLost when it was cancelled, TargetUnready after it was handed back."""
    with Lease(claim) as lease:
        order = run_order(claim.id)
        directory = bench.home / "runs" / f"{order.id}-{order.attempt}"
        directory.mkdir(parents=True, exist_ok=True)
        console = directory / "console.log"
        record_run_console(
            claim, console=name_of(console, bench.home), directory=name_of(directory, bench.home)
        )
        try:
            heed_revocation(bench.home)
            with (
                at_hand(bench.home, order.artifact_key, lease.beat) as artifact,
                shown_live(console, bench.home),
            ):
                record = carry_out(order, artifact, bench, directory, lease)
        except ClaimLost:
            raise
        except (ArtifactMissing, ArtifactCorrupt) as exc:
            if _build_again(order, exc):
                release(claim)
                return
            record = _ended_badly(exc, console, bench, order)
        except TargetUnready as exc:
            log.warning("run %s waits, nothing was booted: %s", order.id, exc)
            hand_back_unbooted(claim, str(exc))
            raise
        except TargetVanished as exc:
            record = _ended_badly(_vanished(exc, order), console, bench, order)
        except OURS as exc:
            record = _ended_badly(exc, console, bench, order)
        note_cut_console(console, order.id)
        lease.record(lambda: record_run(claim, record))
    send_runs(bench.home)


def _vanished(exc: TargetVanished, order: RunOrder) -> WorkersError:
    """Return the error for a vanished machine: a fault to retry, but the kernel's doing in the last attempt."""
    if order.attempt < MOST_ATTEMPTS:
        return exc
    return GuestPanicked(f"{exc} (in attempt {order.attempt} of {MOST_ATTEMPTS})", exc.detail)


def _build_again(order: RunOrder, exc: ArtifactMissing | ArtifactCorrupt) -> bool:
    """Have a removed or corrupt kernel built again while the boot waits; False for one that is corrupt too often."""
    if isinstance(exc, ArtifactCorrupt):
        times = note_corrupt_artifact(order.build_id)
        log.warning("build %s has a corrupt artifact (times so far: %s): %s", order.build_id, times, exc)
        if times > MOST_CORRUPT:
            return False
    forget_artifact(order.build_id)
    return True


def carry_out(order: RunOrder, artifact: Artifact, bench: Bench, directory: Path, lease: Lease) -> RunRecord:
    """Carry out one boot, from artifact to readings. Raises any error that keeps it from finishing."""
    workload = load_catalog()[order.workload]
    purpose: Purpose = order.purpose  # type: ignore[assignment]  # the tables know the same three
    clock = clock_of(order)
    warmup = order.warmup + order.shift
    plan = workload.plan(
        order.params,
        iterations=order.iterations,
        warmup=warmup,
        purpose=purpose,
        clock=clock,
        off_cpu=order.off_cpu,
    )
    job = _job(order, workload, plan, artifact, bench)
    request = boot_request(
        job, artifact, bench.home, directory, _microscope(order, workload, artifact, bench.home, directory)
    )
    answers = boot(request, plan, bench.drivers[order.driver], lease)
    tuned = tuned_as_asked(job.tuning, answers.environment)
    began = monotonic()
    sent = Sent(
        directory, order.workload, purpose, clock, order.iterations, warmup, order.vcpus,
        threads=_threads(order), calls=request.call_trees,
    )  # fmt: skip
    measured = read_guest(sent, artifact, bench.home)
    readings, collected = measured.readings, measured.collected
    profiles = collected.profiles
    if clock == "contention":
        recorded = RecordedBoot(directory, readings, answers.slabs)
        replay = replayed(
            workload, order.params, recorded, artifact, bench.home, lease.beat, sensitive=order.block == 0
        )
        readings, profiles = replay.readings, (replay.profile,)
    return RunRecord(
        outcome=Outcome.FINISHED,
        samples=_samples(readings),
        environment={**answers.environment, **tuned, "config_sha256": artifact.metadata.config_sha256},
        line=readings.line,
        extras={**readings.extras, **collected.extras},
        findings=_findings(request.console),
        console=name_of(request.console, bench.home),
        directory=name_of(directory, bench.home),
        profiles=_with_lines(profiles, artifact),
        counters=collected.counters,
        unavailable=collected.unavailable,
        steps={**answers.steps, "collect": monotonic() - began},
    )


def clock_of(order: RunOrder) -> Clock:
    """Return the clock of a run's guest: sampled profiles and proofs use the wall clock."""
    return cast(Clock, order.clock) if order.purpose == "measured" or order.exact else "wall"


def _microscope(
    order: RunOrder, workload: Workload, artifact: Artifact, home: Path, directory: Path
) -> Microscope | None:
    contends = clock_of(order) == "contention"
    if not contends and not order.exact:
        return None
    if contends:
        check_cpus(artifact, most_cpus(order.params))
    program = compile_programs(home / "programs", [workload])[workload.definition.program]
    return replace(look_at(artifact, program, home, directory).microscope, accesses=contends)


def _threads(order: RunOrder) -> int:
    """Return how many threads of the workload have timed intervals."""
    threads = order.params.get("threads", 1)
    return threads if isinstance(threads, int) else 1


def _job(order: RunOrder, workload: Workload, plan: Plan, artifact: Artifact, bench: Bench) -> Job:
    clock = clock_of(order)
    if clock == "instructions":
        machine = Machine(1, order.memory_mib, "tcg", clock)
    elif clock == "contention":
        machine = Machine(most_cpus(order.params), max(order.memory_mib, LEAST_MIB), "tcg", clock)
    else:
        guest = is_guest(order.driver)
        trusted = order.of_archive and is_trusted(artifact.metadata)
        accelerator = (
            choose_accelerator(bench.home, artifact.boot_vmlinux, trusted=trusted) if guest else "none"
        )
        machine = Machine(order.vcpus, order.memory_mib, accelerator)
    name = f"{order.variant}: {order.workload}, {order.purpose} {order.block + 1}"
    # Emulated CPUs have nothing that can be tuned.
    tuning = read_tuning(order.tuning) if clock == "wall" else Tuning()
    return Job(name, workload, plan, machine, order.target, order.access, tuning, order.way)


class Beats(Protocol):
    """A callback for signs of life."""

    def beat(self) -> None:
        """Take a sign of life. Raises ClaimLost to end the work."""


def boot(request: BootRequest, plan: Plan, driver: Driver, lease: Beats) -> Answers:
    """Power on, take the guest's records as far as its plan has them, power off.

    Raises RecordUnexpected, and what sessions raise.
    """
    # The instruction clock leaps over a guest's waits; the other clocks are as slow as their guest.
    slower = SLOWER["contention"] if request.machine.clock == "contention" else 1
    deadline_s = slower * sum(step.deadline_s for step in plan.steps) + SLACK_S
    accesses = request.microscope is not None and request.microscope.accesses
    last = [step.name for step in plan.steps if step.kind == "measure"][-1:] if accesses else []
    slabs = None
    began = monotonic()
    try:
        with (
            driver.boot(replace(request, on_wait=lease.beat)) as session,
            Transcript(plan, request.directory) as transcript,
        ):
            booted = monotonic()
            for record in session.records(deadline_s):
                lease.beat()
                transcript.take(record)
                if record.kind == "exit" and record.name in last:
                    slabs = slab_pages(session, request)
            worked = monotonic()
    finally:
        request.initrd.unlink(missing_ok=True)
    clock = transcript.farewell.clocksource
    environment = {
        "guest": {**session.hello, **({"clocksource_after": clock} if clock else {})},
        "host": dict(session.host),
        "machine": asdict(request.machine),
    }
    return Answers(environment, {"boot": booted - began, "workload": worked - booted}, slabs)


def tuned_as_asked(tuning: Tuning, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requested tuning and where the machine differed from it; empty if nothing was requested."""
    asked = tuning.asked()
    state = environment["guest"].get("tuning")
    lines = untuned(asked, state if isinstance(state, Mapping) else {})
    return {"tuning": {"asked": asked, "untuned": lines}} if asked else {}


def _samples(readings: Readings) -> tuple[SampleValue, ...]:
    return tuple(
        SampleValue(metric, iteration.index, iteration.warmup, value)
        for iteration in readings.iterations
        for metric, value in iteration.values.items()
    )


def _findings(console: Path) -> tuple[dict[str, Any], ...]:
    # A boot that never began has no console; anything else in its place is no console either.
    with suppress(OSError):
        return tuple(asdict(finding) for finding in scan_console(console.read_bytes()))
    return ()


def _ended_badly(
    exc: WorkersError | WorkloadsError | KernelsError | LabError, console: Path, bench: Bench, order: RunOrder
) -> RunRecord:
    """Turn the reason into an outcome; an oops is decoded against the kernel that printed it."""
    note_refused_guest(exc, order.id)
    # What a guest did or sent is an outcome, in whatever way it was wrong; all else is a boot that the lab lost.
    usual = Outcome.WORKLOAD_FAILED if exc.blame == "kernel" else Outcome.LOST
    outcome = Outcome(getattr(exc, "outcome", usual))
    detail = exc.detail
    with suppress(KernelsError):
        artifact = artifacts_of(bench.home).get(order.artifact_key)
        if outcome in {Outcome.PANICKED, Outcome.BOOT_FAILED} and detail:
            detail = "\n".join(decode_oops(detail.splitlines(), artifact))
    return RunRecord(
        outcome=outcome,
        blame=exc.blame,
        problem=str(exc),
        problem_detail=detail,
        retry=exc.retry,
        spares_target=getattr(exc, "spares_target", False),
        findings=_findings(console),
        console=name_of(console, bench.home),
        directory=name_of(console.parent, bench.home),
    )


def _with_lines(profiles: Sequence[TakenProfile], artifact: Artifact) -> tuple[TakenProfile, ...]:
    """Return the profiles with the source lines of those functions that the kernel's line tables have."""
    functions = [kernel_functions(taken.tree, exact=taken.kind in _EXACT) for taken in profiles]
    lines = function_lines(sorted(set().union(*functions)), artifact)
    return tuple(
        replace(taken, lines=by_source_name({name: lines[name] for name in own & lines.keys()}))
        for taken, own in zip(profiles, functions, strict=True)
    )
