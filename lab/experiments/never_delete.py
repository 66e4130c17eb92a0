# SPDX-License-Identifier: GPL-2.0-or-later
"""Exclude an experiment, with all that it needs, from the retention policy."""

from collections.abc import Sequence

from lab.errors import UnknownRow
from lab.experiments.stored_spec import own_experiment
from lab.models import Experiment, User


def keep_for(*, experiment_id: int, by: User, kept: bool, scopes: Sequence[str] | None = None) -> Experiment:
    """Keep an experiment's files and kernels for good, or no longer; for its submitter and operators.

    scopes: of the token it is asked with. Raises UnknownRow, NotAllowed.
    """
    row = own_experiment(experiment_id, by, scopes, "keep")
    return set_kept(row.pk, kept=kept)


def set_kept(experiment_id: int, *, kept: bool) -> Experiment:
    """As keep_for, at this machine's own terminal. Raises UnknownRow."""
    if not Experiment.objects.filter(pk=experiment_id).update(kept=kept):
        raise UnknownRow(f"there is no experiment {experiment_id}")
    return Experiment.objects.get(pk=experiment_id)
