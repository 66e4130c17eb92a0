# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees, experiments, their switches, variants and cases."""

import secrets

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

from kernels.mails.stored_diff import shown_diff
from lab.models.hardware import Target
from lab.models.states import OPEN_EXPERIMENT, ExperimentState, Role, VariantState


class Tree(models.Model):
    """A kernel tree that experiments name: a source archive or a git repository."""

    class Kind(models.TextChoices):
        """The way in which a tree is imported."""

        ARCHIVE = "archive"
        GIT = "git"

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    location = models.CharField(max_length=1000)
    default_revision = models.CharField(max_length=200)
    # Boots that standing experiments may ask for in 24 hours; none means no limit.
    boots_a_day = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


def _new_token() -> str:
    return secrets.token_hex(8)


class Withdrawal(models.Model):
    """An operator no longer vouches for a branch: files that the compiler front made before are no longer used. The newest counts."""

    # Part of the keys of all that the front makes from then on. Random, so that a lab restored from an older backup never gets
    # the token of a withdrawal that the backup lacks.
    token = models.CharField(max_length=16, unique=True, default=_new_token)
    # Names, as they were then.
    tree = models.CharField(max_length=100)
    ref = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.tree} {self.ref}".strip()


class Experiment(models.Model):
    """One submission: a base, switches, cases and how often to boot each."""

    name = models.CharField(max_length=200)
    spec = models.JSONField()
    # SHA-256 of the canonical spec: "the same command again" is an equal digest.
    digest = models.CharField(max_length=64, db_index=True)
    state = models.CharField(max_length=10, choices=ExperimentState, default=ExperimentState.QUEUED)
    tree = models.ForeignKey(Tree, on_delete=models.PROTECT)
    base_name = models.CharField(max_length=200)
    base_commit = models.CharField(max_length=64)
    base_tree_id = models.CharField(max_length=64)
    # The branch whose line of first parents the base is on; "" for the tree's default branch, or if it is not known.
    base_branch = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Position of the newest commit that this line shares with the default branch's; null if there is none or it is not known.
    base_fork = models.PositiveIntegerField(null=True, blank=True)
    design = models.CharField(max_length=20)
    # The one target asked for, or any one of the group asked for: they are equal.
    target = models.ForeignKey(Target, on_delete=models.PROTECT)
    group = models.CharField(max_length=100, blank=True, default="")
    # Of experiments that wait for the same machines the greater goes first; equal ones share fairly.
    priority = models.SmallIntegerField(default=0)
    # Whether everything it needs outlives the retention policy.
    kept = models.BooleanField(default=False)
    # Whether a build of it may be open: claims of builds look at no other experiment. May be true too long, never false too early.
    builds_left = models.BooleanField(default=True, db_default=True)
    # "wall" or "instructions": what the times of this experiment count.
    clock = models.CharField(max_length=15, default="wall")
    # Boots of each variant; the maximum where they may stop early (`sequential`).
    boots = models.PositiveIntegerField()
    sequential = models.BooleanField(default=False)
    iterations = models.PositiveIntegerField()
    warmup = models.PositiveIntegerField()
    profile = models.BooleanField()
    verify = models.BooleanField()
    seed = models.BigIntegerField()
    problem = models.TextField(blank=True, default="")
    # The conclusion in one line, as it was when the experiment ended; lists show it. Pages compute the conclusion afresh.
    headline = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Null where it came from this machine's own terminal.
    submitter = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="experiments"
    )
    # The experiment it was re-run or cloned from.
    origin = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="descendants"
    )
    # The standing experiment that asked for it at a new revision.
    standing = models.ForeignKey(
        "lab.Standing", null=True, blank=True, on_delete=models.SET_NULL, related_name="experiments"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["state", "-id"], name="experiment_by_state"),
            models.Index(fields=["-created_at"], name="experiment_by_date"),
            # Orders of the list.
            models.Index(fields=["name", "id"], name="experiment_by_name"),
            models.Index(fields=["finished_at", "id"], name="experiment_by_end"),
            models.Index(fields=["group"], name="experiment_by_group"),
            # The latest of each standing experiment.
            models.Index(fields=["standing", "-id"], name="experiment_of_standing"),
            # The question of machine and model: the newest of one source tree.
            models.Index(fields=["base_tree_id", "-id"], name="experiment_by_source"),
            # Claims look for experiments that wait for a target, or for its group.
            models.Index(
                fields=["group", "target"],
                condition=models.Q(state__in=OPEN_EXPERIMENT),
                name="experiment_waiting",
            ),
            # Claims of builds go by priority and submitter first: open experiments are not read and sorted for each.
            models.Index(
                "priority",
                Coalesce("submitter", 0),
                "id",
                condition=models.Q(state__in=OPEN_EXPERIMENT, builds_left=True),
                name="unbuilt_experiment_in_order",
            ),
        )

    def __str__(self) -> str:
        return self.name


