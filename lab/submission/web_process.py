# SPDX-License-Identifier: GPL-2.0-or-later
"""Previews and submissions in a web process: only those that need no other host, and a few at once.

Everything else raises NeedsWorker, and becomes a fetch (lab/submission/fetches/requests.py).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings

from kernels.errors import KernelsError
from kernels.trees.tree import is_imported
from lab.errors import FieldRefused, NeedsWorker, Refusals
from lab.experiments.limits import LOCAL_AT_ONCE
from lab.experiments.spec import ExperimentSpec
from lab.models import Experiment, User
from lab.submission.blame import field_at_fault
from lab.submission.duplicates import Submitted, submit_once
from lab.submission.fetches.series import WantedSeries
from lab.submission.git_addresses import check_address, git_refused
from lab.submission.part_checks import check_parts, every_fault
from lab.submission.preview import Preview, preview_experiment
from lab.submission.received_series import check_has_branches, check_message
from lab.submission.sources import find_source, registered_sources
from lab.submission.submit import find_unfinished, submit_experiment

_PLACES = BoundedSemaphore(LOCAL_AT_ONCE)


def preview_here(*, spec: ExperimentSpec, by: User, origin: Experiment | None = None) -> Preview:
    """Preview a description in this process; origin: the experiment it is a clone of. Raises NeedsWorker, and what preview_experiment raises."""
    with _here(spec, by):
        return preview_experiment(spec=spec, by=by, origin=origin)


def submit_here(
    *, spec: ExperimentSpec, by: User, form: str = "", origin: Experiment | None = None
) -> Submitted:
    """Submit a description in this process, or return the equal one that is open.

    Raises NeedsWorker, and what submit_once raises.
    """
    same = find_unfinished(spec, by=by)
    if same is not None:
        return Submitted(same, True)
    with _here(spec, by):
        return submit_once(spec=spec, by=by, form=form, origin=origin)


def submit_noted(*, spec: ExperimentSpec, by: User, note: Callable[[Experiment], None]) -> Experiment:
    """Submit a description in this process, and hand its row to `note` in the transaction that writes it.

    Raises NeedsWorker, and what submit_experiment raises.
    """
    with _here(spec, by):
        return submit_experiment(spec=spec, by=by, on_written=note)


@contextmanager
def every_fault_here(description: Mapping[str, Any], by: User) -> Iterator[None]:
    """Report all faults of a description at once, with those that the block finds.

    Plain faults are reported before a worker is asked for its tree. Raises SubmissionRejected, and what the block raises.
    """

    def check(mapping: Mapping[str, Any]) -> None:
        _check_parts_here(mapping, by)

    try:
        with every_fault(description, check):
            yield
    except NeedsWorker:
        check(description)
        raise


def _check_parts_here(description: Mapping[str, Any], by: User) -> None:
    """Check the parts of a description, unless this process is busy. Raises SubmissionRejected."""
    if not _PLACES.acquire(blocking=False):
        return
    faults = Refusals()
    try:
        with faults.collect():
            if isinstance(description.get("git"), str):
                with git_refused():
                    check_address(description["git"], by)
        with faults.collect():
            check_parts(description)
    finally:
        _PLACES.release()
    faults.check()


@contextmanager
def _here(spec: ExperimentSpec, by: User) -> Iterator[None]:
    check_here(spec, by)
    if not _PLACES.acquire(blocking=False):
        raise NeedsWorker(f"{LOCAL_AT_ONCE} previews and submissions are running here already")
    try:
        yield
    finally:
        _PLACES.release()


def check_here(spec: ExperimentSpec, by: User) -> None:
    """Check that the description's tree is at hand, without asking another host.

    Raises SubmissionRejected for an address that no worker would take, NeedsWorker where one has to get the tree.
    """
    if spec.git is not None:
        with git_refused():
            check_address(spec.git, by)
    source = find_source(spec, registered_sources())
    if source.kind == "git":
        raise NeedsWorker(f"the tree {source.name} is fetched by git")
    try:
        at_hand = is_imported(source.name, Path(source.location), settings.HOME / "trees")
    except KernelsError as exc:
        # The worker meets the same error, and reports it where people look for it.
        raise NeedsWorker(str(exc)) from exc
    if not at_hand:
        raise NeedsWorker(f"the tree {source.name} is not imported yet")


def series_faults(wanted: WantedSeries, by: User) -> dict[str, str]:
    """Return the plain faults of a branch or a message, by field, without asking another host."""
    faults: dict[str, str] = {}
    for check in (_check_branch, _check_message):
        try:
            check(wanted, by)
        except FieldRefused as exc:
            faults[exc.field] = str(exc)
    return faults


def _check_branch(wanted: WantedSeries, by: User) -> None:
    branch = wanted.branch
    if branch is None:
        return
    if not branch.name:
        raise FieldRefused("branch", "name the branch")
    for field, location in (("git", branch.git), ("branch_git", branch.location)):
        if location:
            with field_at_fault(field):
                check_address(location, by)
    if not branch.location:
        check_has_branches(branch)


def _check_message(wanted: WantedSeries, by: User) -> None:
    if wanted.message:
        check_message(wanted.message)
