# SPDX-License-Identifier: GPL-2.0-or-later
"""Write and read the audit log, and delete old entries."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.core.paginator import Page
from django.db.models import F, QuerySet
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
