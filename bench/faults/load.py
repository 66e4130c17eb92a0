# SPDX-License-Identifier: GPL-2.0-or-later
"""Short experiments on the pretend kernel and fake targets, so that a lab is busy for as long as it is wanted."""

from dataclasses import dataclass, field
from pathlib import Path

from kernels.tests.pretend import CONFIG, FAKELINUX, PretendKernel
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment
from lab.submission import prepare
from lab.submission.submit import submit_experiment

# A build of the pretend kernel takes less than a second: too short to be hit. This one takes its time.
_SLOW = "\ntrouble-slow:\n\t@sleep {seconds}\n"


@dataclass
class Load:
    """Submits one experiment after the other, each with a kernel that was never built."""

    home: Path
    targets: tuple[str, ...]
    seed: int
    build_s: float = 1.5
    # Few, so that experiments begin and end often: those stages are the shortest.
    boots: int = 3
    submitted: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = self.home / f"pretend-{self.seed}"
        place.mkdir(parents=True)
        self.kernel = PretendKernel(place)
        # The pretend kernel's Kconfig knows nothing of guests.
        prepare._base_fragments = lambda: list(CONFIG.fragments)

    def submit(self) -> int:
        """One more experiment; returns its number."""
        number = len(self.submitted)
        target = self.targets[number % len(self.targets)]
        experiment = submit_experiment(spec=self.spec(number, target), home=self.home)
        self.submitted.append(experiment.pk)
        return experiment.pk

    def submit_plain(self) -> int:
        """An experiment of the base alone and the base once more, as a pretend kernel that was built before; its number."""
        spec = self.spec(0, self.targets[0]).model_copy(update={"patches": ()})
        return submit_experiment(spec=spec, home=self.home).pk

    def keep_going(self, waiting: int) -> None:
        """Submit until so many experiments on these targets are open."""
        still_open = Experiment.objects.filter(state__in=("queued", "running"), target__name__in=self.targets)
        missing = waiting - still_open.count()
        for _ in range(missing):
            self.submit()

    def spec(self, number: int, target: str) -> ExperimentSpec:
        """The description of one of them."""
        return spec_from_mapping(
            {
                "name": f"under faults {number}",
                "git": str(self.kernel.work),
                "base": self.kernel.base.commit,
                "patches": [{"name": "p", "text": self._patch(number)}],
                "cases": [{"workload": "showgids", "preset": "smoke"}],
                "measure": {"boots": self.boots, "iterations": 2, "warmup": 1},
                "target": target,
            }
        )

    def _patch(self, number: int) -> str:
        inode = (FAKELINUX / "fs/inode.c").read_text()
        files: dict[str, str | Path | None] = {
            "fs/inode.c": inode.replace("WARN_HERE();", f"WARN_HERE(); /* {self.seed} */ ino += {number}UL;"),
            "Makefile": (FAKELINUX / "Makefile").read_text() + _SLOW.format(seconds=self.build_s),
            "trouble.h": "slow\n",
        }
        return self.kernel.diff(self.kernel.variant(files))
