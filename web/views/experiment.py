# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments, and the page of one while and after it runs."""

from typing import Any

from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from lab.comparisons.conclusion.collect import conclusion_data
from lab.experiments.list_page import filter_choices, list_page
from lab.experiments.page import ExperimentBuild, ExperimentPage, experiment_page
from lab.experiments.priority import priorities_for, priority_name
from lab.experiments.shown_description import case_titles
from lab.models.states import OPEN_EXPERIMENT
from lab.notes.pages import notes_on
from lab.people.permissions import may, may_change
from lab.runs.pages import build_page, files_removed_at, run_page
from lab.runs.stalls import current_progress
from lab.statistics.verdict_words import counted_verdicts
from web.listing import address, columns, kept_filters, read_asked, selects
from web.logs import printable
from web.words import conclusion_block, count, duration, last_lines

# The evidence of this many troubles is shown in place; of the others it is one click away.
_SHOWN = 6
_EVIDENCE_LINES = 14


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """A page of the experiments that match the address; an address with empty filters is redirected to one without."""
    query = request.GET.dict()
    if any(not value for value in query.values()):
        return redirect(f"{request.path}{address({k: str(v) for k, v in query.items()})}")
    choices = filter_choices()
    asked, number, errors = read_asked(query, choices)
    page = list_page(asked, number)
    ctx = {
        "rows": []
        if errors
        else [
            (line, counted_verdicts(line.counts.verdicts), priority_name(line.row.priority))
            for line in page.lines
        ],
        "page": page,
        "asked": query,
        "errors": errors,
        "selects": selects(query, choices, errors),
        "columns": columns(query, asked.ordering),
        "narrowed": bool(kept_filters(request)),
        "earlier": address(query, page=str(page.page - 1))
        if page.page > 2
        else address(query)
        if page.page == 2
        else "",
        "later": address(query, page=str(page.page + 1)) if page.page < page.pages else "",
    }
    return render(request, "web/experiments.html", ctx)


@require_safe
def show(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """One experiment: how far it is, its grid, what went wrong, how it was set up."""
    page = experiment_page(experiment_id)
    shown = _live(request, page)
    return render(
        request,
        "web/experiment.html",
        shown
        | {
            "tab": "overview",
            "notes": notes_on(experiment=experiment_id),
            "priorities": _priorities(request, page) if shown["may_cancel"] else (),
            "removed_at": files_removed_at(experiment_id),
            "keep_days": round(django_settings.KEEP_DAYS),
        },
    )


@require_safe
def live(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """The part of that page that changes; it reloads itself until the experiment is over."""
    page = experiment_page(experiment_id)
    return render(request, "web/experiment_live.html", _live(request, page))


@require_safe
def runs(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """All builds and boots; `variant` and `case` in the address narrow the boots."""
    page = experiment_page(experiment_id)
    variant, case = request.GET.get("variant", ""), request.GET.get("case", "")
    titles = case_titles(page.cases)
    chosen = [
        (run, titles[run.case_id])
        for run in page.runs
        if variant in ("", run.variant.name) and case in ("", titles[run.case_id])
    ]
    ctx = {
        "page": page.row,
        "key": experiment_id,
        "tab": "runs",
        "runs": chosen,
        "builds": page.builds,
        "variant": variant,
        "case": case,
        "variants": [grid_row.row.name for grid_row in page.variants if grid_row.row.state != "pruned"],
        "cases": list(titles.values()),
    }
    return render(request, "web/runs.html", ctx)


def _live(request: HttpRequest, page: ExperimentPage) -> dict[str, object]:
    row, titles = page.row, list(case_titles(page.cases).values())
    progress = current_progress(row.pk, operator=may(request.user, "operate"))
    return {
        "page": row,
        "parts": page,
        "priority": priority_name(row.priority),
        "kept": row.kept,
        "may_cancel": may_change(request.user, row.submitter),
        "key": row.pk,
        "progress": progress,
        "took": (row.finished_at - row.started_at).total_seconds()
        if row.started_at and row.finished_at
        else None,
        "builds_failed": sum(build.row.state == "failed" for build in page.builds),
        "boots_failed": sum(run.state == "failed" for run in page.runs),
        "builds_said": f"{progress.builds_over} of {count(progress.builds_total, 'build')}",
        "boots_said": f"{progress.boots_over} of {count(progress.boots_total, 'boot')}",
        # Each cell has its case's title, since a narrow screen shows no heads; pruned variants have no cells.
        "grid": [
            (line, _build_note(line.build), list(zip(titles, line.cells, strict=False)))
            for line in page.variants
        ],
        "cases": titles,
        "troubles": _troubles(page),
        "conclusion": conclusion_block(conclusion_data(row)),
    }


def _priorities(request: HttpRequest, page: ExperimentPage) -> tuple[str, ...]:
    """Return the priorities that its reader may set; none for a finished experiment."""
    if page.row.state not in OPEN_EXPERIMENT:
        return ()
    choices, now = priorities_for(request.user), priority_name(page.row.priority)
    return choices if now in choices else (*choices, now)


def _build_note(build: ExperimentBuild | None) -> str:
    if build is None or build.row.state != "built":
        return ""
    if build.reused:
        return "reused"
    return duration(build.row.wall_seconds) if build.row.wall_seconds else ""


def _troubles(page: ExperimentPage) -> list[dict[str, Any]]:
    """Return failed builds, then failed boots, each with its evidence; boots that failed alike are listed once."""
    troubles: list[dict[str, Any]] = [
        {
            "title": f"{', '.join(build.variants)}: does not build",
            "problem": build.row.problem,
            "build_id": build.row.pk,
            "times": 1,
        }
        for build in page.builds
        if build.row.state == "failed"
    ]
    titles = case_titles(page.cases)
    alike: dict[tuple[str, str, str, str], list[int]] = {}
    for run in page.runs:
        if run.state == "failed":
            how = (run.variant.name, titles[run.case_id], run.outcome, run.problem)
            alike.setdefault(how, []).append(run.pk)
    for (variant, case, outcome, problem), group in alike.items():
        title = f"{variant}, {case}: {outcome.replace('-', ' ') or 'failed'}"
        troubles.append({"title": title, "problem": problem, "run_id": group[0], "times": len(group)})
    for trouble in troubles[:_SHOWN]:
        trouble["evidence"] = _evidence(trouble)
    return troubles


def _evidence(trouble: dict[str, Any]) -> str:
    row = build_page(trouble["build_id"]).row if "build_id" in trouble else run_page(trouble["run_id"]).row
    return last_lines(printable(row.problem_detail), _EVIDENCE_LINES)
