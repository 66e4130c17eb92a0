# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry out one fetch: run in the worker's child process."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import InterfaceError, OperationalError

from lab.errors import FetchLost, LabError, LabUnable
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment, Fetch
from lab.profiles.exports.data import as_data
from lab.submission.duplicates import submit_once, submit_under_key
from lab.submission.fetches.queue import (
    fail_fetch,
    finish_fetch,
    finish_with_experiment,
    keep_received,
    report_stage,
)
from lab.submission.fetches.series import WantedSeries, fetch_series, wanted_of, with_series
from lab.submission.part_checks import check_parts, every_fault
from lab.submission.preview import preview_experiment
from lab.submission.submit import submit_experiment

log = logging.getLogger(__name__)


def carry_out(fetch_id: int, token: str, *, home: Path | None = None) -> None:
    """Fetch what is wanted, then preview or submit it; the row says how it ended.

    Raises FetchLost, and OperationalError or InterfaceError where the database goes away: then only the row
    says whether its last transaction was written.
    """
    row = Fetch.objects.select_related("user", "origin").filter(pk=fetch_id, token=token).first()
    if row is None:
        raise FetchLost(f"fetch {fetch_id} is not ours")
    try:
        _carry_out(row, home)
    except (FetchLost, OperationalError, InterfaceError):
        raise
    except LabError as exc:
        fail_fetch(row.pk, token, exc)
    except Exception as exc:
        log.exception("fetch %s failed, by the lab's fault", row.pk)
        fail_fetch(
            row.pk, token, LabUnable(f"the lab failed here: {type(exc).__name__}; see the worker's log")
        )


def _carry_out(row: Fetch, home: Path | None) -> None:
    wanted = wanted_of(row.request)

    def on_stage(place: str, line: str) -> None:
        report_stage(row.pk, row.token, place, line)

    series = fetch_series(wanted, row.user, home, on_stage)
    if series:
        keep_received(row.pk, row.token, [asdict(received) for received in series])
    description = with_series(wanted, series)
    with every_fault(description, lambda whole: check_parts(whole, home)):
        spec = spec_from_mapping(description)
        if row.kind == Fetch.Kind.SUBMIT:
            _submit(row, wanted, spec, home)
            return
        place = "git" if spec.git is not None else "tree"
        on_stage(place, "opening the tree")
        preview = preview_experiment(
            spec=spec,
            by=row.user,
            origin=row.origin,
            home=home,
            on_progress=lambda line: on_stage(place, line),
        )
    finish_fetch(row.pk, row.token, preview=as_data(preview))


def _submit(row: Fetch, wanted: WantedSeries, spec: ExperimentSpec, home: Path | None) -> None:
    """Submit as a web process would have; the row ends in the very transaction that writes the experiment."""

    def finish(experiment: Experiment) -> None:
        finish_with_experiment(row.pk, row.token, experiment)

    if not row.key:
        done = submit_once(
            spec=spec,
            by=row.user,
            form=wanted.form_key,
            origin=row.origin,
            home=home,
            on_written=finish,
        )
        if done.already:
            finish(done.experiment)
        return

    def submit(note: Callable[[Experiment], Any]) -> Experiment:
        def written(experiment: Experiment) -> None:
            note(experiment)
            finish(experiment)

        return submit_experiment(spec=spec, by=row.user, home=home, on_written=written)

    experiment, replayed = submit_under_key(
        user=row.user, key=row.key, body_sha256=row.body_sha256, submit=submit
    )
    if replayed:
        finish(experiment)
