# SPDX-License-Identifier: GPL-2.0-or-later
"""One process that is many targets and builders: one loop over what is due next, with the product's own claims, leases, records and uploads.

    python -m bench.fleet.farm FILE        the file: a Share as JSON

Each simulated worker sends what a real one sends: its report and what is done beside it every 5 s, a look at its claim every
LOOK_S and a renewal three times a lease, the order, the console's place, the record, the files. What is left out happens on the target's
own host and touches nothing shared: packing and reading a guest's files, compiling. All wait for wake-ups in one BRPOP. A worker
that dies keeps silent and comes back under another name, so that nothing but its lease frees its work. SIGTERM ends the process.
"""

from __future__ import annotations

import heapq
import itertools
import json
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from redis import Redis

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench.fleet import guests
from lab.leases.process import worker_identity
from lab.leases.version import code_version, lab_version
from lab.models import Target
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build, claim_next_run, is_held, lease_seconds, renew
from lab.runs.queues import target_queue
from lab.runs.record import (
    BuildSuccess,
    Failure,
    record_build_failure,
    record_build_log,
    record_build_steps,
    record_build_success,
    record_run,
    record_run_console,
)
from lab.runs.work_orders import build_order, run_order
from lab.runs.workers import WorkerReport, report_worker
from lab.storage.artifacts import name_in_store
from lab.storage.files import name_of
from lab.storage.store import lab_store
from lab.targets.health_checks import due_checks
from workers import fleet, wakeups
from workers.app import over_the_broker
from workers.build import STEPS_S
from workers.lease import LOOK_S
from workers.presence import KEEP_GOING, KEPT_GOING_S, REPORT_S
from workers.readiness import why_idle
from workers.run_files import send_runs

