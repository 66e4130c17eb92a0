# SPDX-License-Identifier: GPL-2.0-or-later
"""Cancel an experiment for somebody, or queue its description again."""

from collections.abc import Sequence

from lab.errors import Outdated
from lab.experiments.page import get_experiment
from lab.experiments.stored_spec import own_experiment, stored_spec
from lab.models import Experiment, Fetch, User
from lab.models.states import OPEN_EXPERIMENT
from lab.runs.settle import cancel_experiment
from lab.submission.duplicates import Submitted
from lab.submission.fetches.requests import FetchRequest, request_fetch
from lab.submission.fetches.series import WantedSeries
from lab.submission.submit import find_unfinished, submit_experiment
from lab.submission.web_process import submit_here


def cancel_for(*, experiment_id: int, by: User, scopes: Sequence[str] | None = None) -> None:
    """Cancel what is still open of an experiment, for its submitter or an operator.

    scopes: of the request's token. Raises UnknownRow, NotAllowed, Outdated where it is over.
    """
    row = own_experiment(experiment_id, by, scopes, "cancel")
    if not cancel_experiment(experiment_id, by=by):
        row.refresh_from_db()
        raise Outdated(f"experiment {experiment_id} is {row.state} already: there is nothing to cancel")


def rerun_experiment(*, experiment_id: int, by: User | None) -> Submitted:
    """Queue the same description again, as a new experiment; kernels that are built are not built again.

    by: None at this machine's own terminal, where a tree is fetched in this process if need be. Raises UnknownRow,
    Outdated while it is unfinished, NeedsWorker where only `hand_over_rerun` can do it, and what submit_experiment raises.
    """
    row = _over(experiment_id)
    spec = stored_spec(row)
    if by is not None:
        return submit_here(spec=spec, by=by, origin=row)
    unfinished = find_unfinished(spec)
    if unfinished is not None:
        return Submitted(unfinished, True)
    return Submitted(submit_experiment(spec=spec, origin=row), False)


def hand_over_rerun(*, experiment_id: int, by: User) -> Fetch:
    """Have a worker queue the same description again. Raises UnknownRow, Outdated, TooManyFetches."""
    row = _over(experiment_id)
    wanted = WantedSeries(stored_spec(row).model_dump(mode="json"))
    return request_fetch(by=by, asked=FetchRequest(Fetch.Kind.SUBMIT, wanted, origin=row))


def _over(experiment_id: int) -> Experiment:
    row = get_experiment(experiment_id)
    if row.state in OPEN_EXPERIMENT:
        raise Outdated(
            f"experiment {experiment_id} is {row.state}: wait until it finishes, or cancel it first"
        )
    return row
