# SPDX-License-Identifier: GPL-2.0-or-later
"""The experiments that are made one by one: their boots, samples and profiles, compared by the lab's own code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from lab.comparisons.compare import compare_experiment
from lab.models import Build, Case, Experiment, Profile, Run, Sample, Switch, Target, Tree, User, Variant
from lab.models.states import Role
from lab.tests.large_lab.size import METRICS, TWO_CASES_EVERY

# Each with a number of threads; with a tree they make a trend.
WORKLOADS = tuple(
    (workload, threads)
    for workload in ("showgids", "stat-walk", "bh-lookup", "cyclictest-bh")
    for threads in (1, 2, 4)
)[:10]
VARIANTS = (("base", Role.BASE, ()), ("base-again", Role.AA, ()), ("mine", Role.CANDIDATE, ("mine",)))
DIFF = "diff --git a/fs/x.c b/fs/x.c\n--- a/fs/x.c\n+++ b/fs/x.c\n@@ -1 +1 @@\n-int a;\n+int b;\n"
# By the number of the experiment, modulo 10: what its patch costs.
COSTS = {0: 1.06, 3: 0.93, 7: 1.015}
_KINDS = (Profile.Kind.CPU, Profile.Kind.OFF_CPU, Profile.Kind.LOCK, Profile.Kind.WAITING)
# An experiment begins so long after the one before.
EVERY = timedelta(minutes=57)


@dataclass(frozen=True)
class Ground:
    """The rows that experiments stand on, and the packed profiles that they choose from."""

    trees: list[Tree]
    targets: list[Target]
    people: list[User]
    start: datetime
    bodies: list[tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """One experiment: its number, its boots of each variant, their iterations, and its profiles."""

    number: int
    boots: int
    iterations: int
    profiles: int

    @property
    def place(self) -> int:
        """Return the position of its base in the tree's history."""
        return self.number // 50

    def tree(self, ground: Ground) -> Tree:
        """Return its tree."""
        return ground.trees[self.number % 50 % len(ground.trees)]


def commit_of(tree_id: int, place: int) -> str:
    """Return a commit id that is the same each time."""
    return f"{tree_id:08x}{place:032x}"


def make_template(plan: Plan, ground: Ground, draw: np.random.Generator) -> Experiment:
    """Make one finished experiment with all that hangs on it."""
    created = ground.start + EVERY * plan.number
    experiment = _experiment(plan, ground, created)
    title = f"fs: patch {plan.number}"
    Switch.objects.create(
        experiment=experiment, position=0, name="mine", kind="patch", title=title, text=DIFF
    )
    cases = list(_cases(experiment, plan))
    variants = list(_variants(experiment, plan, created))
    runs = list(_runs(experiment, cases, variants, created))
    _place_runs(runs, experiment, ground)
    Run.objects.bulk_create(runs)
    Sample.objects.bulk_create(_samples(plan, runs, draw), batch_size=2000)
    Profile.objects.bulk_create(_profiles(plan, runs, ground))
    compare_experiment(experiment.pk)
    return experiment


def _experiment(plan: Plan, ground: Ground, created: datetime) -> Experiment:
    tree = plan.tree(ground)
    target = ground.targets[plan.number % 50 % len(ground.targets)]
    row = Experiment.objects.create(
        name=f"{tree.name}: patch {plan.number}",
        spec={"name": f"patch {plan.number}", "tree": tree.name},
        digest=f"{plan.number:064x}",
        state="done",
        tree=tree,
        base_name=f"v6.{plan.place}",
        base_commit=commit_of(tree.pk, plan.place),
        base_tree_id=f"{plan.place:040x}",
        design="full",
        target=target,
        group=target.group,
        boots=plan.boots,
        iterations=plan.iterations,
        warmup=1,
        profile=plan.profiles > 0,
        verify=False,
        seed=1,
        submitter=ground.people[plan.number % len(ground.people)],
        started_at=created,
        finished_at=created + timedelta(minutes=30),
    )
    Experiment.objects.filter(pk=row.pk).update(created_at=created)
    return row


