# SPDX-License-Identifier: GPL-2.0-or-later
"""Write and read the audit log, delete old entries, and count what workers refused."""

import logging
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from django.core.paginator import Page
from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from lab.models import AuditEntry, User
from lab.models.bounded import leaf

PER_PAGE = 100

KEPT_DAYS: Final = 365
# A row is some 300 bytes.
MOST_ROWS: Final = 500_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the audit log keeps it. rule: why it was refused, "" if it was carried out."""

    person: User | None
    address: str
    method: str
    route: str
    path: str
    status: int
    rule: str


def note_request(request: Request) -> None:
    """Add a request to the log; equal requests within one minute share a row that counts them.

    A refused request of a stranger is stored without its path: a client that requests many paths fills one row.
    """
    known = request.person is not None
    row = {
        "at": timezone.now().replace(second=0, microsecond=0),
        "person": request.person,
        "name": request.person.username if request.person else "",
        "address": request.address[:45],
        "method": request.method[:10],
        "route": request.route[:60],
        "path": request.path[:200] if known or not request.rule else "",
        "status": request.status,
        "rule": request.rule[:40],
    }
    if not AuditEntry.objects.filter(**row).update(count=F("count") + 1):
        AuditEntry.objects.create(**row)


def forget_audit() -> int:
    """Delete what is older than KEPT_DAYS, and the oldest beyond MOST_ROWS; returns how many rows."""
    old, _ = AuditEntry.objects.filter(at__lt=timezone.now() - timedelta(days=KEPT_DAYS)).delete()
    beyond = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)[MOST_ROWS : MOST_ROWS + 1]
    more = sum(AuditEntry.objects.filter(pk__lte=pk).delete()[0] for pk in list(beyond))
    return old + more


def audit_page(number: int, *, name: str = "", refused: bool = False) -> Page[AuditEntry]:
    """Return a page of the log, the newest first. name: of a person, "" for all; refused: only what was refused."""
    rows: QuerySet[AuditEntry] = AuditEntry.objects.order_by("-at", "-pk")
    if name:
        rows = rows.filter(name=name)
    if refused:
        rows = rows.exclude(rule="")
    return leaf(rows, PER_PAGE, number)


log = logging.getLogger("kperflab.audit")

Where = Literal["fetch", "standing", "build", "guest", "netboot"]
METHOD: Final = "worker"
DAY: Final = timedelta(days=1)
# These classes only say that something was refused; their cause says what it was.
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def note_refusal(where: Where, rule: str, *, person: User | None = None, address: str = "") -> None:
    """Count a refusal: equal ones within one minute share a row. rule: a few fixed words; if the database is down, this is only logged."""
    request = Request(
        person=person, address=address, method=METHOD, route=where, path="", status=0, rule=rule
    )
    try:
        with transaction.atomic():
            note_request(request)
    except DatabaseError:
        log.exception("the audit log could not be written")


def rule_of(error: BaseException) -> str:
    """Return the name of an error's first cause as words: its class alone, nothing of its text."""
    ours = ("kernels.", "lab.", "workers.", "workloads.")
    while error.__cause__ is not None and type(error.__cause__).__module__.startswith(ours):
        error = error.__cause__
    return _CAMEL.sub(" ", type(error).__name__).lower()


def refusals_of_the_day() -> dict[tuple[str, str], int]:
    """Return how often workers refused something in the last 24 hours, by place and rule."""
    rows = AuditEntry.objects.filter(method=METHOD, at__gte=timezone.now() - DAY).order_by()
    return {
        (row["route"], row["rule"]): row["times"]
        for row in rows.values("route", "rule").annotate(times=Sum("count"))
    }
