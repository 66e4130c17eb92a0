# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps what boots of one kernel varied by, for `bench.stats` to draw its simulations from.

Run an experiment without switches (the base and its twin, the same kernel) on a quiet machine, then

    python -m bench.noise EXPERIMENT...

writes one small file for each case and primary metric to bench/noise/: boots in the order they ran,
the values of their iterations, and where they ran.
"""

import json
import os
import sys
from pathlib import Path

import django

PLACE = Path(__file__).with_name("noise")


def main(numbers: list[str]) -> int:
    """Export every case of the given experiments."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    django.setup()
    from lab.models import Case

    if not numbers:
        print(__doc__, file=sys.stderr)
        return 64
    for case in Case.objects.filter(experiment__in=[int(number) for number in numbers]):
        for metric in case.metrics:
            if metric["primary"]:
                _export(case.pk, metric["name"], metric["unit"])
    return 0


def _export(case_id: int, metric: str, unit: str) -> None:
    from lab.models import Case, Run

    case = Case.objects.get(pk=case_id)
    runs = Run.objects.filter(case=case, purpose="measured", state="done", invalid=[]).order_by("started_at")
    boots = []
    for run in runs:
        values = run.samples.filter(metric=metric, warmup=False).order_by("iteration")
        boots.append([float(f"{value:.5g}") for value in values.values_list("value", flat=True)])
    host = runs[0].environment.get("host", {}) if boots else {}
    about = {
        "workload": case.workload,
        "preset": case.preset,
        "metric": metric,
        "unit": unit,
        "accelerator": host.get("accelerator"),
        "host_cpus": host.get("host_cpus"),
        "boots": boots,
    }
    path = PLACE / f"{case.workload}-{case.preset}-{metric}.json"
    PLACE.mkdir(exist_ok=True)
    path.write_text(json.dumps(about).replace("]], ", "]],\n").replace("], [", "],\n[") + "\n")
    print(f"{path}: {len(boots)} boots")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
