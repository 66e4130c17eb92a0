# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments, alerts, hooks and deliveries."""

from django.conf import settings
from django.db import models

from lab.models.experiment import Experiment, Tree
from lab.models.states import DeliveryState


class Standing(models.Model):
    """A description that is submitted for every new revision of a branch."""

    name = models.SlugField(max_length=100, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    spec = models.JSONField()
    tree = models.ForeignKey(Tree, on_delete=models.PROTECT, related_name="standing")
    # Empty for the tree's default revision, as of a source archive that is replaced by a newer one.
    branch = models.CharField(max_length=200, blank=True, default="")
    enabled = models.BooleanField(default=True)
    # Hours of the day (UTC) in which nothing is queued and no notification is sent; equal hours mean none.
    quiet_from = models.PositiveSmallIntegerField(default=0)
    quiet_until = models.PositiveSmallIntegerField(default=0)
    poll_every_s = models.PositiveIntegerField(default=300)
    # A forge signs its pushes with it.
    secret = models.CharField(max_length=100, blank=True, default="")
    # Whether skipped revisions are measured later, when nothing newer waits; the newest first.
    backfill = models.BooleanField(default=False)
    # Who gets a mail when a step appears.
    mail_to = models.JSONField(default=list)
    last_commit = models.CharField(max_length=64, blank=True, default="")
    # Commits that were refused, as where a patch does not apply: they are not retried with the same description.
    refused = models.JSONField(default=list, db_default=models.Value([], output_field=models.JSONField()))
    # Set by a push: the next look then does not wait.
    due = models.BooleanField(default=False)
    # One of its experiments ended since its trends were last looked at for steps.
    stale = models.BooleanField(default=False)
    polled_at = models.DateTimeField(null=True, blank=True)
    # Why the last look queued nothing although there was something: budget, quiet hours, a tree out of reach.
    problem = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """A step that appeared in a trend which a standing experiment feeds; reported once."""

    standing = models.ForeignKey(Standing, on_delete=models.CASCADE, related_name="alerts")
    # The experiment whose result made the step visible.
    experiment = models.ForeignKey(Experiment, null=True, blank=True, on_delete=models.SET_NULL)
    trend = models.CharField(max_length=200)
    metric = models.CharField(max_length=60)
    # The revision at which the step lies.
    commit = models.CharField(max_length=64)
    ratio = models.FloatField()
    worse = models.BooleanField()
    text = models.TextField()
    # When mails and hooks were sent; not in quiet hours.
    told_at = models.DateTimeField(null=True, blank=True)
    seen_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=["standing", "trend", "commit"], name="alert_once_a_step"),
        )
        indexes = (
            models.Index(fields=["-id"], condition=models.Q(seen_at=None), name="alert_unseen"),
            models.Index(fields=["id"], condition=models.Q(told_at=None), name="alert_to_tell"),
        )

    def __str__(self) -> str:
        return self.text[:60]


class Hook(models.Model):
    """An address that receives events: a plain webhook, a forge's commit statuses, or patchwork's checks."""

    class Kind(models.TextChoices):
        """The form of a notification."""

        WEBHOOK = "webhook"
        GITHUB = "github"
        GITLAB = "gitlab"
        PATCHWORK = "patchwork"

    name = models.CharField(max_length=100, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.WEBHOOK)
    url = models.URLField(max_length=1000)
    # Signs plain webhooks, is the token of the others.
    secret = models.CharField(max_length=500, blank=True, default="")
    # It receives only events of experiments on this tree; without one, of all experiments and of targets.
    tree = models.ForeignKey(Tree, null=True, blank=True, on_delete=models.CASCADE, related_name="hooks")
    # Some of EVENTS in lab/hooks/events.py.
    events = models.JSONField(default=list)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One event for one hook, or by mail for one user: tried until it is taken, or given up."""

    hook = models.ForeignKey(Hook, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries")
    # Who gets a mail, of a delivery without a hook.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="mails"
    )
    event = models.CharField(max_length=40)
    # The subject: one delivery for each hook or user, event and subject.
    subject = models.CharField(max_length=100)
    payload = models.JSONField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    # The answer's beginning, or why there was none.
    answer = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=["hook", "event", "subject"], name="delivery_once_an_event"),
            models.UniqueConstraint(fields=["user", "event", "subject"], name="mail_once_an_event"),
            models.CheckConstraint(
                condition=models.Q(hook=None) ^ models.Q(user=None), name="delivery_to_a_hook_or_a_user"
            ),
        )
        indexes = (models.Index(fields=["state", "next_at"], name="delivery_waiting"),)

    def __str__(self) -> str:
        return f"{self.event} of {self.subject}"
