# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of all trends: grouped by cause, searched and sorted by the address, decided about and bisected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from lab.bisections.from_trend import bisect_step, why_not_searched
from lab.bisections.pages import BisectionLine, bisections_of_each
from lab.errors import FieldRefused
from lab.models import StepDecision
from lab.trends.page import TrendLine
from lab.trends.step_decisions import decide_steps, decisions_of
from lab.trends.step_groups import MetricStep, StepGroup, group_steps
from lab.trends.summary import TrendSummary
from lab.trends.told_apart import told_apart
from web.access import needs, person
from web.listing import back_to_list, searched, storable_word

STATES = ("open", "accepted", "ignored", "all")
SORTS = {"size": "largest", "new": "newest", "name": "name"}
# Causes on a page.
_LISTED = 25
# Key in a session: the last decision, until the list has shown it with a way to undo it.
DECIDED = "decided"
# Likewise: what was typed and chosen for a decision that was refused.
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TrendsAsked:
    """The filters and the order of the page of trends, as its address has them."""

    search: str = ""
    tree: str = ""
    target: str = ""
    state: str = "open"
    sort: str = "size"

    def fits(self, line: TrendLine, *more: str) -> bool:
        """Return whether a trend fits tree, target and every searched word; more: further texts to search."""
        texts = (line.metric, line.workload, line.preset, line.tree, line.branch, line.target, *more)
        whole = " ".join(texts).casefold()
        named = self.tree in ("", line.tree) and self.target in ("", line.target)
        return named and all(word in whole for word in self.search.casefold().split())


def read_asked(query: QueryDict) -> TrendsAsked:
    """Read the filters from the address; an unknown state or order becomes the first of its list."""
    state, sort = query.get("state", ""), query.get("sort", "")
    return TrendsAsked(
        search=searched(query),
        tree=query.get("tree", "")[:100],
        target=query.get("target", "")[:100],
        state=state if state in STATES else "open",
        sort=sort if sort in SORTS else "size",
    )


def step_rows(trends: Sequence[TrendSummary], asked: TrendsAsked, number: str | None) -> dict[str, Any]:
    """Return one page of the causes that match, in the requested order: its rows, and the page itself."""
    newest = {trend.line.key: trend.experiment for trend in trends}
    groups = [group for group in group_steps(trends) if any(_fits(metric, asked) for metric in group.metrics)]
    decisions = decisions_of(groups)
    groups = [group for group in groups if asked.state in ("all", _state(decisions.get(group.pick)))]
    if asked.sort == "new":
        groups.sort(key=lambda group: -max(newest[metric.line.key] for metric in group.metrics))
    elif asked.sort == "name":
        groups.sort(key=lambda group: (group.lead.line.title, group.lead.line.target))
    page = Paginator(groups, _LISTED).get_page(number)
    searched = bisections_of_each([(group.lead.line, group.lead.step) for group in page])
    apart = told_apart(trend.line for trend in trends)
    rows = [
        _row(group, decisions.get(group.pick), bisections) | {"apart": apart[group.lead.line.key]}
        for group, bisections in zip(page, searched, strict=True)
    ]
    return {"rows": rows, "page": page}


def _fits(metric: MetricStep, asked: TrendsAsked) -> bool:
    return asked.fits(metric.line, metric.step.bad.subject, metric.step.bad.commit, metric.step.bad.author)


def _state(decision: StepDecision | None) -> str:
    return decision.state if decision else StepDecision.State.OPEN


def _row(
    group: StepGroup, decision: StepDecision | None, bisections: Sequence[BisectionLine]
) -> dict[str, Any]:
    """Return one cause. why_not: why no bisection can be started here, "" if one can."""
    return {
        "group": group,
        "others": group.metrics[1:],
        "decision": decision if decision and decision.state != StepDecision.State.OPEN else None,
        "bisections": bisections,
        "why_not": why_not_searched(group.lead.step),
    }


@needs("submit")
@require_POST
def decide(request: HttpRequest) -> HttpResponse:
    """Decide about the chosen steps, or bisect one, which accepts it; then show the list again."""
    back = back_to_list(request, "trends")
    try:
        if pick := storable_word(request.POST, "bisect"):
            _bisect(request, pick)
            return redirect(back)
        state = request.POST.get("state", "")
        amount = decide_steps(
            by=person(request),
            picks=request.POST.getlist("step"),
            state=state,
            note=request.POST.get("note", ""),
            bug=request.POST.get("bug", ""),
        )
    except FieldRefused as exc:
        messages.error(request, f"Nothing was changed: {exc}.")
        typed = {name: request.POST.get(name, "") for name in ("note", "bug")}
        request.session[REFUSED] = typed | {"picks": request.POST.getlist("step")}
        return redirect(back)
    steps = "1 step is" if amount == 1 else f"{amount} steps are"
    if state == StepDecision.State.OPEN:
        messages.success(request, f"{steps} open again.")
    else:
        request.session[DECIDED] = {"said": f"{steps} {state}.", "picks": request.POST.getlist("step")}
    return redirect(back)


def _bisect(request: HttpRequest, pick: str) -> None:
    trends, _, commit = pick.partition(":")
    row = bisect_step(by=person(request), trend=trends.partition("-")[0], commit=commit)
    note = f"bisection {row.pk}"
    decide_steps(by=person(request), picks=[pick], state=StepDecision.State.ACCEPTED, note=note)
    said = f"Bisection {row.pk} searches {len(row.line) - 1} commits; the step is accepted."
    request.session[DECIDED] = {"said": said, "bisection": row.pk}
