# SPDX-License-Identifier: GPL-2.0-or-later
"""Blame the submission, one of its fields, or the lab for errors of the `kernels` libraries."""

from collections.abc import Iterator
from contextlib import contextmanager

from kernels.errors import KernelsError
from lab.errors import FieldRefused, LabUnable, SubmissionRejected


@contextmanager
def submission_at_fault(before: str = "", place: str = "") -> Iterator[None]:
    """Refuse the submission for its own faults; those of the lab pass through. before: the beginning of the message.

    place: the field of the description that is at fault.
    """
    try:
        yield
    except KernelsError as exc:
        if exc.blame != "submission":
            raise
        raise SubmissionRejected(f"{before}{exc}", exc.detail, place) from exc


@contextmanager
def field_at_fault(field: str) -> Iterator[None]:
    """Refuse one field of a form for faults that a person can mend or retry; blame the lab for everything else."""
    try:
        yield
    except SubmissionRejected as exc:
        raise FieldRefused(field, str(exc)) from exc
    except KernelsError as exc:
        if exc.blame == "submission" or exc.retry:
            raise FieldRefused(field, str(exc)) from exc
        raise LabUnable(f"the lab cannot accept this now: {exc}", exc.detail) from exc


@contextmanager
def lab_at_fault() -> Iterator[None]:
    """Blame the lab, not the description, for faults of git and of the machine here."""
    try:
        yield
    except KernelsError as exc:
        raise LabUnable(f"the lab cannot accept this now: {exc}", exc.detail) from exc