def _cases(experiment: Experiment, plan: Plan) -> Iterator[Case]:
    metrics = [
        {"name": name, "unit": unit, "better": "lower", "margin": 0.02, "primary": primary}
        for name, unit, primary in METRICS
    ]
    number = 2 if plan.number % TWO_CASES_EVERY == TWO_CASES_EVERY - 1 else 1
    for position in range(number):
        workload, threads = WORKLOADS[(plan.number % 50 // 5 + position) % len(WORKLOADS)]
        yield Case.objects.create(
            experiment=experiment,
            position=position,
            workload=workload,
            preset="small",
            params={"threads": threads},
            metrics=metrics,
        )


def _variants(experiment: Experiment, plan: Plan, created: datetime) -> Iterator[Variant]:
    builds: dict[tuple[str, ...], Build] = {}
    for position, (name, role, switches) in enumerate(VARIANTS):
        if switches not in builds:
            builds[switches] = Build.objects.create(
                inputs=f"{plan.number}-{name}",
                artifact_key=f"{2 * plan.number + position:064x}",
                tree_id=f"{plan.place:040x}",
                commit=experiment.base_commit,
                state="built",
                request={"fragments": [["guest", "CONFIG_SMP=y\n"]], "cc": "gcc"},
                release=f"6.1.0-k{plan.number:x}{position}",
                code_hash=f"{plan.number}-{position}",
                cpu_seconds=20.0,
                wall_seconds=12.0,
                started_at=created,
                finished_at=created + timedelta(seconds=12),
            )
        yield Variant.objects.create(
            experiment=experiment,
            position=position,
            name=name,
            role=role,
            switches=list(switches),
            state="ready",
            build=builds[switches],
            commit=experiment.base_commit,
        )


def _runs(
    experiment: Experiment, cases: list[Case], variants: list[Variant], created: datetime
) -> Iterator[Run]:
    """The measured boots in blocks, then a profiled one of each variant; every fourth experiment lost a boot first."""
    places = [
        (block, case, variant, "measured")
        for block in range(experiment.boots)
        for case in cases
        for variant in variants
    ]
    places += [(experiment.boots, case, variant, "profiled") for case in cases for variant in variants]
    for position, (block, case, variant, purpose) in enumerate(places):
        began = created + timedelta(seconds=20 * position)
        yield Run(
            experiment=experiment,
            variant=variant,
            case=case,
            block=block,
            position=position,
            purpose=purpose,
            state="done",
            outcome="finished",
            environment={"guest": {"release": "6.1"}, "host": {"load": 0.4}, "machine": {"vcpus": 2}},
            steps={"boot": 2.0, "workload": 9.0, "collect": 0.4},
            started_at=began,
            finished_at=began + timedelta(seconds=18),
        )


def _place_runs(runs: list[Run], experiment: Experiment, ground: Ground) -> None:
    """Give each boot a target of the experiment's group, and let the lab lose one boot of every fourth experiment."""
    equal = [target for target in ground.targets if target.group and target.group == experiment.group]
    for run in runs:
        run.target = equal[run.block % len(equal)] if equal else experiment.target
    if experiment.pk % 4 == 0:
        lost, whole = Run(**{name: getattr(runs[0], name) for name in _COPIED}), runs[0]
        lost.position, lost.state, lost.outcome, lost.blame = len(runs), "failed", "lost", "lab"
        lost.problem = "the guest's console ended before the workload began"
        whole.retake = 1
        runs.append(lost)


_COPIED = ("experiment", "variant", "case", "block", "purpose", "target", "started_at", "finished_at")


def _samples(plan: Plan, runs: list[Run], draw: np.random.Generator) -> Iterator[Sample]:
    """Lognormal noise of 2 % between boots and 1 % within; some patches cost or save something."""
    for run in runs:
        if run.state != "done" or run.purpose != "measured":
            continue
        slower = COSTS.get(plan.number % 10, 1.0) if run.variant.role == Role.CANDIDATE else 1.0
        boot = np.exp(draw.normal(0, 0.02, len(METRICS)))
        noise = np.exp(draw.normal(0, 0.01, (plan.iterations + 1, len(METRICS))))
        for iteration in range(plan.iterations + 1):
            for column, (metric, _, _) in enumerate(METRICS):
                value = 1000.0 * (column + 1) * slower * boot[column] * noise[iteration, column]
                yield Sample(
                    run=run, metric=metric, iteration=iteration, warmup=iteration == 0, value=float(value)
                )


def _profiles(plan: Plan, runs: list[Run], ground: Ground) -> Iterator[Profile]:
    places = [(run, kind) for kind in _KINDS for run in runs if run.purpose == "profiled"]
    for at, (run, kind) in enumerate(places[: plan.profiles]):
        tree, samples = ground.bodies[(plan.number * 7 + at) % len(ground.bodies)]
        yield Profile(
            run=run,
            kind=kind,
            samples=samples,
            tree=tree,
            perf_data_sha256=f"{plan.number:032x}{at:032x}",
        )
