# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages, comparisons and exports do not depend on the physical order of rows.

PostgreSQL returns equal rows, and rows that nobody ordered, as they lie on the disk, which updates and a restored backup change. SQLite
is configured to reverse rows without an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils import timezone

from lab.comparisons.compare import compare_experiment
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.models import (
    Case,
    Comparison,
    Effect,
    Experiment,
    HealthCheck,
    Profile,
    Run,
    Sample,
    Target,
    Token,
    Tree,
    User,
    Variant,
    Worker,
)
from lab.models.states import RunState, VariantState
from lab.operations import readiness
from lab.people.tokens import issue_token
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import (
    make_case,
    make_experiment,
    make_patch_switch,
    make_run,
    make_twin,
    make_user,
    make_variant,
)
from web.api.tests.store import TREND, fill
from web.tests.conftest import signed_in

BLOCKS = 4
LONG_AGO = timezone.now() - timedelta(minutes=50)
API = (
    *(
        "experiments",
        "variants",
        "builds",
        "runs",
        "samples",
        "comparisons",
        "targets",
        "workers",
        "profiles",
    ),
    *("patches", "trees", "workloads", "notes", "triage", "hooks", "deliveries", "standing"),
    *("alerts", "trends", "tokens", "queues", "claims", "late-answers"),
)
ORDERED = (
    *("experiments/?ordering=state", "experiments/?ordering=-name", "runs/?ordering=-finished_at"),
    *("variants/?ordering=state", "comparisons/?ordering=q_value", "builds/?ordering=-finished_at"),
)
PAGES = (
    *(
        "/",
        "/experiments/",
        "/experiments/?ordering=-finished_at",
        "/experiments/?ordering=state",
        "/trends/",
    ),
    *(
        "/regressions/?state=all",
        "/lab/",
        "/targets/guest/",
        "/account/",
        "/people/",
        "/hooks/",
        "/standing/",
    ),
    *(
        "/alerts/",
        "/bisections/",
        "/experiments/new",
        "/metrics",
        f"/trends/{TREND}/",
        f"/trends/{TREND}.json",
    ),
)


@pytest.fixture
def over(db: None, tmp_path: Path) -> Experiment:
    """A lab in which much is equal: times, places, names of metrics."""
    people = {name: make_user(name) for name in ("alice", "dora")} | {
        "charlie": make_user("charlie", User.Role.OPERATOR)
    }
    fill(people, tmp_path)
    experiment = _measured(people["alice"])
    compare_experiment(experiment.pk)
    _lab(people["charlie"])
    # What ended at the same moment, as the last of a group does.
    for model in (Run, Experiment):
        model._default_manager.filter(finished_at__isnull=False).update(
            started_at=LONG_AGO, finished_at=LONG_AGO
        )
    return experiment


def _measured(submitter: User) -> Experiment:
    """Two switches, two cases with two metrics, boots taken again, profiles of three boots."""
    experiment = make_experiment(submitter=submitter, state="done", boots=BLOCKS, finished_at=LONG_AGO)
    for name in ("p", "q"):
        make_patch_switch(experiment, name)
    ready: dict[str, Any] = {"state": VariantState.READY}
    variants = [make_variant(experiment, *names, **ready) for names in ((), ("p",), ("q",), ("p", "q"))]
    variants.append(make_twin(experiment))
    Variant.objects.filter(pk=variants[-1].pk).update(**ready)
    for case in (make_case(experiment), make_case(experiment, workload="stat-walk")):
        for variant in variants:
            _boots(variant, case)
    return experiment


def _boots(variant: Variant, case: Case) -> None:
    done: dict[str, Any] = {"state": RunState.DONE, "outcome": "finished", "finished_at": LONG_AGO}
    histogram = {"unit": "µs", "counts": {"3": 10, "70": 1}, "overflow": 0}
    for block in range(BLOCKS):
        make_run(variant, case, block=block, invalid=["the host was busy"], **done)
        run = make_run(variant, case, block=block, retake=1, extras={"histogram": histogram}, **done)
        # Sums of these depend on the order in which they are added up.
        Sample.objects.bulk_create(
            Sample(
                run=run, metric=metric, iteration=at, warmup=at == 0, value=1e3 + (run.pk * 7 + at) % 11 / 7
            )
            for at in range(5)
            for metric in ("ns_per_open", "user")
        )
    for block in range(3):
        counters = {"perf stat": {"instructions": 1e9 / (1 + block)}}
        run = make_run(variant, case, purpose="profiled", block=block, counters=counters, **done)
        tree = build_tree([(("walk", "down_read"), 60 + run.pk % 5), (("idle",), 40)])
        Profile.objects.create(
            run=run, samples=100, tree=pack(tree), overhead=0.1 * block, perf_data_sha256=f"{run.pk:064x}"
        )


