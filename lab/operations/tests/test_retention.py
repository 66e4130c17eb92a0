# SPDX-License-Identifier: GPL-2.0-or-later
"""The retention policy: what is old and needed by nothing goes, and never anything else."""

from __future__ import annotations

import hashlib
import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from kernels.artifacts.store import ArtifactStore
from lab.errors import NotAllowed
from lab.experiments.never_delete import keep_for
from lab.models import Bisection, Build, Experiment, Profile, Run, Sample, Standing, Triage, User
from lab.operations.retention import Expiry, expire, needed_experiments, plan_expiry
from lab.storage.artifacts import in_use, name_in_store, send_artifact
from lab.storage.store import Store
from lab.submission.build_rows import find_build
from lab.tests.factories import (
    make_bisection,
    make_bisection_step,
    make_build,
    make_case,
    make_comparison,
    make_experiment,
    make_run,
    make_user,
    make_variant,
)
from lab.tests.made import key_of, make_artifact
from lab.tests.stores import directory_store

NOW = timezone.now()
OLD = NOW - timedelta(days=100)


@pytest.fixture
def home(settings: Any, tmp_path: Path, db: None) -> Path:
    settings.HOME = tmp_path / "home"
    settings.KEEP_DAYS = 90
    return tmp_path / "home"


@pytest.fixture
def store(home: Path, settings: Any, tmp_path: Path) -> Store:
    return directory_store(settings, tmp_path / "store")


class World:
    """A lab with experiments whose files are here and in the store."""

    def __init__(self, home: Path, store: Store | None) -> None:
        self.home, self.store, self.made = home, store, 0

    def build(self, *, at: Any = OLD, **request: Any) -> Build:
        self.made += 1
        artifact = make_artifact(self.home, self.made, size=50)
        if self.store is not None:
            send_artifact(self.store, artifact)
        row = make_build(f"{self.made}", state="built", artifact_key=artifact.key, finished_at=at)
        row.request |= request
        row.commit = hashlib.sha1(str(self.made).encode()).hexdigest()
        row.tree_id = f"{self.made:040x}"
        row.log = f"artifacts/{artifact.key}/build.log"
        row.save()
        return row

    def experiment(self, *builds: Build, at: Any = OLD, **fields: Any) -> Experiment:
        """One that is over, with a profiled boot of each kernel."""
        row = make_experiment(**({"state": "done", "finished_at": at, "base_commit": "b" * 40} | fields))
        case = make_case(row)
        for place, build in enumerate(builds or (self.build(at=at),)):
            variant = make_variant(row, *([f"p{place}"] if place else []), build=build, commit=build.commit)
            run = make_run(variant, case, state="done", finished_at=at, block=place)
            name = f"runs/{run.pk}-1"
            Run.objects.filter(pk=run.pk).update(console=f"{name}/console.log", directory=name)
            Sample.objects.create(run=run, metric="ns_per_open", iteration=1, value=1.0)
            digest = hashlib.sha256(str(run.pk).encode()).hexdigest()
            Profile.objects.create(run=run, samples=1, tree=b"", perf_data_sha256=digest)
            self.put(f"{name}/console.log")
            self.put(f"profiles/{digest[:2]}/{digest}")
            if self.store is not None:
                self.store.put(f"sources/{build.commit}.bundle", b"bundle")
        return row

    def put(self, name: str) -> None:
        """A file here, or in the store where there is one, that nobody wrote for long."""
        if self.store is not None:
            self.store.put(name, b"x" * 100)
            path = Path(self.store.storage.location) / name
        else:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 100)
        self.age(path)

    def age(self, path: Path) -> None:
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))

    def age_all(self) -> None:
        for top in (self.home, Path(self.store.storage.location) if self.store else self.home):
            for path in top.rglob("*"):
                if path.is_file():
                    self.age(path)

    def has(self, experiment: Experiment) -> set[str]:
        """Return the kinds of files that are left, in either place; a kind is there as a whole, or the test fails."""
        left = set()
        tops = [self.home, *([Path(self.store.storage.location)] if self.store else [])]
        names: dict[str, list[str]] = {"run": [], "artifact": [], "profile": []}
        for run in Run.objects.filter(experiment=experiment):
            names["run"].append(run.console)
            digest = Profile.objects.get(run=run).perf_data_sha256
            names["profile"].append(f"profiles/{digest[:2]}/{digest}")
        for key in experiment.variants.values_list("build__artifact_key", flat=True):
            names["artifact"].append(f"artifacts/{key}/metadata.json")
        for kind, wanted in names.items():
            there = {any((top / name).exists() for top in tops) for name in wanted}
            # Kernels are shared with others, which may need some of them.
            assert len(there) == 1 or kind == "artifact", f"a part of {kind}"
            if there == {True}:
                left.add(kind)
        return left


