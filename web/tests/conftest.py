# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the pages' tests: three people, a client that reads a page, and one experiment of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.comparisons.compare import compare_experiment
from lab.models import Case, Comparison, Experiment, Profile, Revision, Sample, Tree, User, Variant
from lab.models.states import ExperimentState, Role, RunState, VariantState
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import (
    make_build,
    make_case,
    make_experiment,
    make_patch_switch,
    make_run,
    make_user,
    make_variant,
)
from lab.tests.fetchers import at_hand
from lab.tests.file_rows import rows_of_a_file
from lab.trends.page import trend_list

SCRIPT = "<script>alert(1)</script>"
CLAIM = {"workload": "showgids", "metric": "ns_per_open", "direction": "lower", "source": SCRIPT}


class Page(Protocol):
    """Reads the page at an address as somebody; as nobody in particular without a client."""

    def __call__(self, address: str, by: Client | None = None) -> str: ...


@pytest.fixture(autouse=True)
def trees_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tree has to be fetched, unless a test says so."""
    monkeypatch.setattr("lab.submission.web_process.check_here", at_hand)


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice", User.Role.SUBMITTER)


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob", User.Role.VIEWER)


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie", User.Role.OPERATOR)


@pytest.fixture
def submitter(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def viewer(bob: User) -> Client:
    return signed_in(bob)


@pytest.fixture
def operator(charlie: User) -> Client:
    return signed_in(charlie)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def page(client: Client, db: None) -> Page:
    """Return the text of a page that must be there and must carry our policy."""

    def read(address: str, by: Client | None = None) -> str:
        response = (by or client).get(address)
        assert response.status_code == 200, address
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        text = response.content.decode()
        assert not re.search(r"\sstyle=|\son[a-z]+=|href=.javascript:", strip_escaped(text)), address
        return text

    return read


def strip_escaped(text: str) -> str:
    """Return the markup without its texts and our own scripts, so that a script left is a stranger's."""
    markup = re.sub(r">[^<]*<", "><", text)
    return re.sub(r'<script src="/static/[a-z/.]+" defer></script>', "", markup)


@pytest.fixture
def compared(db: None) -> Experiment:
    """An experiment that is over, with numbers, a profile and a pruned combination."""
    experiment = make_experiment(name=f"kernfs {SCRIPT}", state=ExperimentState.DONE, profile=True)
    make_patch_switch(
        experiment,
        "p",
        title=f"kernfs: {SCRIPT}",
        link="javascript:alert(1)",
        report=[SCRIPT],
        claims=[CLAIM],
    )
    base, candidate = make_variant(experiment), make_variant(experiment, "p")
    make_variant(experiment, "p", "q", state=VariantState.PRUNED, problem=f"p and q clash in {SCRIPT}")
    case = make_case(experiment)
    for variant in (base, candidate):
        add_runs(variant, case, holds=variant is base)
    Comparison.objects.create(
        experiment=experiment,
        case=case,
        variant=candidate,
        metric="ns_per_open",
        unit="ns",
        better="lower",
        primary=True,
        boots=5,
        base_median=39_000,
        median=24_000,
        ratio=0.62,
        low=0.6,
        high=0.65,
        verdict="improvement",
        margin=0.02,
        method="bootstrap",
    )
    return experiment


def add_runs(variant: Variant, case: Case, *, holds: bool) -> None:
    """One finished run of each purpose, every text of theirs hostile."""
    over = {"state": "done", "outcome": "finished"}
    histogram = {"unit": "µs", "counts": {"3": 10, "70": 1}, "overflow": 0}
    make_run(variant, case, line=f"3.77s user {SCRIPT}", extras={"histogram": histogram}, **over)
    proof = {"verified": f"8 calls {SCRIPT}", "verified_holds": holds, "bpftrace": SCRIPT}
    make_run(variant, case, purpose="verified", extras=proof, **over)
    profiled = make_run(variant, case, purpose="profiled", **over)
    tree = build_tree([(("kernfs_iop_permission", "down_read"), 60), ((SCRIPT,), 40)])
    Profile.objects.create(run=profiled, samples=100, lost=3, tree=pack(tree))


@pytest.fixture(scope="module")
def steps_of_a_file(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    with rows_of_a_file(django_db_blocker):
        yield make_steps()


@pytest.fixture
def stepped(steps_of_a_file: str, db: None) -> str:
    """A trend of eight revisions that gets slower with the fifth and has an outlier at its end; its key."""
    return steps_of_a_file


def make_steps() -> str:
    """Record the trend, and return its key."""
    for number, level in enumerate((100.0, 101.0, 100.0, 101.0, 120.0, 121.0, 120.0, 160.0)):
        experiment = make_experiment(base_commit=f"{number:040x}", state="done")
        Revision.objects.create(
            tree=Tree.objects.get(name="tiny"),
            commit=f"{number:040x}",
            position=number,
            subject=f"change {number} {SCRIPT}",
            author=f"{SCRIPT} <a@b>",
        )
        base = make_variant(
            experiment, build=make_build(f"{number}"), role=Role.BASE, state=VariantState.READY
        )
        case = make_case(experiment)
        for block in range(5):
            run = make_run(base, case, block=block, state=RunState.DONE)
            Sample.objects.create(run=run, metric="ns_per_open", iteration=1, value=level + block / 2)
        compare_experiment(experiment.pk)
    (page,) = trend_list()
    return page.line.key
