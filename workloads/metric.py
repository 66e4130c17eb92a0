# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's metrics: units, directions, and metrics that exist once per member of a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from workloads.instruction_clock import FLOOR, UNIT, Clock
from workloads.param import label

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Metric:
    """The meaning of one value of an iteration.

    margin: the relative change below which a difference is ignored; 0.03 is 3 %.
    primary: whether a verdict on the case depends on the metric; the others explain.
    each: name of an int-list parameter; the metric then exists once per member.
    instructions: its name under the instruction clock, where it counts instead of timing; "" if it means nothing
        there. instructions_margin: its margin there.
    """

    name: str
    unit: str
    better: Better
    margin: float
    primary: bool
    help: str = ""
    each: str = ""
    instructions: str = ""
    instructions_margin: float = FLOOR

    def on(self, clock: Clock) -> Metric | None:
        """Return the metric under a clock; None if it has no meaning there."""
        if clock != "instructions":
            return self
        if not self.instructions:
            return None
        return replace(self, name=self.instructions, unit=UNIT, margin=self.instructions_margin)

    def expand(self, members: tuple[int, ...]) -> tuple[Metric, ...]:
        """Return the metrics it stands for, one per member; only itself without `each`."""
        if not self.each:
            return (self,)
        return tuple(replace(self, name=f"{self.name}_{label(member)}", each="") for member in members)
