# SPDX-License-Identifier: GPL-2.0-or-later
"""Count in the audit log what workers and netboot refused: git, builds, guests, machines.

Refused web requests are recorded by the middleware; refusals of everything else are recorded here. Each field of a row is one of a
few fixed words, so repeated refusals of a stranger raise a count and do not add rows.
"""

import logging
import re
from datetime import timedelta
from typing import Final, Literal

from django.db import DatabaseError, transaction
from django.db.models import Sum
from django.utils import timezone

from lab.audit.log import Request, note_request
from lab.models import AuditEntry, User

log = logging.getLogger("kperflab.audit")

Where = Literal["fetch", "standing", "build", "guest", "netboot"]
METHOD: Final = "worker"
DAY: Final = timedelta(days=1)
# These classes only say that something was refused; their cause says what it was.
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def note_refusal(where: Where, rule: str, *, person: User | None = None, address: str = "") -> None:
    """Count a refusal: equal ones within one minute share a row. rule: a few fixed words; a database that is down is logged alone."""
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
