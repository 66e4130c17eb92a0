# SPDX-License-Identifier: GPL-2.0-or-later
"""One fault after the other on a busy lab, each at a stage of its own, and what became of the work it hit."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import cast

from django.conf import settings
from django.db import connection
from redis import Redis
from redis.exceptions import RedisError

from bench.faults.audit import entries, keep_diary
from bench.faults.faults import FAULTS, OF_THE_MACHINE, Blow, Fault, holders_of
from bench.faults.invariants import Breach, breaches
from bench.faults.lab import FAR, Lab
from bench.faults.leftovers import leftovers
from bench.faults.load import Load
from bench.faults.patience import patiently
from bench.faults.stages import Stage, await_stage
from lab.models import Experiment, Target
from lab.targets.quarantine import release_target
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor

Say = Callable[[str], None]
# Experiments open at a time, so that something is always in any stage.
OPEN = 3
# A Python that starts on a busy machine takes its time; takeover is counted until the work is queued again.
SETTLE_S, DRAIN_S = 120.0, 600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign: its faults and stages, how often the lab is drained and checked, and when no new fault begins."""

    count: int
    seed: int
    each: int = 25
    only: str = ""
    seconds: float = 36_000.0


@dataclass(slots=True)
class Injected:
    """One fault and what came of it. held: claims of its victims; takeover_s: until the last of them was free again.

    ended: what became of them, by state: queued (taken over), done, failed, …
    """

    number: int
    fault: str
    stage: str
    hit: bool
    held: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    takeover_s: float | None = None
    whole_s: float = 0.0
    late: bool = False


@dataclass(slots=True)
class Account:
    """A whole campaign."""

    seed: int
    lease_s: float
    injected: list[Injected] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    experiments: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    samples: int = 0
    quarantined: int = 0

    def as_json(self) -> dict[str, object]:
        """For a file."""
        return asdict(self)


def schedule(plan: Plan, *, machine: bool) -> Iterator[tuple[str, Fault, Stage]]:
    """Every fault at every stage of its own, shuffled, again and again."""
    draw = random.Random(plan.seed)
    known = {**FAULTS, **OF_THE_MACHINE} if machine else FAULTS
    every = [
        (name, fault, stage)
        for name, (fault, stages) in known.items()
        if plan.only in name
        for stage in stages
    ]
    while True:
        draw.shuffle(every)
        yield from every


def carry_out(lab: Lab, plan: Plan, say: Say) -> Account:
    """Inject as many faults as planned, and look the lab over after each round of them; Ctrl-C ends it with what there is."""
    keep_diary()
    account = Account(plan.seed, lab.wishes.lease_s)
    try:
        _go_on(lab, plan, account, say)
    except KeyboardInterrupt:
        say("     stopped")
    _look_over(lab, account, say)
    return account


def _go_on(lab: Lab, plan: Plan, account: Account, say: Say) -> None:
    targets = [*lab.targets, *([FAR] if lab.far else [])]
    load = Load(lab.home, tuple(targets), plan.seed)
    draw = random.Random(plan.seed + 1)
    begun = time.monotonic()
    planned = schedule(plan, machine=lab.far is not None)
    for number in range(1, plan.count + 1):
        if time.monotonic() - begun > plan.seconds:
            break
        name, fault, stage = next(planned)
        one = _inject(lab, Injected(number, name, stage, False), fault, draw, lambda: load.keep_going(OPEN))
        account.injected.append(one)
        account.quarantined += patiently(_release_quarantined)
        say(_line(one))
        if number % plan.each == 0:
            _look_over(lab, account, say)


def _line(one: Injected) -> str:
    took = "" if one.takeover_s is None else f", taken over in {one.takeover_s:.1f} s"
    ended = ", ".join(f"{count} {state}" for state, count in one.ended.items())
    return (
        f"{one.number:4} {one.fault:24} {one.stage:10} {'hit' if one.hit else 'missed':6}"
        f" held {one.held}{f' ({ended})' if ended else ''}{took}{' TOO LATE' if one.late else ''}"
    )


