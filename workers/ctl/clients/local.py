# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab in this process, over its own tables: the same answers as a server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.comparisons.exit_code import exit_code
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.errors import FileGone, SpecError, UnknownRow
from lab.experiments.counts import count_experiments
from lab.experiments.list_page import ExperimentFilter, list_page
from lab.experiments.never_delete import set_kept
from lab.experiments.page import experiment_page, get_experiment
from lab.experiments.priority import set_priority
from lab.experiments.progress import progress
from lab.experiments.shown_description import whole_description
from lab.experiments.spec import spec_from_mapping
from lab.models import Note
from lab.profiles.difference import SeenFrom
from lab.profiles.exports.data import as_data, profile_data
from lab.profiles.exports.files import callers_text, profile_file
from lab.runs.pages import build_page, run_page
from lab.runs.stalls import current_progress
from lab.storage.files import KeptFile
from lab.submission.choices import submission_choices
from lab.submission.part_checks import every_fault
from lab.submission.preview import preview_experiment
from lab.submission.rerun import rerun_experiment
from lab.targets.target_list import target_list
from workers import local
from workers.ctl.clients.base import Json, Kind, LogChunk, Say, Written
from workers.ctl.clients.in_process import api_here
from workers.ctl.clients.remote import RemoteClient

# Of a log, at once.
MOST_BYTES = 1 << 20


class LocalClient:
    """A Client to the tables of this machine. Opening it brings them up to date."""

    where = "this machine"
    local = True

    def __init__(self) -> None:
        local.prepare()

    def document(self, path: str, params: Mapping[str, str] = MappingProxyType({})) -> Json:
        """See Client."""
        return self._api.document(path, params)

    def rows(
        self, path: str, params: Mapping[str, str] = MappingProxyType({}), limit: int | None = None
    ) -> list[Json]:
        """See Client."""
        return self._api.rows(path, params, limit)

    @cached_property
    def _api(self) -> RemoteClient:
        return api_here()

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

    def experiments(self, filters: Mapping[str, str], limit: int) -> list[Json]:
        """See Client."""
        wanted = {key: value for key, value in filters.items() if value}
        asked = replace(ExperimentFilter(), **wanted)  # type: ignore[arg-type]  # filters are all text
        return [as_data(line) for line in list_page(asked, size=limit).lines]

    def experiment(self, experiment_id: int) -> Json:
        """See Client."""
        page = experiment_page(experiment_id)
        found: Json = as_data(page)
        found["progress"] = as_data(current_progress(experiment_id))
        found["parts"] = [
            {**part, "build": part["build"] and part["build"]["id"]} for part in found.pop("variants")
        ]
        del found["builds"], found["runs"], found["spec"]
        found["description"] = as_data(whole_description(experiment_id))
        found["page"] = ""
        counts = count_experiments([experiment_id])[experiment_id]
        found["verdicts"] = counts.verdicts
        found["exit_code"] = exit_code(page.state, counts) if page.progress.finished else None
        return found

    def builds(self, experiment_id: int) -> list[Json]:
        """See Client."""
        return [as_data(build) for build in experiment_page(experiment_id).builds]

    def runs(self, experiment_id: int) -> list[Json]:
        """See Client."""
        runs = experiment_page(experiment_id).runs
        return [{**as_data(run), "variant_name": run.variant, "workload": run.case} for run in runs]

    def comparison(self, experiment_id: int, *, link: str = "") -> Json:
        """See Client."""
        return dict(comparison_data(experiment_id, link=link))

    def export(self, experiment_id: int, form: str, wishes: Mapping[str, str]) -> bytes:
        """See Client."""
        body = REPORT_FORMS[form].write(experiment_id, **wishes)
        return body.encode() if isinstance(body, str) else body

    def profile(self, experiment_id: int, symbols: Sequence[str], kind: str) -> list[Json]:
        """See Client."""
        return profile_data(experiment_id, symbols=symbols, kind=kind)

    def callers(self, experiment_id: int, symbols: Sequence[str], kind: str) -> str:
        """See Client."""
        return callers_text(experiment_id, symbols=symbols, kind=kind)

    def profile_file(self, experiment_id: int, form: str, wishes: Mapping[str, str]) -> bytes:
        """See Client."""
        given = dict(wishes)
        case, callers, callees = (given.pop(name, "") for name in ("case", "callers", "callees"))
        return profile_file(
            experiment_id, form, case=int(case or 0), seen=SeenFrom(callers, callees), **given
        )

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

    def names(self, kind: Kind) -> list[Json]:
        """See Client."""
        if kind == "targets":
            return [as_data(target) for target in target_list()]
        choices = submission_choices()
        table = {"trees": choices.trees, "workloads": choices.workloads, "patches": choices.switches}
        return [as_data(choice) for choice in table[kind]]

    def log(self, kind: Written, number: int, offset: int) -> LogChunk:
        """See Client."""
        if kind == "builds":
            build = build_page(number)
            file, over = build.log, build.finished_at is not None
        else:
            run = run_page(number)
            file, over = run.console, run.finished_at is not None
        return read_part(file, offset, complete=over)

    def notes(self, experiment_id: int) -> list[Json]:
        """See Client."""
        get_experiment(experiment_id)
        return [
            {"author": note.author.username if note.author else "", "created_at": as_data(note.created_at)}
            | {"text": note.text}
            for note in Note.objects.filter(experiment=experiment_id).select_related("author").order_by("pk")
        ]

    def write_note(self, experiment_id: int, text: str) -> Json:
        """See Client."""
        raise SpecError("a note has an author: write it on a server, or in the pages")


def read_part(file: KeptFile | None, offset: int, *, complete: bool) -> LogChunk:
    """A file from a byte on. Raises UnknownRow where it is gone."""
    if file is None:
        raise UnknownRow("no log was kept of it")
    try:
        piece = file.piece(offset, MOST_BYTES)
    except FileGone as exc:
        raise UnknownRow(f"its log is gone ({exc}): {file}") from exc
    end = piece.start + len(piece.data)
    return LogChunk(piece.data.decode(errors="replace"), end, complete and end >= piece.size)


def _queued(experiment_id: int) -> Json:
    return {"id": experiment_id, "state": progress(experiment_id).state, "page": ""}
