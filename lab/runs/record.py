# SPDX-License-Identifier: GPL-2.0-or-later
"""Record the results of builds and runs, each once.

Every record names its claim. If the claim was taken back meanwhile, only that fact is noted (`refuse_late`) and the answer is
False, so late and double answers do no harm. Failures delete nothing that was measured.
A failure with blame on the kernel or the submission is an outcome; one of the lab's with `retry`
goes back to the queue, at most MOST_ATTEMPTS times. A boot that finished outside its validity gates is kept,
says why it does not count, and is taken again.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from lab.errors import Blame, LabError
from lab.from_attributes import attributes
from lab.leases.process import worker_identity
from lab.models import Build, LateAnswer, Profile, Run, Sample
from lab.models.states import BuildState, Outcome, Purpose, RunState, move
from lab.models.storable import storable, storable_text
from lab.one_line import error_line
from lab.profiles.analysis.frame_tree import FrameTree, pack
from lab.profiles.analysis.source_lines import pack_lines
from lab.runs.blocks import follow_block
from lab.runs.claim import MOST_ATTEMPTS, UNCLAIMED, Claim
from lab.runs.claiming import held
from lab.runs.hand_back import leave_place
from lab.runs.rounds import take_again
from lab.runs.settle import (
    build_failed,
    build_made,
    experiments_of,
    note_builds_over,
    note_queued_again,
    run_failed,
    settle,
)
from lab.runs.validity import gates
from lab.targets.quarantine import note_fault, note_success


@dataclass(frozen=True, slots=True)
class BuildSuccess:
    """An artifact; cached tells that the store had it already and nothing was compiled."""

    artifact_key: str
    release: str
    code_hash: str
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    cached: bool = False
    log: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason for a missing artifact: one line, the long part, and whether to retry."""

    blame: Blame
    problem: str
    detail: str = ""
    log: str = ""
    retry: bool = False


@dataclass(frozen=True, slots=True)
class SampleValue:
    """One metric's value from one iteration."""

    metric: str
    iteration: int
    warmup: bool
    value: float


@dataclass(frozen=True, slots=True)
class TakenProfile:
    """A profile's tree, what it counts, how whole it is and what it cost: as the columns of Profile say.

    calls: of an exact profile, whose nodes are the tree's. lines: where functions begin, by the names of the source.
    """

    tree: FrameTree
    kind: Profile.Kind = Profile.Kind.CPU
    waits: int = 0
    overhead: float | None = None
    lost: int = 0
    throttled: int = 0
    truncated: str = ""
    kernel_build_id: str = ""
    perf_data_sha256: str = ""
    calls: FrameTree | None = None
    operations: int = 0
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that one boot yielded. findings: dicts of kind, title, line_no and excerpt.

    spares_target: a fault of the lab that may have other causes than the target does not count against it.
    profiles: at most one of a kind. counters, unavailable, steps: as the columns of Run say.
    """

    outcome: Outcome
    blame: Blame | str = ""
    problem: str = ""
    problem_detail: str = ""
    retry: bool = False
    spares_target: bool = False
    samples: tuple[SampleValue, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    line: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    console: str = ""
    directory: str = ""
    profiles: tuple[TakenProfile, ...] = ()
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unavailable: tuple[Mapping[str, str], ...] = ()
    steps: Mapping[str, float] = field(default_factory=dict)


def record_build_success(claim: Claim, success: BuildSuccess) -> bool:
    """Store an artifact's particulars and make the variants that waited for it ready."""
    with transaction.atomic():
        moved = move(
            Build,
            claim.id,
            BuildState.BUILDING,
            BuildState.BUILT,
            held=claim.token,
            **asdict(success) | {"release": storable_text(success.release, 200)},
            blame="",
            problem="",
            problem_detail="",
            expired_at=None,
            finished_at=timezone.now(),
            **UNCLAIMED,
        )
        if moved:
            build_made(claim.id)
    if not moved:
        refuse_late(claim, f"built {success.release}")
    else:
        with _else_left_to_upkeep(claim):
            note_builds_over(claim.id)
    return moved


