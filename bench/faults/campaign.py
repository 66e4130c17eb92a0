# SPDX-License-Identifier: GPL-2.0-or-later
"""One fault after the other on a busy lab, each at a stage of its own, and what became of the work it hit."""

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast

from django.conf import settings
from django.db import connection
from redis import Redis
from redis.exceptions import RedisError

from bench.faults.audit import entries, keep_diary
from bench.faults.blow import Blow, holders_of
from bench.faults.campaign_file import Injected, changing
from bench.faults.faults import PREPARATIONS, STRIKES
from bench.faults.guests import GuestLoad
from bench.faults.hand import SIZE, Hand, Loads
from bench.faults.invariants import breaches
from bench.faults.kinds import KINDS
from bench.faults.lab import FAR, GUEST, Lab
from bench.faults.leftovers import leftovers
from bench.faults.load import Load
from bench.faults.patience import patiently
from bench.faults.stages import Moment
from lab.models import Experiment, Target
from lab.runs.settle import cancel_experiment
from lab.targets.quarantine import release_target
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor

Say = Callable[[str], None]
# A Python that starts on a busy machine takes its time; takeover is counted until the work is queued again.
SETTLE_S, DRAIN_S = 120.0, 600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The end of one piece: so many of the campaign's faults have landed, or this time is over. each: faults between two checks."""

    count: int
    each: int = 25
    seconds: float = 36_000.0


@dataclass(frozen=True, slots=True)
class Lane:
    """A lab that takes its share of the campaign in a file, beside others that do the same."""

    lab: Lab
    path: Path
    say: Say

    @property
    def home(self) -> str:
        """Return what its piece is known by."""
        return str(self.lab.home)

    def take(self, count: int) -> Injected | None:
        """Return the fault that comes next, which nobody else injects from now on; None once so many have landed."""
        with changing(self.path) as campaign:
            if campaign.hit >= count:
                return None
            injected = next(campaign.upcoming())
            injected.home = self.home
            campaign.piece(self.home).hand.append(injected.number)
            return injected

    def record(self, injection: Injected, released: int) -> None:
        """Write down the result, and how many targets were released since the last fault."""
        with changing(self.path) as campaign:
            campaign.injected.append(injection)
            piece = campaign.piece(self.home)
            piece.hand.remove(injection.number)
            piece.quarantined += released


def carry_out(lane: Lane, plan: Plan) -> None:
    """Inject what the campaign's seed draws next, and check the lab after each round; a signal ends the piece after one more check."""
    keep_diary()
    try:
        _go_on(lane, plan)
    except KeyboardInterrupt:
        lane.say("     stopped")
    finally:
        # Whatever ended it: what was injected until then counts once it was checked.
        close_piece(lane)


def close_piece(lane: Lane) -> None:
    """Check a piece's lab once more, and write down that nothing of it is unchecked."""
    _look_over(lane)
    with changing(lane.path) as campaign:
        piece = campaign.piece(lane.home)
        piece.over, piece.hand = True, []


def _go_on(lane: Lane, plan: Plan) -> None:
    lab = lane.lab
    targets = [*lab.targets, *([FAR] if lab.far else [])]
    loads = Loads(
        Load(lab.home, tuple(targets), lab.setup.seed),
        GuestLoad(lab.home, lab.setup.kernel) if lab.setup.kernel else None,
    )
    hand = Hand(lab, loads)
    begun = time.monotonic()
    injected = 0
    while time.monotonic() - begun < plan.seconds and _filled(lane, hand, plan.count):
        injection = _inject_one(hand)
        hand.held.remove(injection)
        _record(lane, injection)
        injected += 1
        if injected % plan.each == 0:
            _look_over(lane)


def _filled(lane: Lane, hand: Hand, count: int) -> bool:
    """Draw until the hand is full; False once so many have landed. What this machine cannot have is recorded at once."""
    while len(hand.held) < SIZE:
        injected = lane.take(count)
        if injected is None:
            return False
        injected.unable = lane.lab.unable.get(KINDS[injected.fault].needs, "")
        if injected.unable:
            _record(lane, injected)
        else:
            hand.held.append(injected)
    return True


def _record(lane: Lane, injection: Injected) -> None:
    lane.record(injection, patiently(_release_quarantined))
    lane.say(_line(injection))


def _line(injection: Injected) -> str:
    took = "" if injection.takeover_s is None else f", taken over in {injection.takeover_s:.1f} s"
    ended = ", ".join(f"{count} {state}" for state, count in injection.ended.items())
    how = "hit" if injection.hit else "unable" if injection.unable else "missed"
    return (
        f"{injection.number:4} {injection.fault:24} {injection.stage:10} {how:6}"
        f" after {injection.waited_s:5.1f} s, whole {injection.whole_s:5.1f} s, held {injection.held}{f' ({ended})' if ended else ''}{took}{' TOO LATE' if injection.late else ''}{injection.broken and f' BROKEN: {injection.broken}'}"
    )


