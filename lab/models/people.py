# SPDX-License-Identifier: GPL-2.0-or-later
"""Users, tokens and idempotency keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from knox.models import AbstractAuthToken


class People(UserManager["User"]):
    """Django's manager, but an account made at the server's terminal is an operator."""

    use_in_migrations = False

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> User:
        """Make an operator."""
        fields.setdefault("role", User.Role.OPERATOR)
        return super().create_superuser(username, email, password, **fields)


class User(AbstractUser):  # type: ignore[django-manager-missing]  # of the tokens, whose library has no types
    """Somebody with an account; each role may do what those before it may."""

    class Role(models.TextChoices):
        """Viewers read; submitters also queue, cancel, write notes and triage; operators also run the lab."""

        VIEWER = "viewer"
        SUBMITTER = "submitter"
        OPERATOR = "operator"

    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    # The page of one's own work lists what finished after this moment; null: nothing was marked as seen yet.
    finished_seen_at = models.DateTimeField(null=True, blank=True)
    # Whether they get a mail when an experiment of theirs finishes.
    finish_mails = models.BooleanField(default=True, db_default=True)

    objects: ClassVar[People] = People()

    def __str__(self) -> str:
        return self.username


class Token(AbstractAuthToken):  # type: ignore[misc]  # the library has no types
    """An API token; the library keeps its hash alone. It may do what both its scopes and its user's role allow."""

    name: models.CharField[str, str] = models.CharField(max_length=100, blank=True, default="")
    # Some of "read", "submit", "operate".
    scopes = models.JSONField(default=list)
    used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True
    )


class IdempotencyKey(models.Model):
    """A client's own name for one submission: sent twice, it still makes one experiment."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="idempotency_keys")
    key = models.CharField(max_length=200)
    # SHA-256 of the request's body: the same key with another body is an error.
    body_sha256 = models.CharField(max_length=64)
    experiment = models.ForeignKey("lab.Experiment", null=True, on_delete=models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once"),)

    def __str__(self) -> str:
        return self.key
