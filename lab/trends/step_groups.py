# SPDX-License-Identifier: GPL-2.0-or-later
"""Group steps of trends by their cause: all steps of one case on one target between the same revisions are one row. Pure."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lab.trends.page import StepView, TrendLine


class Stepped(Protocol):
    """A trend with its steps."""

    @property
    def line(self) -> TrendLine:
        """Return the trend's identity."""

    @property
    def steps(self) -> tuple[StepView, ...]:
        """Return its steps, the oldest first."""


@dataclass(frozen=True, slots=True)
class MetricStep:
    """The step of one metric."""

    line: TrendLine
    step: StepView

    @property
    def size(self) -> float:
        """Return how large the step is, as a natural logarithm; halving and doubling are equal."""
        ratio = self.step.ratio
        return abs(math.log(ratio)) if ratio and ratio > 0 and math.isfinite(ratio) else 0.0


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Steps with one cause. metrics: deciding ones first, then the largest change first."""

    metrics: tuple[MetricStep, ...]

    @property
    def lead(self) -> MetricStep:
        """Return the metric that represents the group."""
        return self.metrics[0]

    @property
    def verdict(self) -> str:
        """Return "regression" if a deciding metric got worse or, where no metric decides, if any did."""
        deciding = [metric for metric in self.metrics if metric.line.primary] or list(self.metrics)
        worse = any(metric.step.verdict == "regression" for metric in deciding)
        return "regression" if worse else "improvement"

    @property
    def pending(self) -> bool:
        """Return whether the step is pending in every metric."""
        return all(metric.step.pending for metric in self.metrics)

    @property
    def pick(self) -> str:
        """Return the name by which a form picks the group: its trends, and the first revision behind the step."""
        return f"{'-'.join(metric.line.key for metric in self.metrics)}:{self.lead.step.bad.commit}"


def group_steps(trends: Iterable[Stepped]) -> tuple[StepGroup, ...]:
    """Return the steps of trends by cause: sure ones first, then regressions, then the largest change."""
    groups: dict[tuple[str, ...], list[MetricStep]] = defaultdict(list)
    for trend in trends:
        for step in trend.steps:
            groups[_cause(trend.line, step)].append(MetricStep(trend.line, step))
    step_groups = [
        StepGroup(
            tuple(sorted(of, key=lambda metric: (not metric.line.primary, -metric.size, metric.line.metric)))
        )
        for of in groups.values()
    ]
    step_groups.sort(key=lambda group: (group.pending, group.verdict != "regression", -group.lead.size))
    return tuple(step_groups)


def _cause(line: TrendLine, step: StepView) -> tuple[str, ...]:
    """Return what steps of one cause share: the case, the machine, and the revisions on both sides."""
    case = (line.tree, line.workload, line.preset, json.dumps(line.params, sort_keys=True))
    return *case, line.target, line.clock, line.config, step.good.commit, step.bad.commit
