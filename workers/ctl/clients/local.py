# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab in this process, over its own tables: read by its REST API, whose views run here; its work is done here too."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.urls import resolve

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.errors import SpecError, SubmissionRejected
from lab.experiments.page import get_experiment
from lab.experiments.progress import progress
from lab.experiments.spec import spec_from_mapping
from lab.models import User
from lab.profiles.exports.data import as_data
from lab.runs.settle import cancel_experiment
from lab.submission.part_checks import every_fault
from lab.submission.preview import preview_experiment
from lab.submission.rerun import rerun_experiment
from workers import local
from workers.ctl.clients.base import Json, Say
from workers.ctl.clients.client import Client
from workers.ctl.clients.http import Server


class LocalClient(Client):
    """The lab of this machine for a user of its terminal, who may do everything. Opening it brings its tables up to date."""

    local = True

    def __init__(self) -> None:
        local.prepare()
        super().__init__(_server_here())

    @property
    def where(self) -> str:
        """Return the name of this lab in messages."""
        return "this machine"

    def submit(self, description: Json, say: Say) -> Json:
        """See Client; an unfinished experiment of the same description is continued."""
        with every_fault(description):
            return _queued(local.take_up(spec_from_mapping(description), say=say))

    def preview(self, description: Json, say: Say) -> Json:
        """See Client."""
        with every_fault(description):
            spec = spec_from_mapping(description)
            preview: Json = as_data(preview_experiment(spec=spec, on_progress=say))
        return preview

    def experiment(self, experiment_id: int) -> Json:
        """See Client; no server has a page of it."""
        return super().experiment(experiment_id) | {"page": ""}

    def comparison(self, experiment_id: int, *, link: str = "") -> Json:
        """See Client."""
        return dict(comparison_data(experiment_id, link=link))

    def export(self, experiment_id: int, form: str, fields: Mapping[str, str]) -> bytes:
        """See Client."""
        body = REPORT_FORMS[form].write(experiment_id, **fields)
        return body.encode() if isinstance(body, str) else body

    def cancel(self, experiment_id: int) -> None:
        """See Client. Raises SubmissionRejected when it is over."""
        state = get_experiment(experiment_id).state
        if not cancel_experiment(experiment_id):
            raise SubmissionRejected(f"experiment {experiment_id} is {state}: there is nothing to cancel")

    def rerun(self, experiment_id: int) -> Json:
        """See Client."""
        return _queued(rerun_experiment(experiment_id=experiment_id, by=None).experiment.pk)

    def write_note(self, experiment_id: int, text: str) -> Json:
        """See Client."""
        raise SpecError(
            "with --local a note has no author: give --server, or write it on the experiment's page"
        )


def api_here() -> Client:
    """Return a client of the API in this process, which leaves the tables as they are."""
    return Client(_server_here())


def _server_here() -> Server:
    """Return this machine's lab as a server: each request goes to its view in this process, as an operator."""
    return Server(settings.PUBLIC_URL, transport=httpx.WSGITransport(app=_answer))


def _answer(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer one request, without the network's guards: sign-in, https and the audit log."""
    request: Any = WSGIRequest(environ)
    request.user = request._force_auth_user = User(username="local", role=User.Role.OPERATOR)
    # Look up the API's addresses alone: importing all pages, too, would double the time.
    match = resolve(request.path_info.removeprefix("/api/v1"), "web.api.urls")
    response: Any = match.func(request, *match.args, **match.kwargs)
    if not getattr(response, "is_rendered", True):
        response.render()
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return [response.content]


def _queued(experiment_id: int) -> Json:
    return {"id": experiment_id, "state": progress(experiment_id).state, "page": ""}
