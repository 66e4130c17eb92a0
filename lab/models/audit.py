# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit log: who changed something over the pages or the API, and what was refused."""

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """Equal requests of one minute: who sent them from where, for which route, and how they ended."""

    # The minute, by this lab's clock.
    at = models.DateTimeField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The name at that time, "" for anybody: an account may be renamed or deleted.
    name = models.CharField(max_length=150, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")
    method = models.CharField(max_length=10)
    route = models.CharField(max_length=60)
    # The path without secrets; "" where a stranger's request was refused, so that strangers cannot fill the table.
    path = models.CharField(max_length=200, blank=True, default="")
    status = models.PositiveSmallIntegerField()
    # Why it was refused, in a few words of ours; "" where it was carried out.
    rule = models.CharField(max_length=40, blank=True, default="")
    count = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("-at", "-pk")
        indexes = (models.Index(fields=["at"], name="audit_at"),)

    def __str__(self) -> str:
        return f"{self.method} {self.route} by {self.name or 'anybody'}"
