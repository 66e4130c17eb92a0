# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself, for operators: its targets, queues, claims, workers, disk, what went wrong lately; and the audit log."""

import shutil
from collections.abc import Sequence

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from lab.audit.log import KEPT_DAYS, audit_page
from lab.errors import Outdated
from lab.operations.fleet_state import STATES, FleetFilter, FleetState, GroupLine, fleet_state
from lab.operations.lab_faults import corrupt_artifacts, lab_faults, late_answers
from lab.operations.readiness import readiness
from lab.runs.claim import Kind
from lab.runs.hand_back import take_back
from lab.runs.open_claims import boots_on, claims_to_end_first, count_claims
from lab.runs.queue_list import QueueLine, queue_lines
from lab.runs.workers import ReportedWorker, reported_workers
from lab.targets.changes import set_target_enabled
from lab.targets.fleet import read_fleet
from lab.targets.health_overview import last_checks
from lab.targets.quarantine import release_target
from web.access import needs, person
from web.buttons import pressed
from web.listing import (
    back_to_list,
    kept_filters,
    page_number,
    searched,
    storable_word,
    without_empty_filters,
)
from web.words import duration

# A build and its artifact take some GiB; below this share of the disk the next ones may fail.
_LOW = 0.05


# Rows of each list; those that need a person come first. The API has all.
_TARGETS, _OTHERS = 25, 10
# Queues without a worker that have a line each.
_NAMED = 3
_LIKE = {"quarantine": "failed", "ill": "failed", "unserved": "failed", "disabled": "inconclusive"}
_CHIPS = {**_LIKE, "busy": "running", "well": "done"}


@needs("operate")
@require_safe
@without_empty_filters
def show(request: HttpRequest) -> HttpResponse:
    """Show the state of the lab; the address narrows the list of targets."""
    return render(request, "web/lab.html", _now(request))


@needs("operate")
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Return the part of the page that changes; the page polls it."""
    return render(request, "web/lab_live.html", _now(request))


def _asked(query: QueryDict) -> FleetFilter:
    """Read the filters from the address; an unknown state filters nothing."""
    state = query.get("state", "")
    return FleetFilter(searched(query), query.get("group", "")[:100], state if state in STATES else "")


def _now(request: HttpRequest) -> dict[str, object]:
    workers, fleet = reported_workers(), read_fleet()
    queues = queue_lines(workers, fleet)
    disk = shutil.disk_usage(settings.HOME)
    forsaken = [queue for queue in queues if queue.forsaken]
    return {
        "lacking": [check for check in readiness() if not check.ok],
        **_fleet(request, fleet_state(workers, fleet)),
        "queues": _worst(queues),
        "queues_total": len(queues),
        "forsaken": forsaken if len(forsaken) <= _NAMED else [],
        "many_forsaken": forsaken if len(forsaken) > _NAMED else [],
        "claims": [(claim, duration(abs(claim.left_s))) for claim in claims_to_end_first(_OTHERS)],
        "claims_total": count_claims(),
        "workers": _unwell_first(workers)[:_OTHERS],
        "workers_total": len(workers),
        "gone": sum(worker.gone for worker in workers),
        "paused": sum(bool(worker.idle_reason) and not worker.gone for worker in workers),
        "hosts": len({worker.host for worker in workers}),
        "faults": lab_faults(),
        "late": late_answers(),
        "corrupt": corrupt_artifacts(),
        "home": settings.HOME,
        "disk": disk,
        "used_percent": round(100 * (disk.total - disk.free) / disk.total),
        "low": disk.free < _LOW * disk.total,
        "query": request.GET.urlencode(),
        "kept": kept_filters(request),
    }


def _fleet(request: HttpRequest, fleet: FleetState) -> dict[str, object]:
    """Return the targets that the address asks for, a page of them, and all by state and by group."""
    asked = _asked(request.GET)
    page = Paginator([row for row in fleet.targets if row.fits(asked)], _TARGETS).get_page(
        request.GET.get("page")
    )
    shown = [row.health.row.id for row in page]
    booting, checks = boots_on(shown), last_checks(shown)
    return {
        "asked": asked,
        "page": page,
        "targets_total": len(fleet.targets),
        "states": [(state, _CHIPS[state], number) for state, number in fleet.states.items()],
        "groups": [(group, _troubles(group)) for group in fleet.groups] if len(fleet.groups) > 1 else [],
        "targets": [
            (row.health, row.state, booting.get(row.health.row.name), checks.get(row.health.row.id))
            for row in page
        ],
    }


def _troubles(group: GroupLine) -> list[tuple[str, str, int]]:
    return [(state, _CHIPS[state], number) for state, number in group.states.items() if state in _LIKE]


def _worst(queues: Sequence[QueueLine]) -> list[QueueLine]:
    """Return the queues to look at: first those without a worker, then those of builds, then by the longest wait."""
    ordered = sorted(
        queues, key=lambda queue: (not queue.forsaken, queue.name.startswith("target."), -queue.oldest_s)
    )
    return ordered[:_OTHERS]


def _unwell_first(workers: Sequence[ReportedWorker]) -> list[ReportedWorker]:
    return sorted(workers, key=lambda worker: (not worker.gone, not worker.idle_reason, worker.name))


@needs("operate")
@require_POST
def change_target(request: HttpRequest, target_id: int) -> HttpResponse:
    """Enable or disable a target, or release it from quarantine."""
    if request.POST.get("released") == "yes":
        target = release_target(target_id=target_id, by=person(request))
        messages.success(request, f"{target.name} is released: it boots again.")
        return redirect(back_to_list(request, "lab"))
    enabled = pressed(request, "enabled", ("yes", "no")) == "yes"
    target = set_target_enabled(by=person(request), target_id=target_id, enabled=enabled)
    said = "boots again" if enabled else "is disabled: its current boot finishes, no new boot starts"
    messages.success(request, f"{target.name} {said}.")
    return redirect(back_to_list(request, "lab"))


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
            request, f"{kind.capitalize()} {work} is queued again; {held} stops and discards its result."
        )
    return redirect(back_to_list(request, "lab"))


@needs("operate")
@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    """Show the log; with ?refused=1 only refused requests, with ?person=NAME only those of one person."""
    name, refused = storable_word(request.GET, "person", 150), request.GET.get("refused") == "1"
    page = audit_page(page_number(request), name=name, refused=refused)
    return render(
        request, "web/audit.html", {"page": page, "name": name, "refused": refused, "days": KEPT_DAYS}
    )
