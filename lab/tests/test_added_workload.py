# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload that is added to the lab changes nothing for experiments that do not use it."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from lab.comparisons.compare import compare_experiment
from lab.conftest import Describe
from lab.models import (
    Alert,
    BasePoint,
    Build,
    Case,
    Experiment,
    Note,
    Revision,
    Run,
    Sample,
    Standing,
    Target,
    Tree,
)
from lab.models.states import Role, RunState, VariantState
from lab.submission.submit import submit_experiment
from lab.targets.changes import change_target
from lab.trends.summary import trend_lines
from workloads.catalog import PROGRAMS, load_catalog

pytestmark = [pytest.mark.django_db, pytest.mark.process]

UNUSED = "CONFIG_CRYPTO_LZ4=y"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of workloads, as a checkout has it, in which a test may add some."""
    folder = tmp_path / "programs"
    shutil.copytree(PROGRAMS, folder)
    for place in ("submission.parts.load_catalog", "submission.prepare.load_catalog"):
        monkeypatch.setattr(f"lab.{place}", lambda: load_catalog(folder))
    monkeypatch.setattr("lab.experiments.description_faults.load_workloads", lambda: load_catalog(folder))
    return folder


def add_workload(programs: Path, name: str, *config: str) -> None:
    shutil.copytree(programs / "stat-walk", programs / name)
    file = programs / name / "workload.toml"
    before, _, rest = file.read_text().partition("config = [")
    lines = "".join(f'    "{line}",\n' for line in config)
    file.write_text(f"{before}config = [\n{lines}]{rest.partition(']')[2]}")
    program = programs / name / "stat-walk.c"
    if program.exists():
        program.rename(program.with_name(f"{name}.c"))


def measured(describe: Describe, home: Path, *workloads: str, boots: float = 100.0) -> Experiment:
    """An experiment that was submitted with these workloads, and whose base was measured."""
    cases = [{"workload": name, "preset": "smoke"} for name in workloads]
    experiment = submit_experiment(spec=describe(cases=cases, patches=[]), home=home)
    measure(experiment, boots)
    return experiment


def measure(experiment: Experiment, boots: float = 100.0) -> None:
    """Have the base of an experiment measured, and the experiment compared."""
    base = experiment.variants.get(role=Role.BASE)
    experiment.variants.update(state=VariantState.READY)
    for case in experiment.cases.all():
        metric = next(declared["name"] for declared in case.metrics if declared["primary"])
        runs = Run.objects.filter(variant=base, case=case)
        for run in runs:
            Sample.objects.create(run=run, metric=metric, iteration=0, value=boots + run.block)
        runs.update(state=RunState.DONE)
    Experiment.objects.filter(pk=experiment.pk).update(state="done")
    compare_experiment(experiment.pk)


def keys_of(experiment: Experiment) -> tuple[set[str], set[str]]:
    """The digests of an experiment's builds, and the keys of its trends."""
    builds = Build.objects.filter(variants__experiment=experiment).values_list("inputs", flat=True)
    trends = BasePoint.objects.filter(case__experiment=experiment).values_list("trend", flat=True)
    return set(builds), set(trends)


def test_an_added_workload_changes_neither_kernels_nor_trends_of_others(
    describe: Describe, home: Path, programs: Path
) -> None:
    before = keys_of(measured(describe, home, "showgids"))
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", UNUSED)
    after = measured(describe, home, "showgids")
    assert before == keys_of(after)
    assert all(before)


def test_an_experiment_has_the_config_that_its_own_workloads_need(
    describe: Describe, home: Path, programs: Path
) -> None:
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", UNUSED)
    plain, own = measured(describe, home, "showgids"), measured(describe, home, "a-new-one")
    texts = [
        "".join(text for _, text in build.request["fragments"])
        for build in (plain.variants.get(role="base").build, own.variants.get(role="base").build)
        if build is not None
    ]
    assert [UNUSED in text for text in texts] == [False, True]
    assert keys_of(plain)[0].isdisjoint(keys_of(own)[0])


def test_a_workload_that_needs_nothing_new_shares_the_kernels_of_all_others(
    describe: Describe, home: Path, programs: Path
) -> None:
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", "CONFIG_PROC_FS=y")
    assert (
        keys_of(measured(describe, home, "showgids"))[0] == keys_of(measured(describe, home, "a-new-one"))[0]
    )


def test_a_case_has_one_trend_whatever_else_its_experiments_run(
    describe: Describe, home: Path, programs: Path
) -> None:
    alone = measured(describe, home, "showgids")
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", UNUSED)
    both = measured(describe, home, "showgids", "a-new-one")
    assert keys_of(alone)[1] < keys_of(both)[1]
    assert keys_of(alone)[0].isdisjoint(keys_of(both)[0])


def test_a_case_whose_own_workload_needs_more_begins_another_trend(
    describe: Describe, home: Path, programs: Path
) -> None:
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", UNUSED)
    before = keys_of(measured(describe, home, "a-new-one"))
    file = programs / "a-new-one" / "workload.toml"
    file.write_text(file.read_text().replace(UNUSED, "CONFIG_CRYPTO_842=y"))
    after = keys_of(measured(describe, home, "a-new-one"))
    assert before[0].isdisjoint(after[0])
    assert before[1].isdisjoint(after[1])


