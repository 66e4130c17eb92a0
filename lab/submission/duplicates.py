# SPDX-License-Identifier: GPL-2.0-or-later
"""Make one experiment of a description that one person submits twice: from the same page, or before the first is done."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import KeyBusy
from lab.experiments.spec import ExperimentSpec, spec_digest
from lab.models import Experiment, User
from lab.submission.idempotency import submit_under_key
from lab.submission.submit import find_unfinished, submit_experiment

# Taking a submission in takes seconds; the second of two clicks waits for the first to know where it leads.
WAIT_S = 60.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Submitted:
    """The experiment; already: it was there before this was sent."""

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
    """Take an experiment in, unless this page of the form did, or an unfinished one by the same person says the same.

    form: the page's own key, "" for none; origin: what it was re-run or cloned from. on_written is called in the
    transaction that writes a new experiment. Raises what submit_experiment does, and KeyBusy where the same page is
    still being taken in after wait_s seconds.
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
