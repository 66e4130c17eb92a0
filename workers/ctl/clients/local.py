# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab in this process: it reads by the REST API, as from a server, and writes into its own tables."""

from __future__ import annotations

from collections.abc import Mapping

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.errors import SpecError
from lab.experiments.never_delete import set_kept
from lab.experiments.priority import set_priority
from lab.experiments.progress import progress
from lab.experiments.spec import spec_from_mapping
from lab.profiles.exports.data import as_data
from lab.submission.part_checks import every_fault
from lab.submission.preview import preview_experiment
from lab.submission.rerun import rerun_experiment
from workers import local
from workers.ctl.clients.base import Json, Say
from workers.ctl.clients.in_process import server_here
from workers.ctl.clients.remote import RemoteClient


class LocalClient(RemoteClient):
    """A Client to the tables of this machine, which opening it brings up to date. It reads what the API answers, without a server."""

    local = True

    def __init__(self) -> None:
        local.prepare()
        super().__init__(server_here())

    @property
    def where(self) -> str:
        """See Client."""
        return "this machine"

    def submit(self, description: Json, say: Say) -> Json:
        """See Client; the unfinished experiment of the same description is gone on with."""
        with every_fault(description):
            return _queued(local.take_up(spec_from_mapping(description), say=say))

    def preview(self, description: Json, say: Say) -> Json:
        """See Client."""
        with every_fault(description):
            spec = spec_from_mapping(description)
            found: Json = as_data(preview_experiment(spec=spec, on_progress=say))
        return found

    def experiment(self, experiment_id: int) -> Json:
        """See Client; no server has a page of it."""
        return super().experiment(experiment_id) | {"page": ""}

    def comparison(self, experiment_id: int, *, link: str = "") -> Json:
        """See Client."""
        return dict(comparison_data(experiment_id, link=link))

    def export(self, experiment_id: int, form: str, wishes: Mapping[str, str]) -> bytes:
        """See Client."""
        body = REPORT_FORMS[form].write(experiment_id, **wishes)
        return body.encode() if isinstance(body, str) else body

    def cancel(self, experiment_id: int) -> None:
        """See Client."""
        local.cancel(experiment_id)

    def keep(self, experiment_id: int, *, kept: bool) -> None:
        """See Client."""
        set_kept(experiment_id, kept=kept)

    def set_priority(self, experiment_id: int, priority: str) -> None:
        """See Client."""
        set_priority(experiment_id=experiment_id, priority=priority, by=None)

    def rerun(self, experiment_id: int) -> Json:
        """See Client."""
        return _queued(rerun_experiment(experiment_id=experiment_id, by=None).experiment.pk)

    def write_note(self, experiment_id: int, text: str) -> Json:
        """See Client."""
        raise SpecError("a note has an author: write it on a server, or in the pages")


def _queued(experiment_id: int) -> Json:
    return {"id": experiment_id, "state": progress(experiment_id).state, "page": ""}
