# SPDX-License-Identifier: GPL-2.0-or-later
"""One target: how it is, the drift of its health checks, what it was tuned to, and what operators do to it."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from lab.access import may
from lab.errors import FieldRefused
from lab.models import User
from lab.queries.machine import TargetPage, target_page, target_tuning
from lab.targets.hardware import change_target, named_target
from lab.targets.health import ask_check
from lab.targets.quarantine import release_target
from web.access import needs, person
from web.trendchart import Dot, Jump, TrendPlot, trend_plot
from web.views.missing import found
from web.words import quantity

LARGEST = 20_000


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """State, drift, tuning, boots."""
    return _page(request, found(target_page, name))


@needs("operate")
@require_POST
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Release it, or have it checked."""
    target = found(named_target, name)
    if request.POST.get("what") == "release":
        release_target(target_id=target.pk, by=person(request))
        messages.success(request, f"{target.name} boots again, and its health is checked.")
        return redirect("target", name)
    try:
        ask_check(by=person(request), target_id=target.pk)
    except FieldRefused as exc:
        messages.error(request, f"{exc}.")
    else:
        messages.success(request, f"{target.name} is checked as soon as it boots nothing.")
    return redirect("target", name)


@needs("operate")
@require_POST
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Take over what the form says of how it is reached and tuned."""
    target = found(named_target, name)
    typed = {key: request.POST.get(key, "")[:LARGEST] for key in ("access", "tuning")}
    faults: dict[str, str] = {}
    changes: dict[str, object] = {"group": request.POST.get("group", "").strip()}
    for key, text in typed.items():
        try:
            changes[key] = json.loads(text or "{}")
        except ValueError as exc:
            faults[key] = f"this is not JSON: {exc}"
        else:
            if not isinstance(changes[key], dict):
                faults[key] = "this is no JSON object: write { … }"
    if not faults:
        try:
            change_target(by=person(request), target_id=target.pk, changes=changes)
        except FieldRefused as exc:
            faults[exc.field.split(".")[0]] = str(exc)
    if faults:
        return _page(
            request, found(target_page, name), {**typed, "group": str(changes["group"]), "faults": faults}
        )
    messages.success(request, f"{target.name} is changed; the next boot goes by it.")
    return redirect("target", name)


def _page(request: HttpRequest, page: TargetPage, typed: dict[str, object] | None = None) -> HttpResponse:
    target = page.target
    operator = isinstance(request.user, User) and may(request.user, "operate")
    form = {
        "access": json.dumps(target.access, indent=2),
        "tuning": json.dumps(target.tuning, indent=2),
        "group": target.group,
        "faults": {},
    }
    ctx = {
        "page": page,
        "target": target,
        "plot": _plot(page),
        "checks": [
            (one, "" if one.value is None else quantity(one.value, page.unit)) for one in page.checks[::-1]
        ],
        "tuning": target_tuning(target),
        "form": (typed or form) if operator else None,
    }
    return render(request, "web/target.html", ctx, status=422 if typed else 200)


def _plot(page: TargetPage) -> TrendPlot | None:
    shown = [one for one in page.checks if one.ok and one.value is not None]
    if not shown:
        return None
    dots = [
        Dot(
            *(one.value or 0.0, one.value or 0.0, one.value or 0.0),
            f"{one.at:%d %b}",
            f"{one.at:%Y-%m-%d %H:%M}: {quantity(one.value or 0.0, page.unit)}, {one.kernel}",
        )
        for one in shown
    ]
    # A machine that changed is neither better nor worse: its figures before and after are not to be compared.
    jumps = [
        Jump(index, "inconclusive", False, f"another level from {one.at:%Y-%m-%d %H:%M} on")
        for index, one in enumerate(shown)
        if one.step
    ]
    return trend_plot(dots, jumps, page.levels)
