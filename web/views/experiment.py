# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments, and the page of one while and after it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from lab.comparisons.conclusion.collect import conclusion_data
from lab.experiments.list_page import filter_choices, list_page
from lab.experiments.page import BuildLine, ExperimentPage, RunLine, experiment_page, get_experiment
from lab.experiments.priority import priorities_for
from lab.notes.pages import notes_on
from lab.people.permissions import may, may_change
from lab.runs.pages import build_page, files_removed_at, run_page
from lab.runs.stalls import current_progress
from lab.statistics.verdict_words import counted_verdicts
from web.conclusion import conclusion_block
from web.listing import address, columns, kept_filters, read_asked, selects
from web.logs import printable
from web.words import count, duration, last_lines

# The evidence of this many troubles is shown in place; of the others it is one click away.
_SHOWN = 6
_EVIDENCE_LINES = 14


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong: one line, its evidence, and where the whole of it is."""

    title: str
    problem: str
    evidence: str
    build_id: int | None
    run_id: int | None
    times: int


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """The experiments that fit the address, a page of them; an address with empty filters becomes one without."""
    given = request.GET.dict()
    if any(not value for value in given.values()):
        return redirect(f"{request.path}{address({k: str(v) for k, v in given.items()})}")
    choices = filter_choices()
    asked, number, errors = read_asked(given, choices)
    page = list_page(asked, number)
    filters = kept_filters(request.GET.urlencode())
    ctx = {
        "rows": [] if errors else [(line, counted_verdicts(line.verdicts)) for line in page.lines],
        "page": page,
        "asked": given,
        "errors": errors,
        "selects": selects(given, choices, errors),
        "columns": columns(given, asked.ordering),
        "narrowed": bool(filters),
        "earlier": address(given, page=str(page.page - 1))
        if page.page > 2
        else address(given)
        if page.page == 2
        else "",
        "later": address(given, page=str(page.page + 1)) if page.page < page.pages else "",
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
    """The part of that page that changes; it asks for itself again until the experiment is over."""
    page = experiment_page(experiment_id)
    return render(request, "web/experiment_live.html", _live(request, page))


@require_safe
def runs(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """All builds and boots; `variant` and `case` in the address narrow the boots."""
    page = experiment_page(experiment_id)
    variant, case = request.GET.get("variant", ""), request.GET.get("case", "")
    chosen = [
        run for run in page.runs if (not variant or run.variant == variant) and (not case or run.case == case)
    ]
    ctx = {
        "page": page,
        "key": experiment_id,
        "tab": "runs",
        "runs": chosen,
        "builds": page.builds,
        "variant": variant,
        "case": case,
        "variants": [row.name for row in page.variants if row.state != "pruned"],
        "cases": list(dict.fromkeys(one.title for one in page.cases)),
    }
    return render(request, "web/runs.html", ctx)


def _live(request: HttpRequest, page: ExperimentPage) -> dict[str, object]:
    progress = current_progress(page.id, operator=may(request.user, "operate"))
    row = get_experiment(page.id)
    return {
        "page": page,
        "kept": row.kept,
        "may_cancel": may_change(request.user, row.submitter),
        "key": page.id,
        "progress": progress,
        "took": (page.finished_at - page.started_at).total_seconds()
        if page.started_at and page.finished_at
        else None,
        "builds_failed": sum(build.state == "failed" for build in page.builds),
        "boots_failed": sum(run.state == "failed" for run in page.runs),
        "builds_said": f"{progress.builds_over} of {count(progress.builds_total, 'build')}",
        "boots_said": f"{progress.boots_over} of {count(progress.boots_total, 'boot')}",
        "grid": [(row, _build_said(row.build)) for row in page.variants],
        "troubles": _troubles(page),
        "conclusion": conclusion_block(conclusion_data(row)),
    }


def _priorities(request: HttpRequest, page: ExperimentPage) -> tuple[str, ...]:
    """Return the priorities that its reader may set; none for a finished experiment."""
    if page.progress.finished:
        return ()
    given = priorities_for(request.user)
    return given if page.priority in given else (*given, page.priority)


def _build_said(build: BuildLine | None) -> str:
    if build is None or build.state != "built":
        return ""
    if build.reused:
        return "reused"
    return duration(build.wall_seconds) if build.wall_seconds else ""


def _troubles(page: ExperimentPage) -> list[Trouble]:
    """Failed builds, then failed boots; boots that failed alike are listed once."""
    told = [
        Trouble(f"{', '.join(build.variants)}: does not build", build.problem, "", build.id, None, 1)
        for build in page.builds
        if build.state == "failed"
    ]
    alike: dict[tuple[str, str, str, str], list[RunLine]] = {}
    for run in page.runs:
        if run.state == "failed":
            alike.setdefault((run.variant, run.case, run.outcome, run.problem), []).append(run)
    for (variant, case, outcome, problem), group in alike.items():
        title = f"{variant}, {case}: {outcome.replace('-', ' ') or 'failed'}"
        told.append(Trouble(title, problem, "", None, group[0].id, len(group)))
    return [_with_evidence(one) if place < _SHOWN else one for place, one in enumerate(told)]


def _with_evidence(trouble: Trouble) -> Trouble:
    detail = ""
    if trouble.build_id is not None:
        detail = build_page(trouble.build_id).row.problem_detail
    elif trouble.run_id is not None:
        detail = run_page(trouble.run_id).row.problem_detail
    return replace(trouble, evidence=last_lines(printable(detail), _EVIDENCE_LINES))
