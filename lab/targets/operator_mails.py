# SPDX-License-Identifier: GPL-2.0-or-later
"""Mail operators when a target enters or leaves quarantine, once each.

A process that dies between taking a notice and sending it loses that mail; the lab's page shows the quarantine all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from smtplib import SMTPException
from typing import Literal

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from lab.models import Quarantine, User

End = Literal["began", "ended"]


@dataclass(frozen=True, slots=True)
class Notice:
    """One end of a quarantine, in a line."""

    row: Quarantine
    end: End

    @property
    def text(self) -> str:
        """Such as "box is in quarantine: its BMC does not answer"."""
        name = self.row.target.name
        if self.end == "began":
            return f"{name} is in quarantine: {self.row.reason}"
        return f"{name} boots again" + (f": {self.row.ended_by} released it" if self.row.ended_by else "")


@dataclass(frozen=True, slots=True)
class NoticesSent:
    """Notices sent to operators now. problem: why no mail was sent, "" if it was."""

    notices: tuple[str, ...]
    problem: str = ""

    def __str__(self) -> str:
        return f"{'; '.join(self.notices)}{f' ({self.problem})' if self.problem else ''}"


def tell_operators(*, now: datetime | None = None) -> NoticesSent | None:
    """Send one mail of all new notices; None if there are none. Notices that cannot be sent are retried the next time."""
    moment = now or timezone.now()
    ours = [notice for notice in _waiting() if _take(notice, moment)]
    if not ours:
        return None
    texts = tuple(notice.text for notice in ours)
    people = User.objects.filter(role=User.Role.OPERATOR, is_active=True).exclude(email="")
    addresses = sorted(set(people.values_list("email", flat=True)))
    if not addresses:
        return NoticesSent(texts, "no mail: no operator has an address")
    more = f" (and {len(ours) - 1} more)" if len(ours) > 1 else ""
    subject = " ".join(f"[kperflab] {texts[0]}".split())[: 200 - len(more)] + more
    try:
        send_mail(subject, _body(ours), None, addresses)
    except (SMTPException, OSError) as exc:
        for notice in ours:
            _put_back(notice)
        return NoticesSent(
            texts, f"the mail could not be sent and will be retried: {type(exc).__name__}: {exc}"
        )
    return NoticesSent(texts)


def _waiting() -> list[Notice]:
    """Return the notices not sent yet, in order."""
    ended = Q(ended_at__isnull=False, ended_told_at=None)
    rows = Quarantine.objects.filter(Q(began_told_at=None) | ended).select_related("target", "ended_by")
    notices: list[tuple[datetime, Notice]] = []
    for row in rows.order_by("pk"):
        if row.began_told_at is None:
            notices.append((row.began_at, Notice(row, "began")))
        if row.ended_at is not None and row.ended_told_at is None:
            notices.append((row.ended_at, Notice(row, "ended")))
    return [notice for _, notice in sorted(notices, key=lambda pair: pair[0])]


def _take(notice: Notice, now: datetime) -> bool:
    """Claim a notice; return whether this process sends it."""
    column = f"{notice.end}_told_at"
    return Quarantine.objects.filter(**{"pk": notice.row.pk, column: None}).update(**{column: now}) == 1


def _put_back(notice: Notice) -> None:
    Quarantine.objects.filter(pk=notice.row.pk).update(**{f"{notice.end}_told_at": None})


def _body(notices: Sequence[Notice]) -> str:
    lines = []
    for notice in notices:
        at = notice.row.began_at if notice.end == "began" else notice.row.ended_at or notice.row.began_at
        place = f"{settings.PUBLIC_URL}{reverse('target', args=[notice.row.target.name])}"
        lines += [notice.text, f"  {at:%Y-%m-%d %H:%M} UTC, {place}", ""]
    lines += [
        "A target in quarantine is out of service. Check it, then release it on its page, or with",
        "`labctl target check NAME` and `labctl target release NAME`.",
        "-- ",
        f"Sent to the operators of {settings.PUBLIC_URL}.",
    ]
    return "\n".join(lines)