def record_build_log(claim: Claim, log: str) -> bool:
    """Note where the log of a build under way is, so that it can be watched."""
    return held(claim).update(log=log) == 1


def record_build_steps(claim: Claim, done: int, expected: int) -> bool:
    """Note how many objects a build under way has made, and how many it is expected to make."""
    # By the database's clock: a worker's may be wrong.
    since = Coalesce("steps_since", Now())
    return held(claim).update(steps_done=done, steps_expected=expected, steps_since=since) == 1


def record_run_console(claim: Claim, *, console: str, directory: str) -> bool:
    """Note where a run under way writes, so that people can follow it; False if the claim is not held any more."""
    return held(claim).update(console=console, directory=directory) == 1


def record_build_failure(claim: Claim, failure: Failure) -> bool:
    """Store why a build failed; its variants fail with it, the others go on."""
    again = failure.retry and Build.objects.get(pk=claim.id).attempt < MOST_ATTEMPTS
    with transaction.atomic():
        moved = move(
            Build,
            claim.id,
            BuildState.BUILDING,
            BuildState.QUEUED if again else BuildState.FAILED,
            held=claim.token,
            blame=failure.blame,
            problem=storable_text(failure.problem),
            problem_detail=storable_text(failure.detail),
            log=failure.log or F("log"),
            finished_at=timezone.now(),
            **UNCLAIMED,
        )
        if moved and not again:
            build_failed(claim.id)
    if not moved:
        refuse_late(claim, f"not built: {failure.problem}")
    elif not again:
        with _else_left_to_upkeep(claim):
            note_builds_over(claim.id)
            for experiment_id in experiments_of(claim.id):
                settle(experiment_id)
    return moved


def record_run(claim: Claim, record: RunRecord) -> bool:
    """Store a boot: its outcome, samples, profile and surroundings, all or nothing.

    Raises LabError for samples that are not finite numbers; then nothing is stored.
    """
    _check(record.samples)
    run = Run.objects.select_related("experiment").get(pk=claim.id)
    again = record.retry and record.outcome != Outcome.FINISHED and run.attempt < MOST_ATTEMPTS
    invalid = _outside_gates(run, record)
    with transaction.atomic():
        columns = _columns(claim, record) | {"invalid": invalid}
        moved = move(Run, claim.id, RunState.RUNNING, _state_after(record, again), **columns)
        if moved:
            _note_target(run, record)
        if moved and again:
            leave_place(claim.id, lost=True)
        elif moved:
            rows = [Sample(run_id=run.pk, **asdict(sample)) for sample in record.samples]
            Sample.objects.bulk_create(rows, batch_size=1000)
            for taken in record.profiles:
                _store_profile(run.pk, taken)
            _follow_up(run, record, invalid)
    if not moved:
        refuse_late(claim, f"{record.outcome}: {record.problem}" if record.problem else str(record.outcome))
    elif not again:
        with _else_left_to_upkeep(claim):
            settle(run.experiment_id)
    return moved


@contextmanager
def _else_left_to_upkeep(claim: Claim) -> Iterator[None]:
    """Do what follows a stored result. If the database fails, upkeep does it later: a worker that saw the error would record twice."""
    try:
        yield
    except (OperationalError, InterfaceError) as exc:
        if connection.in_atomic_block:
            raise
        log.warning(
            "%s %s is recorded, what follows is left to upkeep: %s", claim.kind, claim.id, error_line(exc)
        )
        connection.close()


def _note_target(run: Run, record: RunRecord) -> None:
    """Count a boot that failed by the lab's fault against its target, any other boot for it."""
    if run.target_id is None:
        return
    if record.outcome != Outcome.FINISHED and record.blame == "lab":
        if not record.spares_target:
            note_fault(run.target_id, record.problem)
    else:
        note_success(run.target_id)


def _follow_up(run: Run, record: RunRecord, invalid: list[str]) -> None:
    """Apply the consequences of a finished boot for later ones."""
    if record.outcome != Outcome.FINISHED:
        run_failed(run.pk)
    elif run.purpose == Purpose.MEASURED and not follow_block(run.pk) and invalid:
        take_again(run)


