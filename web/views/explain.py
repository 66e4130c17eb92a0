# SPDX-License-Identifier: GPL-2.0-or-later
"""One page per verdict: the effect, its safeguards, and the measurements that moved with it."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.comparisons.explanation import (
    Explanation,
    MovedCounter,
    MovedSymbol,
    MovedSymbols,
    explanation,
)
from lab.comparisons.exports.figures import held_back, own_medians
from lab.comparisons.regressions import decisions
from lab.comparisons.triage import Decision, Regression
from lab.statistics.verdict_words import CONTROLS, DIRECTIONS, kind_of
from web.charts import span
from web.views.claims import claim_table
from web.views.comparison import drawn_shift
from web.views.counters import counter_text
from web.views.exact import exact_table
from web.views.profile import share_of
from web.words import change, prose, quantity, settings

_STATES = {
    "new": "not yet triaged",
    "acknowledged": "somebody is working on it",
    "expected": "the change is intended",
    "fixed": "a commit fixes it",
}


@require_safe
def show(request: HttpRequest, experiment_id: int, comparison_id: int) -> HttpResponse:
    """All that bears on one verdict."""
    return explain(request, experiment_id, comparison_id)


def explain(
    request: HttpRequest,
    experiment_id: int,
    comparison_id: int,
    *,
    typed: Decision | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Return the page of one verdict, with a refused decision as it was typed."""
    page = explanation(experiment_id, comparison_id, root=django_settings.HOME)
    cell = page.cell
    axis = span([cell["low"], cell["ratio"], cell["high"]], cell["margin"])
    fine = page.row.experiment.clock == "instructions"
    low, high = axis.ends
    # The interval of a verdict that its q-value held back is wider, as its reason says, and so is that of boots
    # that may stop early; that of exact counts is the floor.
    other = held_back(cell) or page.row.experiment.sequential or (fine and cell["p"] is None)
    ctx = {
        "page": page,
        "key": experiment_id,
        "tab": "comparison",
        "line": drawn_shift(axis, cell, fine=fine),
        "ends": (change(low), change(high)),
        "level": "" if other else "95 %",
        "params": settings(page.row.case.params),
        "better": DIRECTIONS.get(page.row.better, ""),
        "medians": (quantity(cell["base_median"], page.row.unit), quantity(cell["median"], page.row.unit)),
        "medians_note": prose(own_medians(cell, fine=fine)),
        "effect": f"{cell['effect']:+.1f}" if cell["effect"] is not None else "",
        "margin": change(1 + cell["margin"]).lstrip("+"),
        "floor": change(1 + cell["floor"]).lstrip("+") if cell["floor"] else "",
        "moved_symbols": _sections(page),
        "counters": [_counter(row) for row in page.counters.rows],
        "exact": [exact_table(exact) for exact in page.exact],
        "here": f"{reverse('profile', args=(page.row.experiment_id, page.row.case_id))}?kind=exact",
    }
    ctx |= _triage(page, typed, errors or {})
    return render(request, "web/explain.html", ctx, status=status)


def _triage(page: Explanation, typed: Decision | None, errors: dict[str, str]) -> dict[str, object]:
    """Return the decisions on a regression, and the form; also for a former regression with decisions."""
    on = Regression(page.row.case_id, page.row.variant_id, page.row.metric)
    history = decisions(on)
    newest = history[0] if history else None
    is_one = kind_of(page.cell["verdict"]) == "regression" and page.cell["role"] not in CONTROLS
    return {
        "regression": on if is_one or history else None,
        "history": history,
        "triaged": newest.state if newest else "new",
        "seen": newest.id if newest else "",
        "states": _STATES.items(),
        "typed": typed or Decision(newest.state if newest else "acknowledged"),
        "errors": errors,
    }


def _counter(counter: MovedCounter) -> tuple[MovedCounter, dict[str, str], dict[str, str]]:
    return counter, counter_text(counter.base, base=True), counter_text(counter.variant, base=False)


def _sections(page: Explanation) -> list[dict[str, Any]]:
    """Return the kinds of profiles that bear on a verdict of its clock; an exact profile has tables of its own."""
    both = f"{page.base} and {page.row.variant.name}"
    if page.row.experiment.clock == "contention":
        graph, unknown = "The difference of waiting", f"{both} have no profile of waiting."
        note = "Cycles waited per operation for locks and cache lines of other CPUs, on the most CPUs of the case,"
        return [_section(page, "waiting", page.waiting, "Waiting that changed", note, graph, unknown)]
    if page.exact:
        return []
    unprofiled = f"{both} were not both profiled. To get profiles, set profile = true."
    unrecorded = f"the lock waits of {both} were not both recorded."
    locked = "Time waited for locks per boot, and shares of all such waiting,"
    return [
        _section(
            page,
            "cpu",
            page.symbols,
            "Symbols that changed",
            "Shares of busy samples",
            "The differential flame graph",
            unprofiled,
        ),
        _section(
            page,
            "lock",
            page.locks,
            "Lock waits that changed",
            locked,
            "The difference of lock waits",
            unrecorded,
        ),
    ]


def _section(
    page: Explanation, kind: str, moved: MovedSymbols, title: str, note: str, graph: str, unknown: str
) -> dict[str, Any]:
    """Return the symbols of one kind of profile that moved. unknown: what to say where one side has no profile.

    address: of the two sides' profiles; here: of the case's.
    """
    at = reverse("profile", args=(page.row.experiment_id, page.row.case_id))
    asked = {"kind": kind, "variant": page.row.variant.name, "against": page.base}
    return {
        "title": title,
        "note": note,
        "graph": graph,
        "unknown": unknown,
        "address": f"{at}?{urlencode(asked)}",
        "here": f"{at}?{urlencode({'kind': kind})}",
        "rows": [_symbol(row, f"{at}?{urlencode(asked | {'around': row.symbol})}") for row in moved.rows],
        "profiled": moved.profiled,
        "doubt": moved.doubt,
        "claimed": claim_table(moved.claims) if moved.claims else None,
    }


def _symbol(symbol: MovedSymbol, link: str) -> dict[str, Any]:
    """Return one symbol: base and variant, in itself and with what it calls."""
    return {
        "name": symbol.symbol,
        "link": link,
        "shares": [share_of(cell) for cell in (*symbol.own, *symbol.total)],
    }
