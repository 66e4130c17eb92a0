# SPDX-License-Identifier: GPL-2.0-or-later
"""Fills an empty database with a lab's work of some months: experiments, boots and samples with made numbers.

    KPERFLAB_HOME=DIR python -m bench.load_store [--experiments 1000] [--samples 1000000]

Every tenth experiment has a regression; the base drifts a little over 200 revisions with one step. Rows are written in
bulk, so nothing of the lab's own path is measured here; comparisons are computed by it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from lab.comparisons.compare import compare_experiment  # noqa: E402
from lab.models import (  # noqa: E402
    Build,
    Case,
    Experiment,
    Revision,
    Run,
    Sample,
    Switch,
    Target,
    Tree,
    User,
    Variant,
)
from lab.models.states import Role  # noqa: E402

METRICS = (
    ("elapsed", "s", True),
    ("ns_per_open", "ns", True),
    ("user", "s", False),
    ("system", "s", False),
    ("instructions", "", False),
)
WORKLOADS = ("showgids", "stat-walk", "bh-lookup", "cyclictest-bh")
ARMS = (("base", Role.BASE, ()), ("base-again", Role.AA, ()), ("mine", Role.CANDIDATE, ("mine",)))
REVISIONS = 200
BOOTS = 10
_DIFF = "diff --git a/fs/x.c b/fs/x.c\n--- a/fs/x.c\n+++ b/fs/x.c\n@@ -1 +1 @@\n-int a;\n+int b;\n"


def main() -> int:
    """Make the store; prints what it holds."""
    options = _options()
    call_command("migrate", verbosity=0, interactive=False)
    if Experiment.objects.count() >= options.experiments:
        return 0
    began = time.monotonic()
    draw = np.random.default_rng(options.seed)
    ground = _Ground()
    iterations = max(2, round(options.samples / options.experiments / (len(ARMS) * BOOTS * len(METRICS))))
    for number in range(options.experiments):
        with transaction.atomic():
            _experiment(number, ground, iterations, draw)
    print(
        f"{Experiment.objects.count():,} experiments, {Run.objects.count():,} boots, {Sample.objects.count():,} samples"
        f" in {time.monotonic() - began:.0f} s"
    )
    return 0


class _Ground:
    """The rows that experiments need: trees with their history, a target, people, and the first day."""

    def __init__(self) -> None:
        self.target, _ = Target.objects.get_or_create(name="guest")
        self.trees = [
            Tree.objects.create(name=name, kind="git", location=f"/srv/{name}", default_revision="master")
            for name in ("mainline", "vfs", "mm")
        ]
        Revision.objects.bulk_create(
            Revision(
                tree=tree,
                commit=commit_of(tree, place),
                position=place,
                subject=f"{tree.name}: change {place}",
                author="A. Developer <a@example.org>",
            )
            for tree in self.trees
            for place in range(REVISIONS)
        )
        self.people = [
            User.objects.create(username=name, role=User.Role.SUBMITTER) for name in ("alice", "dora", "erik")
        ]
        self.start = timezone.now() - timedelta(days=120)


def commit_of(tree: Tree, place: int) -> str:
    """A commit id that is the same each time."""
    return f"{tree.pk:08x}{place:032x}"


def _experiment(number: int, ground: _Ground, iterations: int, draw: np.random.Generator) -> None:
    tree, place = ground.trees[number % 3], (number // 3) % REVISIONS
    created = ground.start + timedelta(hours=2.5 * number)
    experiment = Experiment.objects.create(
        name=f"{tree.name}: patch {number}",
        spec={"name": f"patch {number}", "tree": tree.name},
        digest=f"{number:064x}",
        state="done",
        tree=tree,
        base_name=f"v6.{place}",
        base_commit=commit_of(tree, place),
        base_tree_id=f"{place:040x}",
        design="full",
        target=ground.target,
        boots=BOOTS,
        iterations=iterations,
        warmup=1,
        profile=False,
        verify=False,
        seed=1,
        submitter=ground.people[number % 3],
        started_at=created,
        finished_at=created + timedelta(minutes=30),
    )
    Experiment.objects.filter(pk=experiment.pk).update(created_at=created)
    Switch.objects.create(
        experiment=experiment, position=0, name="mine", kind="patch", title=f"fs: patch {number}", text=_DIFF
    )
    metrics = [
        {"name": name, "unit": unit, "better": "lower", "margin": 0.02, "primary": primary}
        for name, unit, primary in METRICS
    ]
    case = Case.objects.create(
        experiment=experiment,
        position=0,
        workload=WORKLOADS[number % 4],
        preset="small",
        params={"threads": 2},
        metrics=metrics,
    )
    variants = list(_variants(experiment, number, place))
    runs = list(_runs(experiment, case, variants, created))
    Run.objects.bulk_create(runs)
    Sample.objects.bulk_create(_samples(number, place, runs, iterations, draw), batch_size=2000)
    compare_experiment(experiment.pk)


def _variants(experiment: Experiment, number: int, place: int) -> Iterator[Variant]:
    builds: dict[tuple[str, ...], Build] = {}
    for position, (name, role, switches) in enumerate(ARMS):
        if switches not in builds:
            builds[switches] = Build.objects.create(
                inputs=f"{number}-{name}",
                tree_id=f"{place:040x}",
                commit=experiment.base_commit,
                state="built",
                request={"fragments": [["guest", "CONFIG_SMP=y\n"]], "cc": "gcc"},
                release=f"6.1.0-k{number:x}{position}",
                code_hash=f"{number}-{position}",
                cpu_seconds=20.0,
                wall_seconds=12.0,
            )
        yield Variant.objects.create(
            experiment=experiment,
            position=position,
            name=name,
            role=role,
            switches=list(switches),
            state="ready",
            build=builds[switches],
        )


def _runs(experiment: Experiment, case: Case, variants: list[Variant], created: datetime) -> Iterator[Run]:
    for block in range(BOOTS):
        for place, variant in enumerate(variants):
            position = block * len(variants) + place
            began = created + timedelta(seconds=20 * position)
            yield Run(
                experiment=experiment,
                variant=variant,
                case=case,
                block=block,
                position=position,
                state="done",
                outcome="finished",
                environment={"guest": {"release": "6.1"}, "host": {"load": 0.4}, "machine": {"vcpus": 2}},
                started_at=began,
                finished_at=began + timedelta(seconds=18),
            )


def _samples(
    number: int, place: int, runs: list[Run], iterations: int, draw: np.random.Generator
) -> Iterator[Sample]:
    """Lognormal noise of 2 % between boots and 1 % within; every tenth patch costs 6 %."""
    step = 1.04 if place >= REVISIONS // 2 else 1.0
    for run in runs:
        slower = 1.06 if number % 10 == 0 and run.variant.role == Role.CANDIDATE else 1.0
        boot = np.exp(draw.normal(0, 0.02, len(METRICS)))
        noise = np.exp(draw.normal(0, 0.01, (iterations + 1, len(METRICS))))
        for iteration in range(iterations + 1):
            for column, (metric, _, _) in enumerate(METRICS):
                value = 1000.0 * (column + 1) * step * slower * boot[column] * noise[iteration, column]
                yield Sample(
                    run=run, metric=metric, iteration=iteration, warmup=iteration == 0, value=float(value)
                )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
