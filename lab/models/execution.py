# SPDX-License-Identifier: GPL-2.0-or-later
"""What workers do: builds and runs, each claimed by one process at a time."""

from django.db import models

from lab.models.experiment import Case, Experiment, Variant
from lab.states import BuildState, Outcome, Purpose, RunState


class Claimed(models.Model):
    """Who works on a row, until when, and the token that fences off a late second answer."""

    claimed_by = models.CharField(max_length=300, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    token = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        abstract = True


class Build(Claimed):
    """Compiling one source tree with one config; shared by every variant that asks for the same."""

    # SHA-256 of tree id, config request, toolchain and modules: known before the config is resolved.
    inputs = models.CharField(max_length=64, unique=True)
    # The artifact store's key, known once the config is resolved.
    artifact_key = models.CharField(max_length=64, blank=True, default="")
    tree_id = models.CharField(max_length=64)
    commit = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=BuildState, default=BuildState.QUEUED)
    request = models.JSONField()
    release = models.CharField(max_length=200, blank=True, default="")
    code_hash = models.CharField(max_length=64, blank=True, default="")
    cpu_seconds = models.FloatField(null=True, blank=True)
    wall_seconds = models.FloatField(null=True, blank=True)
    # True when the artifact store already held it: nothing was compiled.
    cached = models.BooleanField(default=False)
    blame = models.CharField(max_length=10, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    problem_detail = models.TextField(blank=True, default="")
    log = models.CharField(max_length=1000, blank=True, default="")
    attempt = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["state", "lease_until"], name="build_waiting"),)

    def __str__(self) -> str:
        return self.release or self.inputs[:12]


class Run(Claimed):
    """One boot that executes one case on one variant: the unit of replication."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="runs")
    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="runs")
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="runs")
    # The round of boots it belongs to; its base run of the same block is what it is compared with.
    block = models.PositiveIntegerField()
    # Which attempt at this place of the block: an invalid boot is kept, and taken once more.
    retake = models.PositiveSmallIntegerField(default=0)
    position = models.PositiveIntegerField()
    purpose = models.CharField(max_length=10, choices=Purpose, default=Purpose.MEASURED)
    state = models.CharField(max_length=10, choices=RunState, default=RunState.QUEUED)
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True, default="")
    blame = models.CharField(max_length=10, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    problem_detail = models.TextField(blank=True, default="")
    environment = models.JSONField(default=dict)
    # The mail's own line for this run, where the workload prints one.
    line = models.TextField(blank=True, default="")
    # Histograms, counters and whatever else the workload tells beside its metrics.
    extras = models.JSONField(default=dict)
    console = models.CharField(max_length=1000, blank=True, default="")
    directory = models.CharField(max_length=1000, blank=True, default="")
    findings = models.JSONField(default=list)
    # Why its numbers do not count although it finished: lines of lab/analysis/validity.py.
    invalid = models.JSONField(default=list)
    attempt = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=["experiment", "position"], name="run_position_once"),
            models.UniqueConstraint(
                fields=["variant", "case", "purpose", "block", "retake"], name="run_once_a_block"
            ),
        )
        indexes = (models.Index(fields=["state", "lease_until"], name="run_waiting"),)

    def __str__(self) -> str:
        return f"{self.purpose} run {self.position}"
