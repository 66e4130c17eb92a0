# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes on results, and decisions about regressions."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from lab.models.execution import Run
from lab.models.experiment import Case, Experiment, Variant
from lab.models.trend import Revision


class Note(models.Model):
    """A remark on an experiment, a run, or a revision (then it is shown on trends); plain text, never markup."""

    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    experiment = models.ForeignKey(
        Experiment, null=True, blank=True, on_delete=models.CASCADE, related_name="notes"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="notes")
    revision = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.CASCADE, related_name="notes"
    )
    # Of a revision's note: the key of the one trend it is about, empty for all.
    trend = models.CharField(max_length=200, blank=True, default="")
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                name="note_on_one_thing",
                condition=Q(experiment__isnull=False, run__isnull=True, revision__isnull=True)
                | Q(experiment__isnull=True, run__isnull=False, revision__isnull=True)
                | Q(experiment__isnull=True, run__isnull=True, revision__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.text[:60]


class Triage(models.Model):
    """One decision about a regression; the newest counts, the others are its history.

    Comparisons are recomputed under new numbers, so a decision names the case, variant and metric, which stay.
    """

    class State(models.TextChoices):
        """The states of a regression: new until somebody looks at it."""

        NEW = "new"
        ACKNOWLEDGED = "acknowledged"
        EXPECTED = "expected"
        FIXED = "fixed"

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="triage")
    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="triage")
    metric = models.CharField(max_length=60)
    state = models.CharField(max_length=15, choices=State)
    reason = models.TextField(blank=True, default="")
    # A commit or a link, where it is fixed.
    fixed_by = models.CharField(max_length=500, blank=True, default="")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["case", "variant", "metric"], name="triage_of"),)

    def __str__(self) -> str:
        return f"{self.metric}: {self.state}"
