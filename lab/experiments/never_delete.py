# SPDX-License-Identifier: GPL-2.0-or-later
"""Exclude an experiment, with all that it needs, from the retention policy."""

from collections.abc import Sequence

from lab.experiments.stored_spec import own_experiment
from lab.models import Experiment, User


def keep_for(*, experiment_id: int, by: User, kept: bool, scopes: Sequence[str] | None = None) -> Experiment:
    """Keep an experiment's files and kernels for good, or no longer; for its submitter and operators.

    scopes: of the request's token. Raises UnknownRow, NotAllowed.
    """
    row = own_experiment(experiment_id, by, scopes, "keep")
    row.kept = kept
    row.save(update_fields=["kept"])
    return row
