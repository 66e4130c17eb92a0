# SPDX-License-Identifier: GPL-2.0-or-later
"""The first page: the lab at a glance."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from lab.experiments.progress import ExperimentProgress
from lab.operations.front_page import front_page
from lab.statistics.verdict_words import counted_verdicts
from web.views.experiment import starts_said
from web.views.regressions import row_of
from web.words import change, duration


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show running work, regressions, targets with faults and new experiments."""
    page = front_page()
    ctx = {
        "running": [_running(one) for one in page.running],
        "waiting": page.waiting,
        "rows": [row_of(line) for line in page.regressions],
        "more_regressions": page.more_regressions,
        "ill": [target for target in page.targets if target.complaints],
        "well": [target for target in page.targets if not target.complaints],
        "alerts": [(alert, change(alert.ratio)) for alert in page.alerts],
        "newest": [(line, counted_verdicts(line.tally.verdicts)) for line in page.newest],
    }
    return render(request, "web/front.html", ctx)


def _running(one: ExperimentProgress) -> tuple[ExperimentProgress, str, str, str]:
    """Return an open experiment with its time left, its builds under way, and when its turn comes, in words."""
    left = duration(one.eta_s) if one.eta_s is not None else ""
    builds = [f"building {now.label} ({now.percent} %)" for now in one.now if now.percent is not None]
    return one, left, ", ".join(builds), starts_said(one)
