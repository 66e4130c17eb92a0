# SPDX-License-Identifier: GPL-2.0-or-later
"""Exclude an experiment, with all that it needs, from the retention policy."""

from collections.abc import Sequence

from lab.errors import NotAllowed, UnknownRow
from lab.experiments.stored_spec import experiment_row
from lab.models import Experiment, User
from lab.people.permissions import may_change


def keep_for(*, experiment_id: int, by: User, kept: bool, scopes: Sequence[str] | None = None) -> Experiment:
    """Keep an experiment's files and kernels for good, or no longer; for its submitter and operators.

    scopes: of the token it is asked with. Raises UnknownRow, NotAllowed.
    """
    row = experiment_row(experiment_id)
    if not may_change(by, row.submitter, scopes=scopes):
        if scopes is not None and may_change(by, row.submitter):
            raise NotAllowed(
                f"this token may not keep experiment {experiment_id}: its scopes are {', '.join(scopes)}"
            )
        whose = f"{row.submitter}'s" if row.submitter else "nobody's"
        raise NotAllowed(f"experiment {experiment_id} is {whose}: its submitter and operators may keep it")
    return set_kept(row.pk, kept=kept)


def set_kept(experiment_id: int, *, kept: bool) -> Experiment:
    """As keep_for, at this machine's own terminal. Raises UnknownRow."""
    if not Experiment.objects.filter(pk=experiment_id).update(kept=kept):
        raise UnknownRow(f"there is no experiment {experiment_id}")
    return Experiment.objects.get(pk=experiment_id)