BUILD_QUEUE = "build.x86_64.gcc"
# So many targets share a host, and with it the folder that a worker sends files from.
TARGETS_A_HOST = 20
# How long a worker that died stays away.
AWAY_S = 20.0
# Messages are looked for this often at least, however much else is due.
LISTEN_S, IDLE_S = 0.05, 0.5
ARTIFACT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the fleet that one process is. speed: seconds of the day a second; result: the file for its tallies."""

    number: int
    targets: tuple[str, ...]
    builders: int
    speed: float
    seed: int
    home: str
    result: str


@dataclass(slots=True)
class Post:
    """One simulated worker. target: "" of a builder. away_until: dead, or at work, until it looks for work again."""

    name: str
    queue: str
    target: str = ""
    home: Path = Path()
    lives: int = 1
    busy: bool = False
    dead: bool = False

    @property
    def identity(self) -> str:
        """Return how claims and reports name it: of another host, so that its lease alone tells of its death."""
        return f"{self.name}:{self.lives}:1"


@dataclass(slots=True)
class Tally:
    """All that one process counted. busy_s: of its targets; behind_s: the worst delay of anything that was due.

    died: the tokens of claims whose worker died. seconds: spent on each kind of work.
    """

    counts: Counter[str] = field(default_factory=Counter)
    busy_s: float = 0.0
    behind_s: float = 0.0
    died: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return it for a file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Farm:
    """The loop of one process."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.tally = Tally()
        self.over = False
        self._due: list[tuple[float, int, str, Callable[[], None]]] = []
        self._order = itertools.count()
        self._redis: Redis = Redis.from_url(settings.REDIS, decode_responses=True)
        self._idle: dict[str, list[Post]] = defaultdict(list)
        self._store = lab_store()
        self._lab = lab_version()
        hosts = Path(share.home)
        posts = [
            Post(name, target_queue(name), name, hosts / f"host-{share.number}-{place // TARGETS_A_HOST}")
            for place, name in enumerate(share.targets)
        ]
        posts += [Post(f"builder-{share.number}-{n}", BUILD_QUEUE) for n in range(share.builders)]
        for place, post in enumerate(posts):
            self._rest(post)
            # Reports of many workers come at any moment, not all at once.
            self._at(REPORT_S * place / len(posts), "report", lambda post=post: self._report(post))  # type: ignore[misc]

    def run(self) -> None:
        """Work until told to end; then write the tallies."""
        listened = 0.0
        while not self.over:
            now = time.monotonic()
            if now - listened > LISTEN_S:
                wait = min(IDLE_S, self._due[0][0] - now) if self._due else IDLE_S
                self._listen(max(0.0, wait))
                listened = time.monotonic()
            if self._due and self._due[0][0] <= time.monotonic():
                due, _, kind, act = heapq.heappop(self._due)
                began = time.monotonic()
                self.tally.behind_s = max(self.tally.behind_s, began - due)
                act()
                self.tally.counts[kind] += 1
                spent = self.tally.seconds.get(kind, 0.0) + time.monotonic() - began
                self.tally.seconds[kind] = spent
            elif now - listened <= LISTEN_S:
                time.sleep(LISTEN_S / 10)
        Path(self.share.result).write_text(json.dumps(self.tally.as_json()))

    def _at(self, after_s: float, kind: str, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time.monotonic() + after_s, next(self._order), kind, act))

    def _listen(self, wait_s: float) -> None:
        """Take one wake-up, and have a post that is free look for work."""
        queues = [queue for queue, posts in self._idle.items() if posts]
        if not queues:
            return
        wake_up = self._redis.brpop(queues, timeout=max(wait_s, 0.01))
        if wake_up is not None:
            post = self._idle[str(wake_up[0])].pop()
            post.busy = True
            self._at(0.0, "claim", lambda: self._take(post))

    def _rest(self, post: Post) -> None:
        post.busy = False
        self._idle[post.queue].append(post)

    def _report(self, post: Post) -> None:
        """Do what a worker's own thread does every few seconds (workers/presence.py)."""
        self._at(REPORT_S, "report", lambda: self._report(post))
        if post.dead:
            return
        idle = why_idle(builds=not post.target, lab=self._lab)
        report = WorkerReport(post.identity, post.name, [post.queue], code_version(), 1, 2, idle)
        answer = report_worker(report, chore=KEEP_GOING, within_s=KEPT_GOING_S)
        self._lab = answer.lab
        wakeups.depth(post.queue)
        fleet.keep_going(answer.done)

    def _take(self, post: Post) -> None:
        begun = self._take_boot(post) if post.target else self._take_build(post)
        if not begun:
            self.tally.counts["nothing"] += 1
            self._rest(post)

    def _take_boot(self, post: Post) -> bool:
        Target.objects.filter(name=post.target).values_list("driver", flat=True).first()
        claim = claim_next_run(target=post.target, by=post.identity)
        if claim is None:
            due_checks(name=post.target)
            return False
        order = run_order(claim.id)
        folder = post.home / "runs" / f"{order.id}-{order.attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        console = folder / "console.log"
        record_run_console(claim, console=name_of(console, post.home), directory=name_of(folder, post.home))
        boot = guests.boot_of(order, self.share.seed)
        if boot.dies:
            self._die(post, claim)
            return True
        length = boot.seconds / self.share.speed
        self._hold(Held(claim, post, length), lambda: self._boot_over(post, claim, boot, folder))
        return True

    def _boot_over(self, post: Post, claim: Claim, boot: guests.Boot, folder: Path) -> None:
        # The worker that took over a boot of a machine that does not keep up may have removed its files.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "console.log").write_bytes(b"." * guests.CONSOLE_BYTES)
        (folder / "records.bin").write_bytes(b"." * guests.RECORDS_BYTES)
        stored = record_run(claim, boot.record)
        self.tally.counts["recorded" if stored else "refused"] += 1
        send_runs(post.home)

    def _take_build(self, post: Post) -> bool:
        claim = claim_next_build(queue=post.queue, by=post.identity)
        if claim is None:
            return False
        order = build_order(claim.id)
        key = guests.artifact_key(order)
        record_build_log(claim, f"artifacts/{key}/build.log")
        making = guests.making_of(order, self.share.seed)
        length = making.seconds / self.share.speed
        self._at(STEPS_S, "steps", lambda: self._steps(claim, length))
        self._hold(Held(claim, post, length), lambda: self._build_over(claim, key, making))
        return True

    def _steps(self, claim: Claim, left_s: float) -> None:
        if left_s > STEPS_S and record_build_steps(claim, 1, 1000):
            self._at(STEPS_S, "steps", lambda: self._steps(claim, left_s - STEPS_S))

    def _build_over(self, claim: Claim, key: str, making: guests.Making) -> None:
        if not making.works:
            record_build_failure(claim, Failure("kernel", "fs/inode.c:1:1: error: made up"))
            return
        if self._store is not None:
            self._store.put(name_in_store(key, key), key.encode() * (ARTIFACT_BYTES // len(key)))
            self._store.put(name_in_store(key), b"{}")
        success = BuildSuccess(key, f"6.1.0-{key[:8]}", key, making.seconds, making.seconds)
        self.tally.counts["built" if record_build_success(claim, success) else "refused"] += 1

    def _die(self, post: Post, claim: Claim) -> None:
        """Keep silent for a while, then come back as another process."""
        self.tally.died.append(claim.token)
        post.dead = True

        def return_() -> None:
            post.dead, post.lives = False, post.lives + 1
            self._take(post)

        self._at(AWAY_S, "claim", return_)

    def _hold(self, held: Held, end: Callable[[], None]) -> None:
        """Keep a claim until its time is over, then end it and take the next piece; a lost claim is left at once."""

        def look() -> None:
            now = time.monotonic()
            if held.over:
                return
            if now - held.renewed_at > lease_seconds() / 3:
                held.renewed_at, kept = now, renew(held.claim)
            else:
                kept = is_held(held.claim)
            if kept:
                self._at(LOOK_S, "look", look)
            else:
                self.tally.counts["lost claims"] += 1
                leave()

        def leave() -> None:
            held.over = True
            self.tally.busy_s += time.monotonic() - held.since if held.post.target else 0.0
            self._at(0.0, "claim", lambda: self._take(held.post))

        def finish() -> None:
            if not held.over:
                end()
                leave()

        self._at(LOOK_S, "look", look)
        self._at(held.length_s, "record", finish)


@dataclass(slots=True)
class Held:
    """A claim that a post works on for so many seconds."""

    claim: Claim
    post: Post
    length_s: float
    since: float = field(default_factory=time.monotonic)
    renewed_at: float = field(default_factory=time.monotonic)
    over: bool = False


def main(file: str) -> None:
    """Be the part of the fleet that a file describes."""
    description = json.loads(Path(file).read_text())
    over_the_broker()
    farm = Farm(Share(**{**description, "targets": tuple(description["targets"])}))

    def end(_number: int, _frame: object) -> None:
        farm.over = True

    signal.signal(signal.SIGTERM, end)
    print("ready", worker_identity(), flush=True)
    farm.run()


if __name__ == "__main__":
    main(sys.argv[1])
