# SPDX-License-Identifier: GPL-2.0-or-later
"""Previews and submissions that a worker carries out."""

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from lab.models.experiment import Experiment
from lab.models.people import User
from lab.models.states import FetchState


class Fetch(models.Model):
    """One preview or submission that a web process must not carry out: it reaches another host, or takes long.

    What a worker found is in `received`, `preview` and `experiment`; why it ended otherwise is in `problem`.
    """

    class Kind(models.TextChoices):
        """The purpose of a fetch: a preview, or a submission."""

        PREVIEW = "preview"
        SUBMIT = "submit"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="fetches")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=FetchState, default=FetchState.WAITING)
    # {"description", "branch", "message", "each", "form_key"}: lab/submission/fetches/series.py reads it.
    request = models.JSONField()
    # SHA-256 of kind, request and origin: an equal request that is open is the same row.
    digest = models.CharField(max_length=64, db_index=True)
    # The submission form as it was typed, to be shown again; empty where the REST API asked.
    form = models.JSONField(default=dict)
    # A client's Idempotency-Key, "" for none, with the SHA-256 of the body that came with it.
    key = models.CharField(max_length=200, default="")
    body_sha256 = models.CharField(max_length=64, default="")
    origin = models.ForeignKey(Experiment, null=True, on_delete=models.SET_NULL, related_name="+")
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.SET_NULL, related_name="+")
    received = models.JSONField(default=list)
    preview = models.JSONField(null=True)
    # An error of lab/errors.py as lab/submission/fetches/problem.py writes it.
    problem = models.JSONField(default=dict)
    # The line that people read, and the field of the description that it is about.
    progress = models.CharField(max_length=300, default="")
    place = models.CharField(max_length=40, default="")
    received_bytes = models.BigIntegerField(default=0)
    # A running fetch holds one of a few slots: the unique column is what bounds them.
    slot = models.PositiveSmallIntegerField(null=True, unique=True)
    claimed_by = models.CharField(max_length=200, default="")
    token = models.CharField(max_length=64, default="")
    lease_until = models.DateTimeField(null=True)
    # How often a worker began it, without losses of the database; and how often those happened.
    attempt = models.PositiveSmallIntegerField(default=0)
    interrupted = models.PositiveSmallIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    # When its page or the API was last asked for its state: a preview that nobody looks at is cancelled.
    looked_at = models.DateTimeField(default=timezone.now, db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-pk",)
        indexes = (models.Index(fields=["state", "created_at"], name="fetch_waiting"),)
        constraints = (
            models.UniqueConstraint(
                fields=["user", "key"], condition=~models.Q(key=""), name="fetch_key_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
