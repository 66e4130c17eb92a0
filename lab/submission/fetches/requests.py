# SPDX-License-Identifier: GPL-2.0-or-later
"""Request, find and cancel previews and submissions that a worker carries out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Q
from django.utils import timezone

from lab.errors import KeyReused, NotAllowed, Outdated, TooManyFetches, one_row
from lab.experiments.limits import FETCHES_OPEN, FETCHES_OPEN_EACH
from lab.from_attributes import attributes
from lab.models import Experiment, Fetch, User
from lab.models.states import FetchState, move
from lab.models.storable import storable
from lab.people.permissions import may, may_change
from lab.submission.fetches.series import WantedSeries

OPEN = (FetchState.WAITING, FetchState.RUNNING)


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A preview or submission for a worker. form: the page's fields, to show them again; key: an Idempotency-Key or ""."""

    kind: Fetch.Kind
    wanted: WantedSeries
    form: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    body_sha256: str = ""
    origin: Experiment | None = None


def request_fetch(*, by: User, asked: FetchRequest) -> Fetch:
    """Hand a preview or submission to a worker; return its row, or the open one of an equal request.

    Raises TooManyFetches, and KeyReused where the key came with another body.
    """
    request = storable(asked.wanted.as_json())
    digest = _digest(asked, request)
    with transaction.atomic():
        # Requests of one person queue up here, or two at once would both pass the limit.
        User.objects.select_for_update().get(pk=by.pk)
        same = find_fetch(by=by, key=asked.key, body_sha256=asked.body_sha256) or (
            # A request with another key is another submission, and its client asks for it by that key later.
            Fetch.objects.filter(user=by, digest=digest, key=asked.key, state__in=OPEN).first()
        )
        if same is not None:
            return same
        _check_room(by)
        try:
            return Fetch.objects.create(
                user=by,
                request=request,
                digest=digest,
                form=storable(asked.form),
                **attributes(asked, ("kind", "key", "body_sha256", "origin")),
            )
        except IntegrityError as exc:
            raise TooManyFetches("the same request was sent twice at once; send it again") from exc


def find_fetch(*, by: User, key: str, body_sha256: str) -> Fetch | None:
    """Return the fetch of a client's key; one that failed or was cancelled has lost its key. Raises KeyReused."""
    if not key:
        return None
    row = Fetch.objects.filter(user=by, key=key).first()
    if row is None:
        return None
    if row.body_sha256 != body_sha256:
        raise KeyReused(f'the key "{key[:60]}" was used for another body; use a new key for each submission')
    return row


def own_fetch(*, fetch_id: int, by: User, scopes: Sequence[str] | None = None) -> Fetch:
    """Return a fetch of this person's, or of anybody's for operators. Raises UnknownRow."""
    rows = Fetch.objects.select_related("user")
    if not may(by, "operate", scopes=scopes):
        rows = rows.filter(user=by)
    return one_row(rows.filter(pk=fetch_id), f"fetch {fetch_id} of yours; results are removed after a day")


def look_at_fetch(*, fetch_id: int, by: User, scopes: Sequence[str] | None = None) -> Fetch:
    """Return a fetch as own_fetch does, and note that its submitter still waits for it."""
    row = own_fetch(fetch_id=fetch_id, by=by, scopes=scopes)
    if row.user_id == by.pk and row.state in OPEN:
        Fetch.objects.filter(pk=row.pk).update(looked_at=timezone.now())
    return row


def cancel_fetch(*, fetch_id: int, by: User, scopes: Sequence[str] | None = None) -> Fetch:
    """Cancel an open fetch; its worker stops within seconds. Raises UnknownRow, NotAllowed, Outdated."""
    row = own_fetch(fetch_id=fetch_id, by=by, scopes=scopes)
    if not may_change(by, row.user, scopes=scopes):
        raise NotAllowed(
            f"fetch {fetch_id} is {row.user.username}'s: only its submitter and operators may cancel it"
        )
    for state in OPEN:
        if move(
            Fetch,
            row.pk,
            state,
            FetchState.CANCELLED,
            finished_at=timezone.now(),
            slot=None,
            key="",
            token="",
        ):
            row.refresh_from_db()
            return row
    row.refresh_from_db()
    raise Outdated(f"fetch {fetch_id} is {row.state} already: there is nothing to cancel")


def fetches_before(row: Fetch) -> int:
    """Return how many unfinished fetches were requested before a waiting one."""
    if row.state != FetchState.WAITING:
        return 0
    return Fetch.objects.filter(state__in=OPEN, pk__lt=row.pk).count()


def _check_room(by: User) -> None:
    open_now = Fetch.objects.filter(state__in=OPEN).aggregate(
        all=Count("pk"), own=Count("pk", filter=Q(user=by))
    )
    if open_now["own"] >= FETCHES_OPEN_EACH:
        raise TooManyFetches(
            f"you have {open_now['own']} unfinished previews and submissions, at most {FETCHES_OPEN_EACH} are allowed; "
            "wait for one, or cancel it"
        )
    if open_now["all"] >= FETCHES_OPEN:
        raise TooManyFetches(
            f"{open_now['all']} previews and submissions are waiting in this lab, no more are accepted; try again later"
        )


def _digest(asked: FetchRequest, request: Any) -> str:
    parts = [asked.kind, request, asked.origin.pk if asked.origin else None]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
