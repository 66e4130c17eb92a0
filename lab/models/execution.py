# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds and runs, each claimed by one process at a time."""

from django.db import models

from lab.models.experiment import Case, Experiment, Variant
from lab.models.hardware import Target
from lab.models.states import BuildState, Outcome, Purpose, RunState


class Claimed(models.Model):
    """The claim on a row: its worker, its expiry, and the token that rejects a late second answer."""

    claimed_by = models.CharField(max_length=300, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    token = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        abstract = True


class Build(Claimed):
    """The compilation of one source tree with one config; shared by all variants that need the same."""

    # SHA-256 of the tree id and the whole request (tree, base, configs, toolchain, modules): known before the config
    # is resolved. docs/design/origins.md says why the base is part of it.
    inputs = models.CharField(max_length=64)
    # The artifact store's key, known once the config is resolved.
    artifact_key = models.CharField(max_length=64, blank=True, default="")
    tree_id = models.CharField(max_length=64)
    commit = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=BuildState, default=BuildState.QUEUED)
    request = models.JSONField()
    # The queue of workers that can build it: "build.<architecture>.<compiler>".
    queue = models.CharField(max_length=100, default="build.x86_64.gcc")
    release = models.CharField(max_length=200, blank=True, default="")
    code_hash = models.CharField(max_length=64, blank=True, default="")
    cpu_seconds = models.FloatField(null=True, blank=True)
    wall_seconds = models.FloatField(null=True, blank=True)
    # The submitter whose turn it was when it was claimed, 0 for nobody: fair turns count its time as theirs. No foreign key:
    # PostgreSQL would look the user up, and lock the row, at each claim.
    charged_to = models.PositiveBigIntegerField(default=0, db_default=0)
    # True when the artifact store already held it: nothing was compiled.
    cached = models.BooleanField(default=False)
    blame = models.CharField(max_length=10, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    problem_detail = models.TextField(blank=True, default="")
    # Objects made so far by the build under way, and how many it is expected to make; 0 while nothing is known.
    steps_done = models.PositiveIntegerField(default=0, db_default=0)
    steps_expected = models.PositiveIntegerField(default=0, db_default=0)
    # When it began to make them: the sources, the config and a first build's compiler front come before.
    steps_since = models.DateTimeField(null=True, blank=True)
    # Below the state root, and in the store where there is one; so are console and directory of a run.
    log = models.CharField(max_length=1000, blank=True, default="")
    # How often its artifact was found corrupt, and when the retention policy removed it.
    corrupted = models.PositiveSmallIntegerField(default=0)
    expired_at = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        # As a constraint: `unique` would add a second index, for LIKE, that every claim writes to.
        constraints = (models.UniqueConstraint(fields=["inputs"], name="build_inputs_once"),)
        # Each index that contains a row before and after a claim costs the claim a write.
        indexes = (
            models.Index(
                fields=["state", "queue"],
                condition=models.Q(state__in=(BuildState.QUEUED, BuildState.BUILDING)),
                name="build_open",
            ),
            models.Index(
                fields=["finished_at"], condition=models.Q(finished_at__isnull=False), name="build_by_end"
            ),
            # Few rows, and the ones that people search for.
            models.Index(
                fields=["state", "-id"],
                condition=models.Q(state__in=(BuildState.FAILED, BuildState.CANCELLED)),
                name="build_not_made",
            ),
            models.Index(fields=["-id"], condition=models.Q(corrupted__gt=0), name="build_corrupted"),
        )

    def __str__(self) -> str:
        return self.release or self.inputs[:12]


class Run(Claimed):
    """One boot that executes one case on one variant: the unit of replication."""

    # For three of these keys, another index below begins with the column.
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="runs", db_index=False)
    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="runs", db_index=False)
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="runs")
    # Its target. Before the claim: none, or in a group the target that has begun its block.
    target = models.ForeignKey(
        Target, null=True, blank=True, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    # The target that lost its block last, by the lab's fault, and when: another of the group goes first for a while.
    lost_on = models.ForeignKey(
        Target, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    lost_at = models.DateTimeField(null=True, blank=True)
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
    # Histograms, counters and other output of the workload beside its metrics.
    extras = models.JSONField(default=dict)
    # Of a profiled run, by source ("perf stat", "vmstat", "slab"): what it counted while the workload was timed.
    counters = models.JSONField(default=dict)
    # Seconds by step (boot, workload, collect); no entry for steps it did not reach.
    steps = models.JSONField(null=True, blank=True)
    # What could not be collected here: dicts of what and why.
    unavailable = models.JSONField(default=list)
    console = models.CharField(max_length=1000, blank=True, default="")
    directory = models.CharField(max_length=1000, blank=True, default="")
    findings = models.JSONField(default=list)
    # Why its numbers do not count although it finished: lines of lab/runs/validity.py.
    invalid = models.JSONField(default=list)
    # When the retention policy removed its files; what was measured stays.
    expired_at = models.DateTimeField(null=True, blank=True)
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
            models.UniqueConstraint(
                fields=["target"], condition=models.Q(state=RunState.RUNNING), name="one_boot_a_target"
            ),
        )
        # Each index costs every claim and every record a write; running boots are found by one_boot_a_target.
        indexes = (
            models.Index(
                fields=["finished_at"], condition=models.Q(finished_at__isnull=False), name="run_by_end"
            ),
            # For claims: their cost must not grow with the number of queued or finished rows.
            # Without running boots: a claim would write to the page it reads, whose dead entries then stay.
            # It has the columns that pages count of waiting boots, so that vacuumed boots need not be read for that.
            models.Index(
                fields=["experiment", "position", "variant", "target", "created_at"],
                condition=models.Q(state=RunState.QUEUED),
                name="waiting_run_in_order",
            ),
            # Few rows, and the ones that people search for across experiments.
            models.Index(fields=["-id"], condition=models.Q(state=RunState.FAILED), name="run_failed"),
            models.Index(
                fields=["target", "finished_at"],
                condition=models.Q(finished_at__isnull=False),
                name="run_of_target_by_end",
            ),
            models.Index(fields=["experiment", "block"], name="run_by_block"),
            models.Index(fields=["target", "state"], name="run_by_target"),
        )

    def __str__(self) -> str:
        return f"{self.purpose} run {self.position}"

    @property
    def seconds(self) -> float | None:
        """Return how long the boot took, None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class LostClaim(models.Model):
    """A claim that was taken back from a process that was gone or did not renew it."""

    # "build" or "run", and the number of that row.
    kind = models.CharField(max_length=5)
    work = models.PositiveBigIntegerField()
    # The host of the process, and its identity as in the claim.
    host = models.CharField(max_length=255)
    worker = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"lost claim of {self.kind} {self.work}"


class LateAnswer(models.Model):
    """A result that arrived after its claim had expired: nothing of it was written."""

    class Kind(models.TextChoices):
        """The kind of claimed row."""

        BUILD = "build"
        RUN = "run"

    kind = models.CharField(max_length=5, choices=Kind)
    # The number of the build or run.
    work = models.PositiveBigIntegerField()
    # Where its run booted; nothing for a build.
    target = models.CharField(max_length=100, blank=True, default="", db_default="")
    # The process that answered, what it would have written, and what had become of the work.
    worker = models.CharField(max_length=300)
    said = models.TextField()
    why = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"late answer to {self.kind} {self.work}"
