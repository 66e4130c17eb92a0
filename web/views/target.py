# SPDX-License-Identifier: GPL-2.0-or-later
"""One target: its state, the drift of its health checks, its tuning, and the actions of operators on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.http import require_POST, require_safe

from lab.errors import FieldRefused
from lab.models import Target, User
from lab.people.permissions import may
from lab.targets.changes import has_past, named_target, remove_target, set_target_enabled
from lab.targets.health_checks import ask_check
from lab.targets.page import TargetPage, target_page, target_tuning
from lab.targets.quarantine import release_target
from web.access import needs, person
from web.buttons import pressed
from web.trendchart import Dot, Jump, trend_plot
from web.words import quantity


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """State, drift, tuning, boots."""
    return _page(request, target_page(name))


@needs("operate")
@require_POST
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Release it, have it checked, enable, disable or remove it."""
    target, by = named_target(name), person(request)
    what = pressed(request, "what", ("release", "check", "enable", "disable", "remove"))
    try:
        if what == "remove":
            messages.success(request, f"{remove_target(by=by, target_id=target.pk)} is removed.")
            return redirect("lab")
        messages.success(request, _done(what, target, by))
    except FieldRefused as exc:
        messages.error(request, f"{capfirst(str(exc))}.")
    return redirect("target", name)


def _done(what: str, target: Target, by: User) -> str:
    """Carry out a button's action, and return the message about it. Raises FieldRefused."""
    if what == "release":
        release_target(target_id=target.pk, by=by)
        return f"{target.name} boots again, and its health is checked."
    if what in ("enable", "disable"):
        set_target_enabled(by=by, target_id=target.pk, enabled=what == "enable")
        return f"{target.name} " + (
            "boots again."
            if what == "enable"
            else "is disabled: its current boot finishes, no new boot starts."
        )
    ask_check(by=by, target_id=target.pk)
    return f"{target.name} is checked as soon as it is idle."


def _page(request: HttpRequest, page: TargetPage) -> HttpResponse:
    target = page.target
    operator = may(request.user, "operate")
    ctx = {
        "page": page,
        "target": target,
        "plot": _plot(page),
        "checks": page.checks[::-1],
        "tuning": target_tuning(target),
        "reached": list(_leaves(target.access)) if operator else [],
        "has_past": operator and has_past(target.pk),
    }
    return render(request, "web/target.html", ctx)


def _leaves(fields: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the access, a line for each field that is set: (power.address, https://bmc-1)."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{place}{name}.")
        elif value not in (None, "", []):
            text = {True: "true", False: "false"}[value] if isinstance(value, bool) else value
            yield f"{place}{name}", ", ".join(map(str, text)) if isinstance(text, list) else str(text)


def _plot(page: TargetPage) -> dict[str, Any] | None:
    shown = [check for check in page.checks if check.ok and check.value is not None]
    if not shown:
        return None
    dots = [
        Dot(
            *(check.value or 0.0, check.value or 0.0, check.value or 0.0),
            f"{check.at:%d %b}",
            f"{check.at:%Y-%m-%d %H:%M}: {quantity(check.value or 0.0, page.unit)}, {check.environment.get('release', '')}",
        )
        for check in shown
    ]
    # A machine that changed is neither better nor worse: its figures before and after are not to be compared.
    jumps = [
        Jump(index, "inconclusive", False, f"another level from {check.at:%Y-%m-%d %H:%M} on")
        for index, check in enumerate(shown)
        if check in page.steps
    ]
    return trend_plot(dots, jumps, page.levels)
