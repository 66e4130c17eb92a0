# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep what boots of one kernel varied by, for `bench.stats` to draw its simulations from.

Run an experiment without switches (the base and its twin, the same kernel) on a quiet machine, then

    python -m bench.noise EXPERIMENT...

writes one small file for each case and primary metric to bench/noise/: boots in the order they ran,
the values of their iterations, and where they ran.
"""

import json
from pathlib import Path

import workers.app  # noqa: F401  makes Django ready before lab is imported
from bench.command import run
from lab.models import Case, Run

PLACE = Path(__file__).with_name("noise")


def main(experiments: list[int]) -> None:
    """Export every case of the experiments."""
    PLACE.mkdir(exist_ok=True)
    for case in Case.objects.filter(experiment__in=experiments):
        counted = Run.objects.filter(case=case, purpose="measured", state="done", invalid=[])
        for metric in case.metrics:
            if metric["primary"]:
                _export(case, list(counted.order_by("started_at")), metric["name"], metric["unit"])


def _export(case: Case, runs: list[Run], metric: str, unit: str) -> None:
    boots = []
    for boot in runs:
        values = boot.samples.filter(metric=metric, warmup=False).order_by("iteration")
        boots.append([float(f"{value:.5g}") for value in values.values_list("value", flat=True)])
    host = runs[0].environment.get("host", {}) if runs else {}
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
    path.write_text(json.dumps(about).replace("]], ", "]],\n").replace("], [", "],\n[") + "\n")
    print(f"{path}: {len(boots)} boots")


if __name__ == "__main__":
    run(main)