def _inject(lab: Lab, one: Injected, fault: Fault, draw: random.Random, feed: Callable[[], None]) -> Injected:
    boot_s = lab.wishes.boot_s
    # What is done to the far host waits for a boot there.
    host = lab.far.wire.name if lab.far and one.fault.startswith("far") else os.uname().nodename
    stage: Stage = one.stage  # type: ignore[assignment]
    moment = patiently(lambda: await_stage(stage, feed=feed, host=host, draw=draw, boot_s=boot_s))
    if moment is None:
        return one
    one.hit = True
    blow = Blow(lab, moment, draw, set())
    since = patiently(_now)
    started = time.monotonic()
    held: dict[tuple[str, int], str] = {}
    with fault(blow):
        if blow.victims:
            held = patiently(lambda: holders_of(blow.victims))
        one.held = len(held)
    _follow(lab, one, held, since)
    _wait_until_whole(lab)
    one.whole_s = round(time.monotonic() - started, 1)
    return one


def _follow(lab: Lab, one: Injected, held: dict[tuple[str, int], str], since: float) -> None:
    """Wait until nobody holds what the victims held, and say when that was and how."""
    end = time.monotonic() + SETTLE_S
    open_claims = dict(held)
    while open_claims and time.monotonic() < end:
        for (kind, row), token in list(open_claims.items()):
            freed = patiently(lambda kind=kind, row=row, token=token: _freed(kind, row, token))  # type: ignore[misc]
            if freed is not None:
                at, became = freed
                one.ended[became] = one.ended.get(became, 0) + 1
                if became == "queued":
                    one.takeover_s = max(one.takeover_s or 0.0, round(at - since, 2))
                del open_claims[kind, row]
        time.sleep(0.05)
    one.late = bool(open_claims) or (one.takeover_s or 0.0) > 2 * lab.wishes.lease_s


def _freed(kind: str, row: int, token: str) -> tuple[float, str] | None:
    """Return when a claim was given up or fulfilled, and the new state of the work; None while it stands."""
    for entry in entries(kind, row):
        if entry.token == token and entry.was in {"running", "building"}:
            return entry.at.timestamp(), entry.became
    return None


def _now() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])


def _wait_until_whole(lab: Lab) -> None:
    """Until every program of the service runs again and beat is heard: two faults at a time would be a third one."""
    end = time.monotonic() + SETTLE_S
    while time.monotonic() < end:
        states = Supervisor(ServicePlace(lab.home)).states()
        if all(one.state == "RUNNING" for one in states if one.name != "target-guest"):
            break
        time.sleep(0.1)
    heard = None
    while time.monotonic() < end:
        with suppress(RedisError):
            now = _messages()
            if heard is not None and now > heard:
                return
            heard = now if heard is None else heard
        time.sleep(0.2)


def _messages() -> int:
    """Return how many messages were ever put into Redis' queues; beat puts some each second, nobody else begins to."""
    with Redis.from_url(settings.REDIS, socket_timeout=2) as client:
        stats = cast("dict[str, dict[str, int]]", client.info("commandstats"))
    return stats.get("cmdstat_lpush", {}).get("calls", 0)


def _release_quarantined() -> int:
    """Release quarantined targets, as an operator would; return their number."""
    ill = list(Target.objects.filter(quarantined_at__isnull=False).values_list("pk", flat=True))
    for pk in ill:
        release_target(target_id=pk, by=None)
    return len(ill)


def _look_over(lab: Lab, account: Account, say: Say) -> None:
    """Wait until nothing is open, then check everything that was recorded since the beginning."""
    end = time.monotonic() + DRAIN_S
    while patiently(_open) and time.monotonic() < end:
        account.quarantined += patiently(_release_quarantined)
        time.sleep(0.5)
    account.breaches = patiently(lambda: breaches(lab.home))
    account.left = patiently(lambda: leftovers(lab))
    account.experiments, account.runs, account.samples = patiently(_counts)
    wrong = [breach for breach in account.breaches if breach.kind != "failed"]
    say(
        f"     looked over: {account.experiments}, {account.runs} runs, {account.samples} samples; "
        f"{len(wrong)} breaches, {len(account.left)} left behind"
    )
    for text in chain((f"{breach.kind}: {breach.what}" for breach in account.breaches), account.left):
        say(f"     {text}")


def _open() -> bool:
    return Experiment.objects.filter(state__in=("queued", "running")).exists()


def _counts() -> tuple[dict[str, int], int, int]:
    from django.db.models import Count

    from lab.models import Run, Sample

    states = dict(Experiment.objects.order_by().values_list("state").annotate(Count("pk")))
    return states, Run.objects.filter(state="done").count(), Sample.objects.count()
