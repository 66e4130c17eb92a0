# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's metrics: units, directions, and metrics that exist once per member of a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from workloads.param import label

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What one value of an iteration means.

    margin: the relative change below which two variants count as equal; 0.03 is 3 %.
    primary: the metrics that a verdict on the case is about; the others explain.
    each: name of an int-list parameter; the metric then exists once per member.
    """

    name: str
    unit: str
    better: Better
    margin: float
    primary: bool
    help: str = ""
    each: str = ""

    def expand(self, members: tuple[int, ...]) -> tuple[Metric, ...]:
        """The metrics it stands for, one per member; itself if it exists once only."""
        if not self.each:
            return (self,)
        return tuple(replace(self, name=f"{self.name}_{label(member)}", each="") for member in members)