ALL = {"run", "artifact", "profile"}


@pytest.fixture(params=["home alone", "a store"])
def world(request: pytest.FixtureRequest, home: Path) -> World:
    store = request.getfixturevalue("store") if request.param == "a store" else None
    return World(home, store)


def gone(plan: Expiry) -> set[str]:
    return {holding.kind for holding in plan.going}


@pytest.mark.process
def test_what_is_old_and_needed_by_nothing_goes_and_its_rows_stay(world: World) -> None:
    old, young = world.experiment(), world.experiment(at=NOW - timedelta(days=80))
    world.age_all()
    plan = plan_expiry()
    assert gone(plan) >= ALL
    assert world.has(old) == ALL  # a plan removes nothing
    went = expire(plan)
    assert {(holding.kind, holding.name) for holding in went} == {
        (holding.kind, holding.name) for holding in plan.going
    }
    assert (world.has(old), world.has(young)) == (set(), ALL)
    run = Run.objects.get(experiment=old)
    assert run.expired_at is not None
    assert Build.objects.get(variants__experiment=old).expired_at is not None
    assert Run.objects.get(experiment=young).expired_at is None
    assert (Sample.objects.count(), Profile.objects.count(), Run.objects.count()) == (2, 2, 2)
    assert plan_expiry().going == ()


def test_zero_days_are_for_ever(world: World, settings: Any) -> None:
    settings.KEEP_DAYS = 0
    old = world.experiment()
    world.age_all()
    plan = plan_expiry()
    assert (plan.going, expire(plan)) == ((), ())
    assert world.has(old) == ALL


def _kept(experiment: Experiment) -> None:
    Experiment.objects.filter(pk=experiment.pk).update(kept=True)


def _open(experiment: Experiment) -> None:
    Experiment.objects.filter(pk=experiment.pk).update(state="running", finished_at=None)


def _standing(experiment: Experiment) -> None:
    standing = Standing.objects.create(name="daily", spec={}, tree=experiment.tree)
    Experiment.objects.filter(pk=experiment.pk).update(standing=standing)


def _searched(experiment: Experiment) -> None:
    bisection = make_bisection(experiment.tree, ["1", "2"])
    make_bisection_step(bisection, 1, experiment=experiment)


def _regressed(experiment: Experiment) -> None:
    variant = make_variant(experiment, "slow", build=experiment.variants.order_by("pk")[0].build)
    case = experiment.cases.get()
    make_comparison(case, variant, primary=False)


def _triaged(experiment: Experiment) -> None:
    _regressed(experiment)
    variant = experiment.variants.get(name="slow")
    Triage.objects.create(
        case=experiment.cases.get(), variant=variant, metric="ns_per_open", state="expected"
    )


def _noted(experiment: Experiment) -> None:
    experiment.notes.create(text="look at this")


def _boot_noted(experiment: Experiment) -> None:
    run = experiment.runs.first()
    assert run is not None
    run.notes.create(text="and at this")


REASONS = {
    reason.__name__[1:]: reason
    for reason in (_kept, _open, _standing, _searched, _regressed, _triaged, _noted, _boot_noted)
}


@pytest.mark.parametrize("why", REASONS)
def test_what_something_needs_stays_with_its_kernels_and_sources(home: Path, store: Store, why: str) -> None:
    world = World(home, store)
    shared = world.build()
    needed, other = world.experiment(shared, world.build()), world.experiment(shared)
    REASONS[why](needed)
    world.age_all()
    expire(plan_expiry())
    assert world.has(needed) == ALL
    for commit in needed.variants.values_list("build__commit", flat=True):
        assert store.has(f"sources/{commit}.bundle")
    assert world.has(other) == {"artifact"}


@pytest.mark.process
def test_a_search_that_is_over_and_an_older_standing_one_need_nothing(home: Path, store: Store) -> None:
    world = World(home, store)
    searched, older, newer = world.experiment(), world.experiment(), world.experiment()
    _searched(searched)
    Bisection.objects.update(state="done")
    standing = Standing.objects.create(name="daily", spec={}, tree=older.tree)
    Experiment.objects.filter(pk__in=(older.pk, newer.pk)).update(standing=standing)
    world.age_all()
    expire(plan_expiry())
    assert (world.has(searched), world.has(older), world.has(newer)) == (set(), set(), ALL)