class Switch(models.Model):
    """Something an experiment turns on and off: a patch or a config fragment."""

    class Kind(models.TextChoices):
        """The kind of a switch."""

        PATCH = "patch"
        CONFIG = "config"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="switches")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=100)
    # One of Kind; the column does not list them, so that a new kind needs no migration.
    kind = models.CharField(max_length=10)
    title = models.TextField(blank=True, default="")
    author = models.CharField(max_length=300, blank=True, default="")
    link = models.CharField(max_length=1000, blank=True, default="")
    text = models.TextField()
    requires = models.JSONField(default=list)
    excludes = models.JSONField(default=list)
    # What the catalogue says it moves: workload, metric, direction (lower, higher), source.
    claims = models.JSONField(default=list)
    # What intake repaired in a damaged diff, line by line.
    report = models.JSONField(default=list)
    # Which mails of the series were chosen, which left out, and why, line by line.
    notes = models.JSONField(default=list, db_default=models.Value([], output_field=models.JSONField()))

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=["experiment", "name"], name="switch_name_once"),
            models.UniqueConstraint(fields=["experiment", "position"], name="switch_position_once"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def shown(self) -> str:
        """The text for people: hidden characters and invalid UTF-8 are escapes."""
        return shown_diff(self.text)


class Variant(models.Model):
    """One combination of switches that applies, or a control of the base: one source tree and config, so one build."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="variants")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=500)
    switches = models.JSONField(default=list)
    role = models.CharField(max_length=10, choices=Role, default=Role.CANDIDATE)
    state = models.CharField(max_length=10, choices=VariantState, default=VariantState.PLANNED)
    commit = models.CharField(max_length=64, blank=True, default="")
    tree_id = models.CharField(max_length=64, blank=True, default="")
    build = models.ForeignKey(
        "lab.Build", null=True, blank=True, on_delete=models.PROTECT, related_name="variants"
    )
    problem = models.TextField(blank=True, default="")
    problem_detail = models.TextField(blank=True, default="")
    # Such as "this patch changes no code here".
    note = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=["experiment", "name"], name="variant_name_once"),
            models.UniqueConstraint(fields=["experiment", "position"], name="variant_position_once"),
        )

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    """A workload with its parameters fixed."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="cases")
    position = models.PositiveSmallIntegerField()
    workload = models.CharField(max_length=100)
    preset = models.CharField(max_length=50)
    params = models.JSONField(default=dict)
    # The workload's metrics as they were at submission: name, unit, better, margin, primary.
    metrics = models.JSONField(default=list)

    class Meta:
        ordering = ("position",)
        constraints = (models.UniqueConstraint(fields=["experiment", "position"], name="case_position_once"),)
        indexes = (models.Index(fields=["workload"], name="case_by_workload"),)

    def __str__(self) -> str:
        return f"{self.workload} ({self.preset})"
