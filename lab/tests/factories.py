# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows for tests, each with defaults for what a test does not care about."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from lab.models import (
    Bisection,
    BisectionStep,
    Build,
    Case,
    Comparison,
    Experiment,
    Run,
    Switch,
    Target,
    Tree,
    User,
    Variant,
)
from lab.models.states import Outcome, Purpose, Role, RunState
from lab.runs.claim import Claim
from lab.runs.claiming import _PLACE, _may_boot, _take, claim_build
from lab.runs.record import BuildSuccess, RunRecord, SampleValue, record_build_success, record_run
from lab.targets.quarantine import FAULTS_IN_A_ROW, note_fault
from lab.targets.usable import usable_targets

NS_PER_OPEN = {"name": "ns_per_open", "unit": "ns", "better": "lower", "margin": 0.02, "primary": True}
USER = {"name": "user", "unit": "s", "better": "lower", "margin": 0.05, "primary": False}
ME = "host:1:1"


def make_user(username: str, role: User.Role = User.Role.SUBMITTER, **fields: Any) -> User:
    """Somebody without a password: tests sign in with `force_login`, which needs none."""
    return User.objects.create(username=username, role=role, **fields)


def make_experiment(**fields: Any) -> Experiment:
    tree, _ = Tree.objects.get_or_create(
        name="tiny", defaults={"kind": "git", "location": "/srv/tiny", "default_revision": "v1"}
    )
    defaults: dict[str, Any] = {
        "name": "an experiment",
        "spec": {},
        "digest": "d" * 64,
        "tree": tree,
        "base_name": "v1",
        "base_commit": "c" * 40,
        "base_tree_id": "t" * 40,
        "design": "full",
        "target": Target.objects.get_or_create(name="guest")[0],
        "boots": 5,
        "iterations": 2,
        "warmup": 1,
        "profile": False,
        "verify": False,
        "seed": 1,
    }
    return Experiment.objects.create(**(defaults | fields))


def make_build(inputs: str, **fields: Any) -> Build:
    request = {
        "tree": "tiny",
        "base_name": "v1",
        "base_commit": "c" * 40,
        "base_tree_id": "t" * 40,
        "config_base": "tiny",
        "fragments": [["guest", "CONFIG_SMP=y\n"]],
        "base_fragments": [["guest", "CONFIG_SMP=y\n"]],
        "cc": "gcc",
        "modules_of": [],
    }
    defaults: dict[str, Any] = {"tree_id": "t" * 40, "commit": "c" * 40, "request": request}
    return Build.objects.create(inputs=inputs, **(defaults | fields))


def make_variant(
    experiment: Experiment, *switches: str, build: Build | None = None, **fields: Any
) -> Variant:
    name = fields.get("name") or "+".join(switches) or "base"
    if build is None:
        build = make_build(f"{experiment.pk}/{name}")
    defaults: dict[str, Any] = {
        "position": experiment.variants.count(),
        "name": name,
        "role": Role.CANDIDATE if switches else Role.BASE,
    }
    return Variant.objects.create(
        experiment=experiment, switches=list(switches), build=build, **(defaults | fields)
    )


def make_twin(experiment: Experiment) -> Variant:
    """The base once more, from the base's own build."""
    base = experiment.variants.get(role=Role.BASE)
    return make_variant(experiment, build=base.build, name="base-again", role=Role.AA)


def make_case(experiment: Experiment, **fields: Any) -> Case:
    defaults: dict[str, Any] = {
        "position": experiment.cases.count(),
        "workload": "showgids",
        "preset": "smoke",
        "params": {"threads": 2},
        "metrics": [NS_PER_OPEN, USER],
    }
    return Case.objects.create(experiment=experiment, **(defaults | fields))


def make_run(variant: Variant, case: Case, **fields: Any) -> Run:
    defaults: dict[str, Any] = {"block": 0, "purpose": Purpose.MEASURED}
    defaults["position"] = variant.experiment.runs.count()
    return Run.objects.create(
        experiment=variant.experiment, variant=variant, case=case, **(defaults | fields)
    )


def make_comparison(case: Case, variant: Variant, **fields: Any) -> Comparison:
    defaults: dict[str, Any] = {
        "metric": "ns_per_open",
        "unit": "ns",
        "better": "lower",
        "primary": True,
        "boots": 5,
        "base_median": 100.0,
        "median": 120.0,
        "ratio": 1.2,
        "low": 1.18,
        "high": 1.22,
        "q_value": 0.001,
        "verdict": "regression",
        "margin": 0.02,
    }
    return Comparison.objects.create(
        experiment=case.experiment, case=case, variant=variant, **(defaults | fields)
    )