def test_the_base_that_a_needed_kernel_stands_upon_stays(home: Path, store: Store) -> None:
    world = World(home, store)
    base = world.build(fragments=[["guest", "A=y"]], base_fragments=[["guest", "A=y"]])
    Build.objects.filter(pk=base.pk).update(tree_id="f" * 40)
    old = world.experiment(base)
    upon = {"fragments": [["guest", "A=y"], ["x", "B=y"]], "base_fragments": [["guest", "A=y"]]}
    needed = world.experiment(world.build(base_tree_id="f" * 40, **upon), kept=True)
    world.age_all()
    expire(plan_expiry())
    assert (world.has(old), world.has(needed)) == ({"artifact"}, ALL)


def test_what_is_in_use_or_asked_for_since_stays(home: Path, store: Store) -> None:
    world = World(home, store)
    used, asked = world.experiment(), world.experiment()
    world.age_all()
    plan = plan_expiry()
    _kept(asked)
    key = used.variants.get().build.artifact_key  # type: ignore[union-attr]
    with in_use(home, key):
        expire(plan)
    assert ("artifact" in world.has(used), world.has(asked)) == (True, ALL)
    assert Build.objects.get(artifact_key=key).expired_at is None


@pytest.mark.process
def test_a_removed_kernel_that_is_needed_again_is_queued(world: World) -> None:
    old = world.experiment()
    world.age_all()
    expire(plan_expiry())
    build = Build.objects.get(variants__experiment=old)

    class Found:
        digest, request = build.inputs, build.request
        revision = type("R", (), {"tree_id": build.tree_id, "commit": build.commit})

    assert find_build(Found, world.home).state == "queued"  # type: ignore[arg-type]


def test_what_a_sending_left_that_broke_off_goes_after_a_day(home: Path, store: Store) -> None:
    world = World(home, store)
    store.put(name_in_store(key_of(99), "ab" * 32), b"half")
    assert plan_expiry().going == ()
    plan = plan_expiry(now=NOW + timedelta(days=1, hours=1))
    assert [(holding.kind, holding.name, holding.stored) for holding in plan.going] == [
        ("artifact", key_of(99), 4)
    ]
    assert world.made == 0


def test_what_no_row_tells_of_goes_by_its_own_age(home: Path, store: Store) -> None:
    world = World(home, store)
    world.put("runs/999-1/console.log")
    store.put("runs/998-1/console.log", b"young")
    expire(plan_expiry())
    assert [entry.name for entry in store.entries()] == ["runs/998-1/console.log"]


@pytest.mark.process
@pytest.mark.parametrize("seed", range(6))
def test_nothing_a_needed_comparison_needs_is_ever_removed(home: Path, store: Store, seed: int) -> None:
    drawn, world = random.Random(seed), World(home, store)
    builds = [world.build(at=drawn.choice([OLD, NOW])) for _ in range(4)]
    made = []
    for _ in range(7):
        chosen = drawn.sample(builds, drawn.randint(1, 3))
        at = drawn.choice([OLD, OLD, NOW - timedelta(days=drawn.randint(0, 200))])
        row = world.experiment(*chosen, at=at)
        if drawn.random() < 0.35 and len(chosen) == 1:
            drawn.choice([_kept, _open, _searched, _regressed, _triaged, _noted, _boot_noted])(row)
        made.append(row)
    if drawn.random() < 0.5:
        _standing(drawn.choice(made))
    world.age_all()
    rows = [model.objects.count() for model in (Experiment, Run, Sample, Profile, Build)]
    needed = needed_experiments(NOW - timedelta(days=90))
    went = expire(plan_expiry())
    for row in made:
        left = world.has(row)
        if row.pk in needed:
            assert left == ALL
        else:
            assert not left & {"run", "profile"}
            assert Run.objects.filter(experiment=row, expired_at=None).count() == 0
    used = set(Build.objects.filter(variants__experiment__in=needed).values_list("artifact_key", flat=True))
    artifacts = ArtifactStore(home / "artifacts")
    assert all(artifacts.verify(key) for key in used)
    assert not used & {holding.name for holding in went}
    assert [model.objects.count() for model in (Experiment, Run, Sample, Profile, Build)] == rows


def test_its_submitter_and_operators_keep_an_experiment(home: Path) -> None:
    alice, bob = make_user("alice"), make_user("bob")
    operator = make_user("carol", User.Role.OPERATOR)
    row = make_experiment(submitter=alice)
    assert keep_for(experiment_id=row.pk, by=alice, kept=True).kept
    assert not keep_for(experiment_id=row.pk, by=operator, kept=False).kept
    with pytest.raises(NotAllowed, match="is alice's: only its submitter and operators may keep it"):
        keep_for(experiment_id=row.pk, by=bob, kept=True)
    with pytest.raises(NotAllowed, match="this token may not keep"):
        keep_for(experiment_id=row.pk, by=alice, kept=True, scopes=("read",))
