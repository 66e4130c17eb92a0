# SPDX-License-Identifier: GPL-2.0-or-later
"""Carrying out fetches in a test's own process, as a worker's child does in its."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread

from django.db import connection

from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec
from lab.models import Fetch, User
from lab.submission.fetches.queue import claim_fetch
from lab.submission.fetches.work import carry_out
from lab.submission.git_addresses import check_address


def fetch_all(home: Path | None = None) -> list[Fetch]:
    """Carry out all that wait; returns their rows."""
    done = []
    while (row := claim_fetch(by="host:1:1")) is not None:
        carry_out(row.pk, row.token, home=home)
        row.refresh_from_db()
        done.append(row)
    return done


def at_hand(spec: ExperimentSpec, by: User) -> None:
    """Stand in for `check_here`: every tree is at hand, so that a web process carries everything out itself."""
    if spec.git is not None:
        try:
            check_address(spec.git, by)
        except SubmissionRejected as exc:
            raise SubmissionRejected(f"git: {exc}", exc.detail, place="git") from exc


@contextmanager
def repeating(do: Callable[[], object]) -> Iterator[None]:
    """Do something again and again in a thread."""
    over = Event()

    def repeat() -> None:
        try:
            while not over.wait(0.05):
                do()
        finally:
            connection.close()

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def a_fetcher() -> AbstractContextManager[None]:
    """Somebody who carries out fetches, as `labctl work` does by a process each."""
    return repeating(fetch_all)