def make_patch_switch(experiment: Experiment, name: str, **fields: Any) -> Switch:
    position = experiment.switches.count()
    return Switch.objects.create(
        experiment=experiment, position=position, name=name, kind="patch", **({"text": "diff"} | fields)
    )


def make_grid(switches: Sequence[tuple[str, ...]] = (("p",),), blocks: int = 2) -> Experiment:
    """An experiment with a base, one variant for each group of switches, one case and its runs."""
    experiment = make_experiment(boots=blocks)
    variants = [make_variant(experiment), *(make_variant(experiment, *group) for group in switches)]
    case = make_case(experiment)
    for block in range(blocks):
        for variant in variants:
            make_run(variant, case, block=block)
    return experiment


def quarantine_target(target_id: int, problem: str) -> bool:
    """Note the last of the faults of the lab that put a target into quarantine; False if it is there already."""
    Target.objects.filter(pk=target_id).update(faults=FAULTS_IN_A_ROW - 1)
    return note_fault(target_id, problem)


def claimed_build(build: Build) -> Claim:
    claim = claim_build(build.pk, by=ME)
    assert claim is not None
    return claim


def claim_run(run_id: int, *, by: str, lease_s: float | None = None) -> Claim | None:
    """Claim this very run, next or not; None if it no longer waits, or its target boots another or may not boot.

    In a group that has begun no boot of its block it goes to the first target that is free.
    """
    runs = Run.objects.select_related("experiment").only(*_PLACE)
    run = runs.filter(pk=run_id, state=RunState.QUEUED).first()
    if run is None:
        return None
    places = Target.objects.filter(pk=run.target_id or run.experiment.target_id)
    if run.experiment.group and run.target_id is None:
        places = usable_targets().filter(group=run.experiment.group)
    for place in sorted(places, key=lambda target: (target.pk == run.lost_on_id, target.pk)):
        with transaction.atomic():
            row = Target.objects.select_for_update().get(pk=place.pk)
            claim = _take(run_id, row, by, lease_s) if _may_boot(row) else None
        if claim is not None:
            return claim
    return None


def claimed_run(run: Run) -> Claim:
    claim = claim_run(run.pk, by=ME)
    assert claim is not None
    return claim


def finish_build(build: Build, **fields: Any) -> None:
    defaults: dict[str, Any] = {
        "artifact_key": f"k{build.pk}",
        "release": "6.1-k1",
        "code_hash": f"h{build.pk}",
    }
    assert record_build_success(claimed_build(build), BuildSuccess(**(defaults | fields)))


def finish_builds(experiment: Experiment) -> None:
    for build in Build.objects.filter(variants__experiment=experiment).distinct():
        finish_build(build)


def samples(values: Mapping[str, Sequence[float]], warmup: int = 1) -> tuple[SampleValue, ...]:
    """Values by metric in order of iteration, the first of them warm-up."""
    return tuple(
        SampleValue(metric, iteration, iteration < warmup, value)
        for metric, series in values.items()
        for iteration, value in enumerate(series)
    )


def finish_run(run: Run, values: Mapping[str, Sequence[float]] | None = None, **fields: Any) -> None:
    defaults: dict[str, Any] = {"outcome": Outcome.FINISHED, "samples": samples(values or {})}
    assert record_run(claimed_run(run), RunRecord(**(defaults | fields)))


def make_bisection(tree: Tree, commits: Sequence[str], **fields: Any) -> Bisection:
    """A search for a regression of showgids between the first and the last of the commits."""
    defaults: dict[str, Any] = {
        "target": Target.objects.get_or_create(name="guest")[0],
        "digest": "b" * 64,
        "good_name": "v1",
        "bad_name": "v2",
        "line": list(commits),
        "workload": "showgids",
        "preset": "smoke",
        "params": {"threads": 2},
        "metric": "ns_per_open",
        "clock": "wall",
        "boots": 0,
        "most_boots": 80,
        "iterations": 5,
        "verdict": "regression",
    }
    return Bisection.objects.create(tree=tree, **(defaults | fields))


def make_bisection_step(bisection: Bisection, revision: int, **fields: Any) -> BisectionStep:
    """One comparison, open unless its outcome is given. revision: its place in the bisection's line."""
    defaults: dict[str, Any] = {"number": bisection.steps.count() + 1, "boots": 5}
    return BisectionStep.objects.create(bisection=bisection, revision=revision, **(defaults | fields))
