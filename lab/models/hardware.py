# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets, their health, workers, signing keys, deployments and chores."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

# A worker that has not reported for this long, in seconds, is gone.
GONE_S = 30.0


class Target(models.Model):
    """One machine that boots kernels, virtual or metal."""

    name = models.CharField(max_length=100, unique=True)
    # Targets of one group are equal: an experiment that names the group boots a block on any one of them.
    group = models.CharField(max_length=100, blank=True, default="", db_index=True)
    driver = models.CharField(max_length=30, default="libvirt")
    vcpus = models.PositiveSmallIntegerField(default=2)
    memory_mib = models.PositiveIntegerField(default=1024)
    enabled = models.BooleanField(default=True)
    # What operators note about it for themselves, such as where it stands.
    remark = models.TextField(blank=True, default="", db_default="")
    # Metal: how it is reached (power, console, network card), and what it is tuned to before measuring.
    # Passwords are named by their file, never kept here.
    access = models.JSONField(default=dict, blank=True)
    tuning = models.JSONField(default=dict, blank=True)
    # Lab faults one after another; enough of them put the target into quarantine until an operator releases it.
    faults = models.PositiveSmallIntegerField(default=0)
    quarantined_at = models.DateTimeField(null=True, blank=True)
    quarantine_reason = models.TextField(blank=True, default="")
    # When a health check was requested; until when, at most, a running one keeps boots away.
    check_asked_at = models.DateTimeField(null=True, blank=True)
    checked_until = models.DateTimeField(null=True, blank=True)
    # Since when it had no health check: the time of the last one, or that of its own row.
    unchecked_since = models.DateTimeField(default=timezone.now, db_default=Now())
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # Read each second for due checks, without the targets that were checked lately or are out of service.
        indexes = (
            models.Index(
                fields=["unchecked_since"],
                condition=models.Q(enabled=True, quarantined_at=None),
                name="target_unchecked",
            ),
            models.Index(
                fields=["check_asked_at"],
                condition=models.Q(check_asked_at__isnull=False),
                name="target_check_asked",
            ),
        )

    def __str__(self) -> str:
        return self.name


class Quarantine(models.Model):
    """A time in which a target boots nothing because it kept failing; operators are notified of its begin and end."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="quarantines")
    reason = models.TextField()
    began_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    # Who released it; nobody at this machine's own terminal.
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    # When mails of it were sent.
    began_told_at = models.DateTimeField(null=True, blank=True)
    ended_told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["began_told_at", "ended_told_at"], name="quarantine_to_tell"),
            models.Index(fields=["target", "ended_at"], name="quarantine_of_target"),
        )

    def __str__(self) -> str:
        return f"quarantine of {self.target_id} since {self.began_at}"


class HealthCheck(models.Model):
    """A known-good kernel booted on a target with the calibration workload: whether it did, and the figure."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="checks")
    at = models.DateTimeField(default=timezone.now)
    ok = models.BooleanField()
    problem = models.TextField(blank=True, default="")
    metric = models.CharField(max_length=100, blank=True, default="")
    value = models.FloatField(null=True, blank=True)
    environment = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at",)
        indexes = (models.Index(fields=["target", "-at"], name="check_by_target"),)

    def __str__(self) -> str:
        return f"check of {self.target_id} at {self.at}"


class Worker(models.Model):
    """A process that takes work: its queues, when it last reported, and why it takes no work."""

    # host:pid:start, as in the claims.
    name = models.CharField(max_length=300, unique=True)
    host = models.CharField(max_length=255)
    queues = models.JSONField(default=list)
    version = models.CharField(max_length=100, blank=True, default="")
    started_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    disk_free = models.BigIntegerField(null=True, blank=True)
    disk_total = models.BigIntegerField(null=True, blank=True)
    # Why it takes nothing now, such as a full disk or other code than the lab's; empty while it does.
    idle_reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class SigningKey(models.Model):
    """The public key that a machine signs artifacts with; what it signed counts until it is revoked."""

    # Ed25519, in hex.
    public = models.CharField(max_length=64, unique=True)
    machine = models.CharField(max_length=255)
    made_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("made_at", "pk")

    def __str__(self) -> str:
        return f"{self.machine} {self.public[:12]}"


class Deployment(models.Model):
    """A version of the code that was made the lab's; the newest counts."""

    version = models.CharField(max_length=100)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.version


class Chore(models.Model):
    """A piece of upkeep that is due seldom, and when it was last done."""

    name = models.CharField(max_length=100, unique=True)
    # When a worker began it; a worker that was killed leaves it set.
    begun_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    # What it found then, such as how much the lab keeps where.
    found = models.JSONField(default=dict)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