def _inject_one(hand: Hand) -> Injected:
    """Inject the first whose stage comes, and return it; a fault whose own program fails does not count, and the campaign continues with the next."""
    chosen = [hand.alone or hand.held[0]]
    try:
        if hand.alone:
            _inject_alone(hand, chosen[0])
        else:
            chosen[0], moment = hand.first(hand.ready())
            _inject(hand, chosen[0], moment, None)
    except Exception as exc:
        traceback.print_exc()
        chosen[0].hit = False
        chosen[0].unable = f"could not be carried out: {' '.join(str(exc).split())[:200]}"
        _wait_until_whole(hand.lab)
    return chosen[0]


def _inject_alone(hand: Hand, injection: Injected) -> None:
    """Prepare a fault and inject it, with nothing else meanwhile."""
    begun = time.monotonic()
    with PREPARATIONS[injection.fault](hand.lab) as prepared:
        prepared_s = time.monotonic() - begun
        _, moment = hand.first([injection])
        injection.waited_s += prepared_s
        _inject(hand, injection, moment, prepared)


def _inject(hand: Hand, injection: Injected, moment: Moment | None, prepared: object) -> None:
    injection.waited_s = round(injection.waited_s, 1)
    if moment is None:
        return
    lab = hand.lab
    blow = Blow(lab, moment, hand.draw(injection), prepared=prepared)
    since = patiently(_now)
    started = time.monotonic()
    held: dict[tuple[str, int], str] = {}
    with STRIKES[injection.fault](blow):
        if blow.victims:
            held = patiently(lambda: holders_of(blow.victims))
        injection.held = len(held)
    injection.hit, injection.broken = blow.landed, blow.broken
    _follow(lab, injection, held, since)
    _wait_until_whole(lab)
    injection.whole_s = round(time.monotonic() - started, 1)


def _follow(lab: Lab, injection: Injected, held: dict[tuple[str, int], str], since: float) -> None:
    """Wait until nobody holds what the victims held, and say when that was and how."""
    end = time.monotonic() + SETTLE_S
    open_claims = dict(held)
    while open_claims and time.monotonic() < end:
        for (kind, row), token in list(open_claims.items()):
            freed = patiently(lambda kind=kind, row=row, token=token: _freed(kind, row, token))  # type: ignore[misc]
            if freed is not None:
                at, became = freed
                injection.ended[became] = injection.ended.get(became, 0) + 1
                if became == "queued":
                    injection.takeover_s = max(injection.takeover_s or 0.0, round(at - since, 2))
                del open_claims[kind, row]
        time.sleep(0.05)
    injection.late = bool(open_claims) or (injection.takeover_s or 0.0) > 2 * lab.setup.lease_s


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
        if all(program.state == "RUNNING" for program in states):
            break
        time.sleep(0.1)
    baseline = None
    while time.monotonic() < end:
        with suppress(RedisError):
            now = _messages()
            if baseline is not None and now > baseline:
                return
            baseline = now if baseline is None else baseline
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


def _look_over(lane: Lane) -> None:
    """Wait until nothing is open, then check everything that was recorded since the beginning of this piece."""
    released = 0
    patiently(_cancel_guests)
    end = time.monotonic() + DRAIN_S
    while patiently(_open) and time.monotonic() < end:
        released += patiently(_release_quarantined)
        time.sleep(0.5)
    broken = patiently(lambda: breaches(lane.lab.home))
    left = patiently(lambda: leftovers(lane.lab))
    experiments, runs, samples = patiently(_counts)
    with changing(lane.path) as campaign:
        piece = campaign.piece(lane.home)
        piece.quarantined += released
        piece.breaches, piece.left = broken, left
        piece.experiments, piece.runs, piece.samples = experiments, runs, samples
    wrong = [breach for breach in broken if breach.kind != "failed"]
    lane.say(
        f"     checked: {experiments}, {runs} runs, {samples} samples; "
        f"{len(wrong)} breaches, {len(left)} left behind"
    )
    for text in chain((f"{breach.kind}: {breach.what}" for breach in broken), left):
        lane.say(f"     {text}")


def _cancel_guests() -> None:
    """Cancel what real guests are still to do, as a person would: each of their boots may take minutes, all other work waits for them."""
    still = Experiment.objects.filter(state__in=("queued", "running"), target__name=GUEST)
    for pk in list(still.values_list("pk", flat=True)):
        cancel_experiment(pk)


def _open() -> bool:
    return Experiment.objects.filter(state__in=("queued", "running")).exists()


def _counts() -> tuple[dict[str, int], int, int]:
    from django.db.models import Count

    from lab.models import Run, Sample

    states = dict(Experiment.objects.order_by().values_list("state").annotate(Count("pk")))
    return states, Run.objects.filter(state="done").count(), Sample.objects.count()