def note(trend: str) -> None:
    """Write a note about a revision, on one trend."""
    revision, _ = Revision.objects.get_or_create(
        tree=Tree.objects.all()[0], commit="a" * 40, defaults={"position": 1, "subject": "s", "author": "a"}
    )
    Note.objects.create(revision=revision, trend=trend, text="watch this")


def old_config(request: dict[str, Any]) -> str:
    """Return the config of a build as keys of trends held it before migration 0029."""
    return hashlib.sha256(json.dumps([request["fragments"], request["cc"]]).encode()).hexdigest()[:8]


def old_key(case: Case, metric: str, config: str) -> str:
    """Return a trend's key of that time."""
    of = case.experiment
    identity = [of.tree.name, case.workload, case.params, of.target.name, of.clock, config, metric]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def as_before(experiment: Experiment) -> dict[str, str]:
    """Give an experiment's points the keys that older code wrote; returns the new key by the old one."""
    keys = {}
    for point in BasePoint.objects.filter(case__experiment=experiment).select_related("case__experiment"):
        build = experiment.variants.get(role=Role.BASE).build
        assert build is not None
        config = old_config(build.request)
        key = old_key(point.case, point.metric, config)
        BasePoint.objects.filter(pk=point.pk).update(trend=key, config=config)
        keys[key] = point.trend
    return keys


def migrate() -> None:
    importlib.import_module("lab.migrations.0029_trend_identity").carry_over(apps, None)


def test_trends_of_a_database_of_before_go_on_with_their_notes_and_alerts(
    describe: Describe, home: Path, programs: Path
) -> None:
    first = measured(describe, home, "showgids")
    add_workload(programs, "a-new-one", "CONFIG_BLOCK=y", UNUSED)
    second = measured(describe, home, "showgids", "a-new-one")
    ours = first.cases.get().base_points.get().trend
    # Then, each kernel met the needs of all workloads: the added one had begun another trend.
    keys = as_before(first) | as_before(second)
    old = [key for key, new in keys.items() if new == ours]
    assert len(old) == 2
    standing = Standing.objects.create(name="daily", spec={}, tree=Tree.objects.all()[0])
    for key in old:
        note(key)
        Alert.objects.create(
            standing=standing, trend=key, metric="m", commit=key, ratio=1.1, worse=True, text="a step"
        )
    migrate()
    points = BasePoint.objects.filter(trend=ours).values_list("case__experiment", flat=True)
    assert set(points) == {first.pk, second.pk}
    assert set(Note.objects.values_list("trend", flat=True)) == {ours}
    assert set(Alert.objects.values_list("trend", flat=True)) == {ours}
    again = measured(describe, home, "showgids")
    assert again.cases.get().base_points.get().trend == ours
    migrate()
    assert BasePoint.objects.filter(trend=ours).count() == 3


def test_an_alert_that_both_old_trends_had_is_carried_over_once(describe: Describe, home: Path) -> None:
    experiment = measured(describe, home, "showgids")
    ((old, new),) = as_before(experiment).items()
    standing = Standing.objects.create(name="daily", spec={}, tree=Tree.objects.all()[0])
    for key in (old, new):
        Alert.objects.create(
            standing=standing, trend=key, metric="m", commit="c", ratio=1.1, worse=True, text="a step"
        )
    migrate()
    assert sorted(Alert.objects.values_list("trend", flat=True)) == sorted([old, new])


def test_a_group_is_one_trend_whichever_of_its_machines_comes_first(describe: Describe, home: Path) -> None:
    rack = [Target.objects.create(name=name, group="rack") for name in ("one", "two")]
    cases = [{"workload": "showgids", "preset": "smoke"}]
    trends = set()
    for first in rack:
        Target.objects.update(quarantined_at=timezone.now())
        Target.objects.filter(pk=first.pk).update(quarantined_at=None)
        experiment = submit_experiment(spec=describe(cases=cases, patches=[], target="rack"), home=home)
        assert experiment.target == first
        measure(experiment)
        trends |= keys_of(experiment)[1]
    named = submit_experiment(spec=describe(cases=cases, patches=[], target="two"), home=home)
    measure(named)
    assert len(trends | keys_of(named)[1]) == 1
    assert trend_lines(sorted(trends))[0].target == "rack"


def test_a_trend_follows_the_target_that_gets_another_name_or_group(describe: Describe, home: Path) -> None:
    target = Target.objects.get(name="guest")
    (before,) = keys_of(measured(describe, home, "showgids"))[1]
    note(before)
    for changes in ({"name": "rack-1"}, {"group": "rack"}):
        change_target(by=None, target_id=target.pk, changes=changes)
        (trend,) = {point.trend for point in BasePoint.objects.all()}
        assert trend != before
        assert Note.objects.get().trend == trend
        cases = [{"workload": "showgids", "preset": "smoke"}]
        name = Target.objects.get(pk=target.pk).name
        experiment = submit_experiment(spec=describe(cases=cases, patches=[], target=name), home=home)
        measure(experiment)
        assert keys_of(experiment)[1] == {trend}