def _outside_gates(run: Run, record: RunRecord) -> list[str]:
    """Return why the numbers of a finished boot do not count."""
    if record.outcome != Outcome.FINISHED:
        return []
    # A time-based profile that lost samples is skewed; lost waits are shown beside their profile.
    profile = next(
        (taken_profile for taken_profile in record.profiles if taken_profile.kind == Profile.Kind.CPU), None
    )
    taken = profile.tree.samples + profile.lost if profile else 0
    return gates(
        record.environment,
        record.findings,
        clock=run.experiment.clock,
        lost_share=profile.lost / taken if profile and taken else 0.0,
        state_proven=run.purpose != Purpose.VERIFIED or record.extras.get("verified_holds") is not False,
    )


def forget_artifact(build_id: int) -> bool:
    """Queue a build again whose artifact is no longer in the store."""
    with transaction.atomic():
        moved = move(Build, build_id, BuildState.BUILT, BuildState.QUEUED, attempt=0)
        if moved:
            note_queued_again(build_id)
    return moved


def note_corrupt_artifact(build_id: int) -> int:
    """Count that a build's artifact was found corrupt; return how often that has happened."""
    Build.objects.filter(pk=build_id).update(corrupted=F("corrupted") + 1)
    return int(Build.objects.values_list("corrupted", flat=True).get(pk=build_id))


def _state_after(record: RunRecord, again: bool) -> RunState:
    if again:
        return RunState.QUEUED
    return RunState.DONE if record.outcome == Outcome.FINISHED else RunState.FAILED


def _columns(claim: Claim, record: RunRecord) -> dict[str, Any]:
    texts = attributes(record, ("problem", "problem_detail", "line"))
    data = attributes(record, ("environment", "extras", "counters", "unavailable", "findings"))
    return {
        "held": claim.token,
        **attributes(record, ("outcome", "blame", "console", "directory")),
        **{name: storable_text(text) for name, text in texts.items()},
        **{name: storable(value) for name, value in data.items()},
        "steps": {step: round(seconds, 3) for step, seconds in record.steps.items()},
        "finished_at": timezone.now(),
        **UNCLAIMED,
    }


def _store_profile(run_id: int, taken: TakenProfile) -> None:
    same = (
        *("kind", "waits", "overhead", "lost", "throttled", "kernel_build_id", "perf_data_sha256"),
        "operations",
    )
    Profile.objects.create(
        run_id=run_id,
        samples=taken.tree.samples,
        truncated=taken.truncated[:200],
        tree=pack(taken.tree),
        calls=None if taken.calls is None else pack(taken.calls),
        lines=pack_lines(taken.lines),
        **attributes(taken, same),
    )


def _check(samples: tuple[SampleValue, ...]) -> None:
    for sample in samples:
        if not math.isfinite(sample.value):
            raise LabError(
                f"{sample.metric} of iteration {sample.iteration} is {sample.value}: not a measurement"
            )


log = logging.getLogger(__name__)

# The newest of them are kept.
KEPT = 1000


def refuse_late(claim: Claim, said: str) -> None:
    """Note that an answer came too late; said: what it would have written."""
    model: type[Build] | type[Run] = Build if claim.kind == "build" else Run
    why = _became(model.objects.filter(pk=claim.id).only("state", "claimed_by").first())
    log.warning("%s %s: “%s” arrived too late and was discarded: %s", claim.kind, claim.id, said, why)
    late = LateAnswer.objects.create(
        kind=claim.kind,
        work=claim.id,
        target=claim.target,
        worker=worker_identity(),
        said=storable_text(said, 1000),
        why=why,
    )
    LateAnswer.objects.filter(pk__lte=late.pk - KEPT).delete()


def _became(row: Build | Run | None) -> str:
    if row is None:
        return "it was deleted"
    if row.claimed_by:
        return f"{row.claimed_by} now has the claim"
    return f"it is {row.state} now"
