# SPDX-License-Identifier: GPL-2.0-or-later
"""Make one experiment of a description that one person submits twice: from the same page, or before the first is done."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.db import IntegrityError, transaction
from django.utils import timezone

from lab.errors import KeyBusy, KeyReused
from lab.experiments.spec import ExperimentSpec, spec_digest
from lab.models import Experiment, IdempotencyKey, User
from lab.submission.submit import find_unfinished, submit_experiment

# Accepting a submission takes seconds; the second of two clicks waits for the experiment of the first.
WAIT_S = 60.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Submitted:
    """The experiment; already: it existed before this submission."""

    experiment: Experiment
    already: bool


def submit_once(
    *,
    spec: ExperimentSpec,
    by: User,
    form: str = "",
    origin: Experiment | None = None,
    home: Path | None = None,
    wait_s: float = WAIT_S,
    on_written: Callable[[Experiment], None] = lambda _: None,
) -> Submitted:
    """Submit an experiment, unless this page of the form did, or the same person has an equal unfinished one.

    form: the page's own key, "" for none; origin: what it was re-run or cloned from. on_written is called in the
    transaction that writes a new experiment. Raises what submit_experiment does, and KeyBusy where the same page is
    still being processed after wait_s seconds.
    """
    same = find_unfinished(spec, by=by)
    if same is not None:
        return Submitted(same, True)

    def submit(note: Callable[[Experiment], None] = lambda _: None) -> Experiment:
        def written(experiment: Experiment) -> None:
            note(experiment)
            on_written(experiment)

        return submit_experiment(spec=spec, by=by, origin=origin, home=home, on_written=written)

    if not form:
        return Submitted(submit(), False)
    digest = spec_digest(spec)
    # A user who goes back and changes the form wants another experiment: the description is part of the key.
    key = f"form:{form[:64]}:{digest}"
    ends = time.monotonic() + wait_s
    while True:
        try:
            return Submitted(*submit_under_key(user=by, key=key, body_sha256=digest, submit=submit))
        except KeyBusy:
            if time.monotonic() > ends:
                raise
            time.sleep(_POLL_S)


KEPT = timedelta(days=30)
# A process that has worked on one submission for this long is dead.
LONGEST_WORK = timedelta(minutes=75)

Note = Callable[[Experiment], None]


def submit_under_key(
    *, user: User, key: str, body_sha256: str, submit: Callable[[Note], Experiment]
) -> tuple[Experiment, bool]:
    """Return the experiment of this key, and whether it was there before.

    submit: makes the experiment, and calls its argument with the row in the transaction that writes it.
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
    """Return the key, which is now ours to fill, or the experiment that it names."""
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
