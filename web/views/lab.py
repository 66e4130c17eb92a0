# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself, for operators: its targets, queues, claims, workers, disk, and what went wrong lately."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from lab.errors import Outdated
from lab.operations.lab_faults import corrupt_artifacts, lab_faults, late_answers
from lab.operations.readiness import readiness
from lab.runs.claim import Kind
from lab.runs.open_claims import ClaimLine, open_claims
from lab.runs.queue_list import queue_lines
from lab.runs.queues import target_queue
from lab.runs.take_back import take_back
from lab.runs.workers import worker_lines
from lab.targets.changes import set_target_enabled
from lab.targets.health_overview import target_healths
from lab.targets.quarantine import release_target
from web.access import needs, person
from web.words import duration

# A build and its artifact take some GiB; below this share of the disk the next ones may fail.
_LOW = 0.05


@needs("operate")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the state of the lab."""
    return render(request, "web/lab.html", _now())


@needs("operate")
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The same without the page around it, which asks for it again and again."""
    return render(request, "web/lab_live.html", _now())


def _now() -> dict[str, object]:
    workers = worker_lines()
    queues, claims = queue_lines(workers), open_claims()
    at = {claim.target: claim for claim in claims if claim.kind == "run"}
    served = {queue.name: queue for queue in queues}
    disk = shutil.disk_usage(settings.HOME)
    return {
        "lacking": [check for check in readiness() if not check.ok],
        "targets": [
            (target_health, at.get(target_health.name), served.get(target_queue(target_health.name)))
            for target_health in target_healths()
        ],
        "queues": queues,
        "forsaken": [one for one in queues if one.forsaken],
        "claims": _by_holder(claims),
        "workers": workers,
        "faults": lab_faults(),
        "late": late_answers(),
        "corrupt": corrupt_artifacts(),
        "home": settings.HOME,
        "disk": disk,
        "used_percent": round(100 * (disk.total - disk.free) / disk.total),
        "low": disk.free < _LOW * disk.total,
    }


def _by_holder(claims: Sequence[ClaimLine]) -> list[tuple[ClaimLine, str]]:
    """Those whose lease ran out first, each with how long its lease is still good, or was over."""
    ordered = sorted(claims, key=lambda one: one.left_s)
    return [(one, duration(abs(one.left_s))) for one in ordered]


@needs("operate")
@require_POST
def change_target(request: HttpRequest, target_id: int) -> HttpResponse:
    """Enable or disable a target, or release it from quarantine."""
    if request.POST.get("released") == "yes":
        target = release_target(target_id=target_id, by=person(request))
        messages.success(request, f"{target.name} is released: it boots again.")
        return redirect("lab")
    enabled = request.POST.get("enabled") == "yes"
    target = set_target_enabled(by=person(request), target_id=target_id, enabled=enabled)
    said = "boots again" if enabled else "is disabled: what boots now ends, nothing new begins"
    messages.success(request, f"{target.name} {said}.")
    return redirect("lab")


@needs("operate")
@require_POST
def return_claim(request: HttpRequest, kind: Kind, work: str) -> HttpResponse:
    """Take a claim back from its worker."""
    lease = request.POST.get("lease", "")
    try:
        held = take_back(by=person(request), kind=kind, work=int(work), lease=lease)
    except Outdated as exc:
        messages.error(request, f"{exc}. Nothing was changed.")
    else:
        messages.success(
            request, f"{kind.capitalize()} {work} is queued again; {held} stops and writes nothing of it."
        )
    return redirect("lab")
