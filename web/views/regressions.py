# SPDX-License-Identifier: GPL-2.0-or-later
"""Regressions of all experiments, and what people decide on them."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.http import require_POST, require_safe

from lab.comparisons.regressions import (
    STATES,
    RegressionFilter,
    comparison_of,
    regression_choices,
    regression_page,
)
from lab.comparisons.triage import Decision, Regression, decide
from lab.errors import FieldRefused, Outdated
from web.access import needs, person
from web.listing import (
    kept_filters,
    page_number,
    row_number,
    searched,
    storable_word,
    without_empty_filters,
)
from web.views.explain import explain


def read_filter(query: QueryDict) -> RegressionFilter:
    """Read the filters from the address; an unknown state becomes "open", other unknown values match nothing."""
    state = query.get("state", "")
    return RegressionFilter(
        state=state if state in STATES else "open",
        tree=storable_word(query, "tree", 100),
        workload=storable_word(query, "workload", 100),
        target=storable_word(query, "target", 100),
        search=searched(query),
        primary=query.get("metrics") != "all",
    )


@require_safe
@without_empty_filters
def listing(request: HttpRequest) -> HttpResponse:
    """Show all regressions that match the filters of the address."""
    chosen = read_filter(request.GET)
    ctx = {
        "page": regression_page(chosen, page_number(request)),
        "chosen": chosen,
        "choices": regression_choices(),
        "query": kept_filters(request),
    }
    return render(request, "web/regressions.html", ctx)


@needs("submit")
@require_POST
def triage(request: HttpRequest) -> HttpResponse:
    """Decide on a regression; a decision made from an old page comes back beside the newer one."""
    on = _named(request.POST)
    typed = Decision(*(request.POST.get(key, "") for key in ("state", "reason", "fixed_by")))
    seen = row_number(request.POST.get("seen", ""))
    try:
        decide(by=person(request), on=on, decision=typed, seen=seen)
    except FieldRefused as exc:
        return _again(request, on, typed, {exc.field: str(exc)}, status=422)
    except Outdated as exc:
        return _again(request, on, typed, {"seen": f"{capfirst(str(exc))}."}, status=409)
    messages.success(request, f"{on.metric} is {typed.state}.")
    experiment_id, comparison_id = comparison_of(on)
    return redirect(reverse("explain", args=[experiment_id, comparison_id]))


def _named(query: QueryDict) -> Regression:
    case, variant = (row_number(query.get(key, "")) for key in ("case", "variant"))
    if case is None or variant is None:
        raise Http404("this is not a regression")
    return Regression(case, variant, storable_word(query, "metric"))


def _again(
    request: HttpRequest, on: Regression, typed: Decision, errors: dict[str, str], *, status: int
) -> HttpResponse:
    experiment_id, comparison_id = comparison_of(on)
    return explain(request, experiment_id, comparison_id, typed=typed, errors=errors, status=status)
