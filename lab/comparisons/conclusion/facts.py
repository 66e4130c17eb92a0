# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts that an experiment's conclusion is drawn from. collect.py reads them from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log

from lab.statistics.verdict_words import CHANGES


@dataclass(frozen=True, slots=True)
class MetricFact:
    """One primary metric of one kernel in one case against the base: ratios, None where there are none.

    cpus: the number of CPUs it is about under the contention clock. name: the metric without that number.
    """

    name: str
    verdict: str
    ratio: float | None
    low: float | None = None
    high: float | None = None
    boots: int = 0
    boots_needed: int | None = None
    margin: float = 0.02
    cpus: int | None = None

    @property
    def called(self) -> bool:
        """Return whether its verdict has a direction."""
        return self.verdict in CHANGES

    @property
    def size(self) -> float:
        """Return the distance from "no change", the same for a half and a double; 0 without a ratio."""
        return abs(log(self.ratio)) if self.ratio is not None and self.ratio > 0 else 0.0

    @property
    def least(self) -> float:
        """Return the distance of the interval's nearer end from "no change"; 0 where it holds "no change"."""
        if self.low is None or self.high is None or self.low <= 0 or self.low <= 1 <= self.high:
            return 0.0
        return min(abs(log(self.low)), abs(log(self.high)))


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel to be judged. state: as a variant's. same_code: its image has the base's code. lab_fault: of a failed build."""

    name: str
    switches: tuple[str, ...] = ()
    state: str = "ready"
    lab_fault: bool = False
    same_code: bool = False


@dataclass(frozen=True, slots=True)
class FailedBoots:
    """Boots of one kernel that ended alike. outcome: as a run's, such as "panicked"."""

    kernel: str
    boots: int
    outcome: str
    lab_fault: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """Two switches whose interaction is significant: together they do more, or less, than each alone."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """One workload. points: of each kernel by its name. control: of the base against itself; empty without one.

    failed: of kernels to be judged. base: how the base's boots ended where none finished, so that nothing can be compared.
    """

    id: int
    name: str
    points: Mapping[str, tuple[MetricFact, ...]]
    control: tuple[MetricFact, ...] = ()
    failed: tuple[FailedBoots, ...] = ()
    together: tuple[Together, ...] = ()
    base: FailedBoots | None = None


@dataclass(frozen=True, slots=True)
class Locks:
    """The functions of locks that the patches change, and their share of the base's CPU samples, where it was sampled."""

    symbols: tuple[str, ...] = ()
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """One experiment. boots_open: measured boots that are still to come; boots_lost: those that never counted.

    kernels: the candidates. arms: boots in each block, over all cases. boot_seconds: of a typical boot. locks: None
    where no patch changes one.
    """

    state: str
    clock: str
    cases: tuple[CaseFacts, ...]
    kernels: tuple[Kernel, ...]
    base: Kernel = Kernel("base")
    boots_asked: int = 0
    boots_open: int = 0
    boots_lost: int = 0
    arms: int = 0
    boot_seconds: float | None = None
    locks: Locks | None = None

    def about(self, switch: str) -> Facts:
        """Return the facts of only those kernels that have this switch."""
        kernels = tuple(kernel for kernel in self.kernels if switch in kernel.switches)
        kept = {kernel.name for kernel in kernels} | {self.base.name}
        cases = tuple(
            replace(
                case,
                points={name: points for name, points in case.points.items() if name in kept},
                failed=tuple(boots for boots in case.failed if boots.kernel in kept),
                together=tuple(pair for pair in case.together if switch in (pair.first, pair.second)),
            )
            for case in self.cases
        )
        return replace(self, kernels=kernels, cases=cases)

    @property
    def is_open(self) -> bool:
        """Return whether the experiment is unfinished."""
        return self.state in {"queued", "running"}

    @property
    def fine(self) -> bool:
        """Return whether numbers deserve two digits, as exact counts do."""
        return self.clock == "instructions"
