# SPDX-License-Identifier: GPL-2.0-or-later
"""The queue of fetches: claim the next one, renew, report, finish, each under a token."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from lab.audit.log import note_refusal, rule_of
from lab.errors import FetchLost, LabError, LabUnable
from lab.experiments.limits import FETCH_KEPT_H, FETCH_SLOTS, FETCHES_RUNNING_EACH, PREVIEW_UNWATCHED_S
from lab.leases.prepared import after
from lab.leases.process import is_alive
from lab.models import Experiment, Fetch
from lab.models.states import FetchState, move
from lab.models.storable import storable, storable_text
from lab.submission.fetches.problem import problem_of

LEASE_S = 30.0
# A fetch whose worker died twice is not retried: it may be what kills them.
MOST_ATTEMPTS = 2
# A fetch that lost the database is retried more often: databases restart, and not because of a fetch.
MOST_INTERRUPTED = 5
_UNCLAIMED: dict[str, Any] = {"slot": None, "claimed_by": "", "token": "", "lease_until": None}


def claim_fetch(*, by: str) -> Fetch | None:
    """Claim the next fetch; None where none waits or all slots are taken.

    The person with the fewest running fetches goes first, then the oldest request.
    """
    for slot in _free_slots():
        for fetch_id in _waiting()[:5]:
            token = secrets.token_hex(16)
            claimed: dict[str, Any] = {
                "slot": slot,
                "claimed_by": by,
                "token": token,
                "lease_until": after(LEASE_S),
                "started_at": timezone.now(),
                "progress": "",
                "received_bytes": 0,
            }
            try:
                with transaction.atomic():
                    won = move(Fetch, fetch_id, FetchState.WAITING, FetchState.RUNNING, **claimed)
            except IntegrityError:
                # Another worker was faster with this slot.
                break
            if won:
                row = Fetch.objects.get(pk=fetch_id)
                Fetch.objects.filter(pk=fetch_id).update(attempt=row.attempt + 1)
                return row
    return None


def _free_slots() -> list[int]:
    taken = set(Fetch.objects.filter(slot__isnull=False).values_list("slot", flat=True))
    return [slot for slot in range(1, FETCH_SLOTS + 1) if slot not in taken]


def _waiting() -> list[int]:
    running = (
        Fetch.objects.filter(user=OuterRef("user"), state=FetchState.RUNNING)
        .order_by()
        .values("user")
        .annotate(count=Count("pk"))
        .values("count")
    )
    rows = Fetch.objects.filter(state=FetchState.WAITING).annotate(
        beside=Coalesce(Subquery(running), Value(0))
    )
    return list(
        rows.filter(beside__lt=FETCHES_RUNNING_EACH).order_by("beside", "pk").values_list("pk", flat=True)[:5]
    )


def renew_fetch(fetch_id: int, token: str, *, received_bytes: int) -> bool:
    """Lengthen the lease; False where the fetch was cancelled or given to another worker."""
    held = Fetch.objects.filter(pk=fetch_id, token=token, state=FetchState.RUNNING)
    return held.update(lease_until=after(LEASE_S), received_bytes=received_bytes) == 1


def report_stage(fetch_id: int, token: str, place: str, line: str) -> None:
    """Write the current step, for people. Raises FetchLost."""
    held = Fetch.objects.filter(pk=fetch_id, token=token, state=FetchState.RUNNING)
    if not held.update(place=place[:40], progress=storable_text(line, 300)):
        raise FetchLost(f"fetch {fetch_id} is no longer claimed by this worker")


def finish_fetch(fetch_id: int, token: str, **results: Any) -> None:
    """Write the result: preview or experiment. Raises FetchLost."""
    _end(fetch_id, token, FetchState.DONE, **storable(results))


def finish_with_experiment(fetch_id: int, token: str, experiment: Experiment) -> None:
    """Write that the submission is an experiment. Raises FetchLost."""
    _end(fetch_id, token, FetchState.DONE, experiment=experiment)


def fail_fetch(fetch_id: int, token: str, error: LabError) -> None:
    """Write why there is no result; its key is free again. Raises FetchLost."""
    _end(fetch_id, token, FetchState.FAILED, problem=problem_of(error), key="")
    if error.blame == "submission":
        user = Fetch.objects.select_related("user").get(pk=fetch_id).user
        note_refusal("fetch", rule_of(error), person=user)


def keep_received(fetch_id: int, token: str, received: list[dict[str, Any]]) -> None:
    """Write the series that were fetched, so that they need not be fetched again. Raises FetchLost."""
    held = Fetch.objects.filter(pk=fetch_id, token=token, state=FetchState.RUNNING)
    if not held.update(received=storable(received)):
        raise FetchLost(f"fetch {fetch_id} is no longer claimed by this worker")


def _end(fetch_id: int, token: str, state: FetchState, **fields: Any) -> None:
    ended = {**_UNCLAIMED, "finished_at": timezone.now(), **fields}
    if not move(Fetch, fetch_id, FetchState.RUNNING, state, held=token, **ended):
        raise FetchLost(f"fetch {fetch_id} is no longer claimed by this worker")


def return_dead_fetches(alive: Callable[[str], bool] = is_alive) -> list[int]:
    """Put back fetches whose worker is gone, or end them where that happened twice; returns their numbers."""
    rows = Fetch.objects.filter(state=FetchState.RUNNING)
    expired = set(rows.exclude(lease_until__gt=after(0.0)).values_list("pk", flat=True))
    returned = []
    for row in rows.only("pk", "token", "claimed_by", "attempt"):
        if row.pk not in expired and alive(row.claimed_by):
            continue
        why = f"the worker ended {row.attempt} times during this work; see its log"
        if _put_back(row, "" if row.attempt < MOST_ATTEMPTS else why):
            returned.append(row.pk)
    return returned


def return_interrupted_fetch(fetch_id: int, token: str) -> bool:
    """Put back a fetch whose process lost the database, or end it after the MOST_INTERRUPTED-th time; False where it has ended already."""
    row = Fetch.objects.only("pk", "token", "attempt", "interrupted").filter(pk=fetch_id, token=token).first()
    if row is None:
        return False
    times = row.interrupted + 1
    why = f"the database went away {times} times during this work; see the worker's log"
    # Not counted as an attempt: deaths of workers are counted separately.
    counted = {"attempt": max(0, row.attempt - 1), "interrupted": times}
    return _put_back(row, "" if times < MOST_INTERRUPTED else why, **counted)


def _put_back(row: Fetch, problem: str, **counted: int) -> bool:
    """Let a running fetch wait again, or end it with a problem; False where another process holds it."""
    fields = {**_UNCLAIMED, **counted}
    if not problem:
        return move(Fetch, row.pk, FetchState.RUNNING, FetchState.WAITING, held=row.token, **fields)
    ended = {
        **fields,
        "finished_at": timezone.now(),
        "problem": problem_of(LabUnable(problem)),
        "key": "",
    }
    return move(Fetch, row.pk, FetchState.RUNNING, FetchState.FAILED, held=row.token, **ended)


def cancel_unwatched() -> int:
    """Cancel previews that no page or program asks for any more; returns how many. Their workers notice at the next renewal."""
    late = timezone.now() - timedelta(seconds=PREVIEW_UNWATCHED_S)
    rows = Fetch.objects.filter(kind=Fetch.Kind.PREVIEW, looked_at__lt=late)
    over = {**_UNCLAIMED, "finished_at": timezone.now(), "key": ""}
    numbers = rows.filter(state__in=(FetchState.WAITING, FetchState.RUNNING)).values_list("pk", "state")
    return sum(
        move(Fetch, number, FetchState(state), FetchState.CANCELLED, **over) for number, state in numbers
    )


def forget_fetches() -> int:
    """Remove results of more than a day ago; returns how many."""
    over = ~Q(state__in=(FetchState.WAITING, FetchState.RUNNING))
    removed, _ = Fetch.objects.filter(over, finished_at__lt=after(-FETCH_KEPT_H * 3600.0)).delete()
    return removed
