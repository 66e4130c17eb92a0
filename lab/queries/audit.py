# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads of the audit log."""

from __future__ import annotations

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from lab.models import AuditEntry

PER_PAGE = 100


def audit_page(number: int, *, name: str = "", refused: bool = False) -> Page[AuditEntry]:
    """Return a page of the log, the newest first. name: of a person, "" for all; refused: only what was refused."""
    rows: QuerySet[AuditEntry] = AuditEntry.objects.order_by("-at", "-pk")
    if name:
        rows = rows.filter(name=name)
    if refused:
        rows = rows.exclude(rule="")
    return Paginator(rows, PER_PAGE).get_page(number)
