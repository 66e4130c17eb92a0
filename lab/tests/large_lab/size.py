# SPDX-License-Identifier: GPL-2.0-or-later
"""The size of a made lab."""

from __future__ import annotations

from dataclasses import dataclass

METRICS = (
    ("elapsed", "s", True),
    ("ns_per_open", "ns", True),
    ("user", "s", False),
    ("system", "s", False),
    ("instructions", "", False),
)
ARMS = 3
# Every fifth experiment has a second case.
TWO_CASES_EVERY = 5


@dataclass(frozen=True, slots=True)
class LabSize:
    """The rows of a lab. templates: experiments made one by one; what goes beyond them are copies, all of them at once."""

    experiments: int = 1000
    samples: int = 1_000_000
    profiles: int = 0
    targets: int = 10
    templates: int = 100
    boots: int = 10

    @property
    def copies(self) -> int:
        """Return how often the templates are there, themselves included."""
        return max(1, -(-self.experiments // self.templates))

    @property
    def open(self) -> int:
        """Return how many experiments run or wait, besides those that are over."""
        return self.targets * 2 // 5

    @property
    def iterations(self) -> int:
        """Return the iterations of a boot that come near the number of samples; a warm-up comes on top."""
        cases = 1 + 1 / TWO_CASES_EVERY
        each = self.samples / self.experiments / (cases * ARMS * self.boots * len(METRICS))
        return max(2, round(each) - 1)

    @property
    def profiles_each(self) -> int:
        """Return the profiles of each experiment."""
        return round(self.profiles / self.experiments)
