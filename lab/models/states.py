# SPDX-License-Identifier: GPL-2.0-or-later
"""States of rows, and the only function that changes them, except for the one statement of a claim (lab/runs/claiming.py).

Each table lists the moves that exist; a state without moves is final. `move` is one
conditional UPDATE, so of two processes that want the same move exactly one gets True.

    experiment  queued → running → done | failed;  queued, running → cancelled
    variant     planned → ready | failed           (pruned is given at submission)
    build       queued → building → built | failed | cancelled
                building → queued when its worker died; queued → built when the store has it;
                built → queued when its artifact was deleted; failed, cancelled → queued again
    run         queued → running → done | failed | cancelled; running → queued to try again
    bisection   running → done | failed
    fetch       waiting → running → done | failed;  waiting, running → cancelled;  running → waiting when its worker died
    delivery    waiting → delivered | given-up;  delivered, given-up → waiting when asked for again
"""

from collections.abc import Mapping
from typing import Any

from django.db import models

from lab.errors import IllegalMove


class ExperimentState(models.TextChoices):
    """An experiment is failed only when nothing can be compared: its base did not build or boot."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_EXPERIMENT = (ExperimentState.QUEUED, ExperimentState.RUNNING)


class Role(models.TextChoices):
    """The role of a variant. Controls differ from the base in nothing that should matter."""

    BASE = "base"
    CANDIDATE = "candidate"
    # The base once more, from the same build: whatever it shows is noise.
    AA = "a/a"
    # The base with its functions aligned otherwise: whatever it shows is code layout.
    PLACEBO = "placebo"


class VariantState(models.TextChoices):
    """A variant is ready once its build is."""

    PLANNED = "planned"
    PRUNED = "pruned"
    READY = "ready"
    FAILED = "failed"


class BuildState(models.TextChoices):
    """One attempt to compile a tree with a config."""

    QUEUED = "queued"
    BUILDING = "building"
    BUILT = "built"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunState(models.TextChoices):
    """One boot; `done` means its numbers count, `failed` that its outcome says why not."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BisectionState(models.TextChoices):
    """A bisection is failed when it could not go on; one that ends without a commit is done."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class FetchState(models.TextChoices):
    """A preview or a submission in a worker; it is failed when its description is refused or a limit ended it."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DeliveryState(models.TextChoices):
    """The state of the delivery of one event to one hook."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given-up"


class Outcome(models.TextChoices):
    """The outcome of a run; all but the first are shown with their evidence."""

    FINISHED = "finished"
    BOOT_FAILED = "boot-failed"
    PANICKED = "panicked"
    HUNG = "hung"
    WORKLOAD_FAILED = "workload-failed"
    WRONG_KERNEL = "wrong-kernel"
    LOST = "lost"


class Purpose(models.TextChoices):
    """The purpose of a run; only measured runs are timed."""

    MEASURED = "measured"
    PROFILED = "profiled"
    VERIFIED = "verified"


MOVES: Mapping[type[models.TextChoices], Mapping[str, frozenset[str]]] = {
    ExperimentState: {
        "queued": frozenset({"running", "cancelled"}),
        "running": frozenset({"done", "failed", "cancelled"}),
    },
    VariantState: {
        "planned": frozenset({"ready", "failed"}),
    },
    BuildState: {
        "queued": frozenset({"building", "built", "cancelled"}),
        "building": frozenset({"built", "failed", "cancelled", "queued"}),
        "built": frozenset({"queued"}),
        "failed": frozenset({"queued"}),
        "cancelled": frozenset({"queued"}),
    },
    RunState: {
        "queued": frozenset({"running", "cancelled"}),
        "running": frozenset({"done", "failed", "cancelled", "queued"}),
    },
    BisectionState: {
        "running": frozenset({"done", "failed"}),
    },
    FetchState: {
        "waiting": frozenset({"running", "cancelled"}),
        "running": frozenset({"done", "failed", "cancelled", "waiting"}),
    },
    DeliveryState: {
        "waiting": frozenset({"delivered", "given-up"}),
        "delivered": frozenset({"waiting"}),
        "given-up": frozenset({"waiting"}),
    },
}


def allowed(start: models.TextChoices, to: models.TextChoices) -> bool:
    """Return whether the tables know this move."""
    return type(start) is type(to) and to.value in MOVES[type(start)].get(start.value, frozenset())


def move(
    model: type[models.Model],
    pk: int,
    start: models.TextChoices,
    to: models.TextChoices,
    *,
    held: str | None = None,
    **fields: Any,
) -> bool:
    """Change one row's state if it still is `start` (and its token is `held`); True if it was.

    `fields` are written in the same statement. Raises IllegalMove for a move no table knows.
    """
    if not allowed(start, to):
        raise IllegalMove(f"{model.__name__} {pk} cannot go from {start.value} to {to.value}")
    rows = model._default_manager.filter(pk=pk, state=start.value)
    if held is not None:
        rows = rows.filter(token=held)
    return rows.update(state=to.value, **fields) == 1
