# SPDX-License-Identifier: GPL-2.0-or-later
"""Revisions of trees, the base points of trends, and bisections."""

from django.conf import settings
from django.db import models

from lab.models.experiment import Case, Experiment, Tree
from lab.models.hardware import Target
from lab.models.states import BisectionState


class Revision(models.Model):
    """One commit of a tree; kept, so that no page asks git."""

    tree = models.ForeignKey(Tree, on_delete=models.CASCADE, related_name="revisions")
    commit = models.CharField(max_length=64)
    # Commits before it on its line of first parents: the order of a trend.
    position = models.PositiveIntegerField()
    subject = models.CharField(max_length=500)
    author = models.CharField(max_length=300)
    date = models.CharField(max_length=40, blank=True, default="")
    # The branch whose line it was noted from, "" for the default branch; null if that is not known.
    branch = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001  "" is a branch

    class Meta:
        ordering = ("position", "commit")
        constraints = (models.UniqueConstraint(fields=["tree", "commit"], name="revision_once"),)
        indexes = (models.Index(fields=["tree", "position"], name="revision_line"),)

    def __str__(self) -> str:
        return f"{self.commit[:12]} {self.subject}"


class BasePoint(models.Model):
    """One experiment's part of a trend: one metric over the boots of its base and of the base's control."""

    # The hash of what identifies a trend: tree, branch, case, target, clock, config and metric.
    trend = models.CharField(max_length=12, db_index=True)
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="base_points")
    metric = models.CharField(max_length=60)
    primary = models.BooleanField(default=False)
    config = models.CharField(max_length=8)
    commit = models.CharField(max_length=64)
    # Each boot's median over its iterations, in the metric's unit.
    boots = models.JSONField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["case", "metric"], name="base_point_once"),)
        indexes = (models.Index(fields=["trend", "commit"], name="base_point_of_revision"),)

    def __str__(self) -> str:
        return f"{self.metric} at {self.commit[:12]}"


class Trend(models.Model):
    """A trend as lists show it, computed from its points (lab/trends/summary.py); stale while these have changed since."""

    # As BasePoint.trend.
    key = models.CharField(max_length=12, unique=True)
    tree = models.ForeignKey(Tree, on_delete=models.CASCADE, related_name="trends")
    # The branch whose revisions are its points; "" for the tree's default branch and for revisions of unknown branches.
    branch = models.CharField(max_length=200, blank=True, default="", db_default="")
    # The key of the same trend on the default branch; "" for that one itself.
    trunk = models.CharField(max_length=12, blank=True, default="", db_default="")
    # The points of the default branch up to this position are its points, too; null if there are none.
    fork = models.PositiveIntegerField(null=True, blank=True)
    workload = models.CharField(max_length=100)
    preset = models.CharField(max_length=50)
    params = models.JSONField(default=dict)
    # The name of a group, or of a target that is in none.
    target = models.CharField(max_length=100)
    clock = models.CharField(max_length=15)
    config = models.CharField(max_length=8)
    metric = models.CharField(max_length=60)
    unit = models.CharField(max_length=30, blank=True, default="")
    better = models.CharField(max_length=10)
    margin = models.FloatField()
    primary = models.BooleanField(default=False)
    # The case that fed it last.
    latest_case = models.PositiveBigIntegerField()
    # The number of changes of its points; a summary is of the points after one of these changes.
    changes = models.PositiveIntegerField(default=1)
    stale = models.BooleanField(default=True)
    points = models.PositiveIntegerField(default=0)
    # Measured revisions whose place in the history is unknown.
    unplaced = models.PositiveIntegerField(default=0)
    # The newest point: its revision, and its newest experiment.
    revision = models.CharField(max_length=64, blank=True, default="")
    experiment = models.PositiveBigIntegerField(default=0)
    # The medians of its latest points, the newest last, and its steps as lab/trends/summary.py writes them.
    course = models.JSONField(default=list)
    steps = models.JSONField(default=list)

    class Meta:
        ordering = ("-latest_case", "key")
        indexes = (
            models.Index(fields=["-latest_case", "key"], name="trend_by_feed"),
            models.Index(fields=["key"], condition=models.Q(stale=True), name="trend_stale"),
            models.Index(fields=["trunk"], name="trend_branches"),
        )

    def __str__(self) -> str:
        return f"{self.metric} of {self.workload} ({self.preset})"