def _lab(operator: User) -> None:
    """Targets, checks, faults, claims, tokens."""
    target = Target.objects.get(name="guest")
    for number in range(4):
        environment = {"guest": {"tuning": {f"of {number}": "x"}}, "unit": "ns"}
        HealthCheck.objects.create(
            target=target, ok=True, metric="m", value=number + 1.0, environment=environment
        )
        issue_token(user=operator, name=f"token {number}", scopes=["read"], days=30)
        Worker.objects.create(name=f"h{number}:1:1", host=f"h{number}", queues=["target.guest"])
        Tree.objects.create(name=f"tree-{number}", kind="git", location="/srv/same")
        _open(number)
    HealthCheck.objects.update(at=LONG_AGO)
    Token.objects.update(created=LONG_AGO)


def _open(number: int) -> None:
    """An experiment that is under way, with a boot that the lab lost and, on a target of its own, one that runs."""
    experiment = make_experiment(name=f"open {number}", state="running", started_at=LONG_AGO)
    base, case = make_variant(experiment, state=VariantState.READY), make_case(experiment)
    lost = {"state": RunState.FAILED, "outcome": "lost", "blame": "lab", "problem": f"the rack of {number}"}
    make_run(base, case, finished_at=LONG_AGO, **lost)
    own = Target.objects.create(name=f"t{number}")
    make_run(
        base, case, block=1, state=RunState.RUNNING, target=own, claimed_by="h1:1:1", started_at=LONG_AGO
    )


@pytest.fixture
def moved() -> Iterator[Any]:
    """Calling it lays the rows of all tables elsewhere."""
    yield _move
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA reverse_unordered_selects = OFF")


def _move() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA reverse_unordered_selects = ON")
            return
        for model in apps.get_app_config("lab").get_models():
            table, key = model._meta.db_table, model._meta.pk.column
            # An update would leave a row where the indexes find it: taken out, and put in again from the last one on.
            cursor.execute(f'CREATE TEMPORARY TABLE lifted AS SELECT * FROM "{table}"')
            cursor.execute(f'DELETE FROM "{table}"')
            cursor.execute(f'INSERT INTO "{table}" SELECT * FROM lifted ORDER BY "{key}" DESC')
            cursor.execute("DROP TABLE lifted")


def _read(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.content[:300])
    text = (b"".join(answer) if answer.streaming else answer.content).decode()
    # What is new each time: forms' tokens, and how long ago something was.
    text = re.sub(r'name="(csrfmiddlewaretoken|key)" value="\w+"|data-csrf="\w+"', "", text)
    text = re.sub(
        r'\d+(\.\d+)?[ \xa0](s|ms|min|minutes?|hours?|GB)\b|"(left_s|oldest_s|seen_at)": ?[^,}]+', "", text
    )
    if address == "/metrics":
        text = re.sub(r"(?m)^(#|kperflab_(http|disk|storage|queue_oldest|lease)).*\n", "", text)
    return re.sub(r">[^<>]*(ago|now)<", "><", text)


def addresses(experiment: Experiment) -> list[str]:
    """Everything that tells of rows."""
    own = f"/experiments/{experiment.pk}/"
    cases = [case.pk for case in experiment.cases.all()]
    comparison = experiment.comparisons.order_by("pk")[0]
    run = experiment.runs.filter(purpose="measured", retake=1)[0]
    return [
        *PAGES,
        *(f"/api/v1/{name}/" for name in API),
        *(f"/api/v1/{name}" for name in ORDERED),
        *(own + rest for rest in ("", "comparison/", "runs/", "reply/", f"explain/{comparison.pk}/")),
        *(own + f"profile/{case}/" for case in cases),
        *(own + f"counters/{case}.json" for case in cases),
        *(own + f"export/{form}" for form in sorted(REPORT_FORMS)),
        *(f"/api/v1/experiments/{experiment.pk}/", f"/runs/{run.pk}/", "/api/v1/targets/" + str(_guest())),
    ]


def _guest() -> str:
    return f"{Target.objects.get(name='guest').pk}/"


def _judged(experiment: Experiment) -> list[tuple[Any, ...]]:
    """Return the comparison's results, in every digit."""
    compare_experiment(experiment.pk)
    columns = (
        "case",
        "variant",
        "metric",
        "base_median",
        "median",
        "ratio",
        "low",
        "high",
        "p_value",
        "q_value",
    )
    compared = Comparison.objects.filter(experiment=experiment).order_by("pk").values_list(*columns)
    effects = Effect.objects.filter(experiment=experiment).order_by("pk")
    return [*compared, *effects.values_list("case", "metric", "ratio", "low", "high", "p_value")]


def test_pages_lists_and_files_are_the_same_wherever_rows_lie(
    over: Experiment, moved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "KEPT_S", 1000.0)
    client = signed_in(User.objects.get(username="charlie"))
    # A slow machine reads for longer than a worker may be silent.
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    all_of_them = addresses(over)
    before = {address: _read(client, address) for address in all_of_them}
    moved()
    after = {address: _read(client, address) for address in all_of_them}
    differing = {
        address: [
            pair
            for pair in zip(text.splitlines(), after[address].splitlines(), strict=False)
            if pair[0] != pair[1]
        ][:2]
        for address, text in before.items()
        if text != after[address]
    }
    assert differing == {}


def test_a_comparison_comes_to_the_same_digits_wherever_rows_lie(over: Experiment, moved: Any) -> None:
    before = _judged(over)
    moved()
    assert _judged(over) == before
    assert len(before) > 16
