# SPDX-License-Identifier: GPL-2.0-or-later
"""Fills an empty database with a lab's work of some months: experiments, boots, samples, profiles, targets.

    KPERFLAB_HOME=DIR KPERFLAB_DATABASE=URL python -m bench.load_store [--experiments 1000] [--samples 1000000] [--profiles N] [--targets N]

The rows are those of lab/tests/large_lab. More than 100 experiments need PostgreSQL, which copies them.
"""

from __future__ import annotations

import argparse
import os
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from lab.models import Experiment, Profile, Run, Sample, Target  # noqa: E402
from lab.tests.large_lab.fill import fill  # noqa: E402
from lab.tests.large_lab.size import LabSize  # noqa: E402


def main() -> int:
    """Make the store, unless it is made; prints what it holds."""
    options = _options()
    call_command("migrate", verbosity=0, interactive=False)
    began = time.monotonic()
    if not Experiment.objects.exists():
        fill(
            LabSize(options.experiments, options.samples, options.profiles, options.targets),
            seed=options.seed,
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
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--profiles", type=int, default=0)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