class StepDecision(models.Model):
    """A person's decision about a step of a trend; the newest counts, the others are its history."""

    class State(models.TextChoices):
        """The states of a step; it is open until somebody decides, and again once that is undone."""

        OPEN = "open"
        ACCEPTED = "accepted"
        IGNORED = "ignored"

    trend = models.CharField(max_length=12)
    # The first revision behind the step.
    commit = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State)
    note = models.TextField(blank=True, default="")
    # The address of a report, where there is one.
    bug = models.CharField(max_length=500, blank=True, default="")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=["trend", "commit"], name="decision_of_step"),)

    def __str__(self) -> str:
        return f"{self.state} step of {self.trend} at {self.commit[:12]}"


class Bisection(models.Model):
    """One search: between a good revision and a bad one, for the commit that changed a metric."""

    class Answer(models.TextChoices):
        """The result of a bisection."""

        COMMIT = "commit"
        RANGE = "range"
        NO_STEP = "no-step"
        UNTOLD = "untold"

    tree = models.ForeignKey(Tree, on_delete=models.PROTECT)
    target = models.ForeignKey(Target, on_delete=models.PROTECT)
    # SHA-256 of all that was asked: "the same command again" is an equal digest.
    digest = models.CharField(max_length=64, db_index=True)
    good_name = models.CharField(max_length=200)
    bad_name = models.CharField(max_length=200)
    # The line from the good commit, first in the list, to the bad one, last.
    line = models.JSONField()
    workload = models.CharField(max_length=100)
    preset = models.CharField(max_length=50)
    params = models.JSONField(default=dict)
    metric = models.CharField(max_length=60)
    clock = models.CharField(max_length=15)
    # Of a first comparison, 0 for as many as it takes; and at most, after inconclusive ones.
    boots = models.PositiveIntegerField()
    most_boots = models.PositiveIntegerField()
    iterations = models.PositiveIntegerField()
    # Whether the lab's upkeep submits its steps; else a command does, which is started again after a crash.
    automatic = models.BooleanField(default=False, db_default=False)
    # Who pressed the button: the submitter of its experiments.
    starter = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    # "regression" or "improvement": the verdict that makes a revision bad.
    verdict = models.CharField(max_length=15)
    state = models.CharField(max_length=10, choices=BisectionState, default=BisectionState.RUNNING)
    answer = models.CharField(max_length=10, choices=Answer, blank=True, default="")
    # Commits of which one caused the step, the oldest first.
    suspects = models.JSONField(default=list)
    problem = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.metric} between {self.good_name} and {self.bad_name}"


class BisectionStep(models.Model):
    """One comparison of a bisection: an experiment of the good revision with another."""

    class Outcome(models.TextChoices):
        """The answer of a step; `again` asks for more boots, `fault` is the lab's and gives no answer."""

        GOOD = "good"
        BAD = "bad"
        SKIPPED = "skipped"
        AMBIGUOUS = "ambiguous"
        AGAIN = "again"
        FAULT = "fault"

    bisection = models.ForeignKey(Bisection, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    # Its place in the bisection's line.
    revision = models.PositiveIntegerField()
    boots = models.PositiveIntegerField()
    experiment = models.ForeignKey(Experiment, null=True, blank=True, on_delete=models.SET_NULL)
    # Empty while it is open.
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True, default="")
    verdict = models.CharField(max_length=15, blank=True, default="")
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=["bisection", "number"], name="bisection_step_once"),)

    def __str__(self) -> str:
        return f"step {self.number}: {self.outcome or 'open'}"
