# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples, profiles, comparisons and effects."""

from django.db import models

from lab.models.execution import Run
from lab.models.experiment import Case, Experiment, Variant
from lab.statistics.verdict_words import CHOICES


class Sample(models.Model):
    """One metric's value from one iteration, in the metric's own unit."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="samples")
    metric = models.CharField(max_length=60)
    iteration = models.PositiveIntegerField()
    warmup = models.BooleanField(default=False)
    value = models.FloatField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["run", "metric", "iteration"], name="sample_once"),)

    def __str__(self) -> str:
        return f"{self.metric}={self.value:g}"


class Profile(models.Model):
    """One profile of a run, of CPU samples, waits, instructions or modelled waiting: a tree of frames as lab/profiles/analysis/frame_tree.py packs it."""

    class Kind(models.TextChoices):
        """The weights of a profile's tree: samples of running CPUs, nanoseconds of waiting, instructions, or cycles waited."""

        CPU = "cpu"
        LOCK = "lock"
        OFF_CPU = "off-cpu"
        EXACT = "exact"
        WAITING = "waiting"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="profiles")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.CPU)
    # The sum of the tree's weights: samples, nanoseconds, instructions, or cycles waited per operation.
    samples = models.PositiveBigIntegerField()
    # Waits, where the weights are nanoseconds; 0 where they are samples themselves.
    waits = models.PositiveBigIntegerField(default=0)
    # Samples the kernel dropped for want of room, and times it paused because they came too often.
    lost = models.PositiveBigIntegerField(default=0)
    throttled = models.PositiveBigIntegerField(default=0)
    # Elapsed under this profiler over elapsed without, minus 1, measured in the same boot.
    overhead = models.FloatField(null=True, blank=True)
    # Why the end of perf.data is missing.
    truncated = models.CharField(max_length=200, blank=True, default="")
    kernel_build_id = models.CharField(max_length=40, blank=True, default="")
    tree = models.BinaryField()
    # Of an exact profile: the same nodes with how often each was called, and the operations of the workload they cover.
    calls = models.BinaryField(null=True, blank=True)
    operations = models.PositiveBigIntegerField(default=0, db_default=0)
    # Where its kernel functions begin in the source: lab/profiles/analysis/source_lines.py.
    lines = models.BinaryField(null=True, blank=True)
    # Of the raw file: lab/storage/raw_profiles.py says where it is.
    perf_data_sha256 = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["run", "kind"], name="profile_once_a_kind"),)

    def __str__(self) -> str:
        return f"{self.kind}: {self.samples}"


class Comparison(models.Model):
    """One metric of one variant against the base; ratios are candidate over base."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="comparisons")
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="comparisons")
    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="comparisons")
    metric = models.CharField(max_length=60)
    unit = models.CharField(max_length=30, blank=True, default="")
    better = models.CharField(max_length=10)
    primary = models.BooleanField(default=False)
    # Paired boots that count; medians of the per-boot medians over just these.
    boots = models.PositiveIntegerField()
    base_median = models.FloatField(null=True, blank=True)
    median = models.FloatField(null=True, blank=True)
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    # Of "no change", as it is and adjusted for all metrics of the experiment.
    p_value = models.FloatField(null=True, blank=True)
    q_value = models.FloatField(null=True, blank=True)
    # The shift of the logarithm in standard deviations between boots.
    effect = models.FloatField(null=True, blank=True)
    # How much two kernels differ for no reason, as a fraction: smaller shifts are not called changes.
    floor = models.FloatField(default=0.0)
    # True while boots that were asked for are missing.
    partial = models.BooleanField(default=False)
    verdict = models.CharField(max_length=15, choices=CHOICES)
    boots_needed = models.PositiveIntegerField(null=True, blank=True)
    reason = models.TextField(blank=True, default="")
    # What a reader should know before believing it, a line each.
    notes = models.JSONField(default=list)
    margin = models.FloatField()
    method = models.CharField(max_length=200, blank=True, default="")
    # Of a regression: the state of the newest decision (models/note.py), so that lists find what is open by an index.
    triage = models.CharField(max_length=15, default="new", db_default="new")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["case", "variant", "metric"], name="comparison_once"),)
        # Few of all comparisons, and what people look for across experiments.
        indexes = (
            models.Index(
                fields=["-experiment", "primary"],
                name="comparison_regressions",
                condition=models.Q(verdict="regression"),
            ),
            models.Index(
                fields=["-experiment", "primary"],
                name="comparison_open",
                condition=models.Q(verdict="regression", triage__in=("new", "acknowledged")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.metric}: {self.verdict}"


class Effect(models.Model):
    """The effect of one switch over all combinations, or the interaction of two; ratios."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="effects")
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="effects")
    metric = models.CharField(max_length=60)
    # One switch: a main effect. Two: an interaction.
    switches = models.JSONField()
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    p_value = models.FloatField(null=True, blank=True)
    q_value = models.FloatField(null=True, blank=True)
    # Why there is no number, such as a combination that was pruned.
    reason = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{' × '.join(self.switches)} on {self.metric}"
