# SPDX-License-Identifier: GPL-2.0-or-later
"""Fills an empty database with a lab's work of some months: experiments, boots, samples, profiles, targets.

    KPERFLAB_HOME=DIR KPERFLAB_DATABASE=URL python -m bench.load_store [--experiments 1000] [--samples 1000000] [--profiles N] [--targets N]

The rows are those of lab/tests/large_lab. More than 100 experiments need PostgreSQL, which copies them.
"""

import time

from django.core.management import call_command

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench.command import run
from lab.models import Experiment, Profile, Run, Sample, Target
from lab.tests.large_lab.fill import fill
from lab.tests.large_lab.size import LabSize


def main(
    experiments: int = 1000, samples: int = 1_000_000, profiles: int = 0, targets: int = 10, seed: int = 1
) -> None:
    """Make the store, unless it is made; prints what it holds."""
    call_command("migrate", verbosity=0, interactive=False)
    began = time.monotonic()
    if not Experiment.objects.exists():
        fill(
            LabSize(experiments, samples, profiles, targets),
            seed=seed,
            say=lambda line: print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True),
        )
    counted = ", ".join(
        f"{model.objects.count():,} {word}"
        for model, word in (
            (Experiment, "experiments"),
            (Run, "boots"),
            (Sample, "samples"),
            (Profile, "profiles"),
            (Target, "targets"),
        )
    )
    print(f"{counted} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    run(main)
