# SPDX-License-Identifier: GPL-2.0-or-later
"""Submit under a client's own key: one experiment however often the request is sent."""

from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from lab.errors import KeyBusy, KeyReused
from lab.models import Experiment, IdempotencyKey, User

KEPT = timedelta(days=30)
# A process that has worked on one submission for so long is dead.
LONGEST_WORK = timedelta(minutes=75)

Note = Callable[[Experiment], None]


def submit_under_key(
    *, user: User, key: str, body_sha256: str, submit: Callable[[Note], Experiment]
) -> tuple[Experiment, bool]:
    """Return the experiment of this key, and whether it was there before.

    submit: makes it, and calls what it is given with its row in the transaction that writes it.
    Raises KeyReused, KeyBusy, and what `submit` raises; then the key is free again.
    """
    held = _claim(user, key, body_sha256)
    if isinstance(held, Experiment):
        return held, True

    def note(experiment: Experiment) -> None:
        IdempotencyKey.objects.filter(pk=held.pk).update(experiment=experiment)

    try:
        return submit(note), False
    except BaseException:
        IdempotencyKey.objects.filter(pk=held.pk, experiment=None).delete()
        raise


def _claim(user: User, key: str, body_sha256: str) -> IdempotencyKey | Experiment:
    """The key as ours to fill, or the experiment it already names."""
    now = timezone.now()
    IdempotencyKey.objects.filter(user=user, created_at__lt=now - KEPT).delete()
    try:
        with transaction.atomic():
            return IdempotencyKey.objects.create(user=user, key=key, body_sha256=body_sha256)
    except IntegrityError:
        pass
    row = IdempotencyKey.objects.select_related("experiment").filter(user=user, key=key).first()
    if row is not None and row.body_sha256 != body_sha256:
        raise KeyReused(f'the key "{key[:60]}" was used for another body; use a new key for each submission')
    if row is not None and row.experiment is not None:
        return row.experiment
    if row is not None and row.created_at < now - LONGEST_WORK:
        dead = IdempotencyKey.objects.filter(pk=row.pk, created_at=row.created_at, experiment=None)
        if dead.update(created_at=now):
            return row
    raise KeyBusy(f'the first request with the key "{key[:60]}" is in progress; try again in a moment')
