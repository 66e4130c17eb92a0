# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics for Prometheus: well-formed, true, of few labels, for those who may."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from lab.models import Build, Chore, HealthCheck, LostClaim, Run, Target, User, Worker
from lab.operations import readiness
from lab.runs.claim import Claim
from lab.runs.record import refuse_late
from lab.storage import store_check as storeanswer
from lab.storage.store import Store
from lab.tests.factories import (
    claimed_build,
    claimed_run,
    finish_builds,
    finish_run,
    make_experiment,
    make_grid,
)
from lab.tests.stores import choose, told_by
from lab.tests.stores import moto as moto
from lab.tests.stores import store as store
from web import requestlog
from web.tests.conftest import signed_in

ROOT = Path(__file__).resolve().parents[2]
Figures = dict[str, float]
AT_NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_last", None)
    monkeypatch.setattr(storeanswer, "_asking", storeanswer._Asking())
    # Other tests' requests of every view would be most of what is read here.
    requestlog._REQUESTS.clear()


def figures(client: Client) -> Figures:
    """Every sample by name and labels, as `name{a="b"}`; the library's own parser reads them."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    samples: Figures = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            key = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert key not in samples, f"{key} appears twice"
            samples[key] = sample.value
    return samples


def names(samples: Figures) -> set[str]:
    return {key.partition("{")[0] for key in samples}


@pytest.fixture
def busy(db: None) -> None:
    """A lab with something of everything."""
    target = Target.objects.create(name='odd "name"\n\\x', faults=2)
    experiment = make_grid()
    Worker.objects.create(
        name="h1:1:1",
        host="h1",
        queues=["build.x86_64.gcc", "target.guest"],
        disk_free=10 << 30,
        disk_total=100 << 30,
    )
    Worker.objects.create(name="h2:2:2", host="h2", queues=["target.guest"], idle_reason="its disk is full")
    Worker.objects.create(
        name="h3:3:3", host="h3", queues=["upkeep"], seen_at=timezone.now() - timedelta(minutes=5)
    )
    finish_builds(experiment)
    first, second, third, *_ = Run.objects.order_by("position")
    finish_run(first, {"ns_per_open": [1.0, 2.0]}, steps={"boot": 2.0, "workload": 4.0, "collect": 0.2})
    finish_run(second, outcome="lost", blame="lab", problem="the switch of the rack", retry=True)
    claimed_run(third)
    Run.objects.filter(pk=third.pk).update(lease_until=timezone.now() - timedelta(seconds=40))
    for days, value in enumerate((110.0, 100.0, 100.0, 100.0)):
        at = timezone.now() - timedelta(days=days)
        HealthCheck.objects.create(target=target, at=at, ok=True, metric="ns", value=value)
    Target.objects.filter(name="guest").update(quarantined_at=timezone.now(), quarantine_reason="x")
    refuse_late(Claim("run", first.pk, "old"), "finished")
    for host, hours in (("h1", 0), ("h1", 0), ("h3", 2)):
        claim = LostClaim.objects.create(kind="run", work=first.pk, host=host, worker=f"{host}:1:1")
        LostClaim.objects.filter(pk=claim.pk).update(at=timezone.now() - timedelta(hours=hours))
    Chore.objects.create(
        name="expire_files", done_at=AT_NOON, found={"home": {"run": 7}, "store": {"run": 5}}
    )
    Build.objects.update(wall_seconds=30.0, corrupted=2)


def test_figures_are_what_the_tables_say(client: Client, busy: None) -> None:
    samples = figures(client)
    expected = {
        'kperflab_queue_running{queue="target.guest"}': 1,
        'kperflab_queue_workers{queue="target.guest"}': 1,
        'kperflab_queue_workers{queue="build.x86_64.gcc"}': 1,
        'kperflab_leases{kind="run"}': 1,
        'kperflab_leases_expired{kind="run"}': 1,
        'kperflab_leases_expired{kind="build"}': 0,
        'kperflab_last_hour_runs{blame="",outcome="finished",target="guest"}': 1,
        'kperflab_last_hour_runs{blame="lab",outcome="lost",target="guest"}': 1,
        'kperflab_target_quarantined{target="guest"}': 1,
        'kperflab_target_up{target="guest"}': 0,
        'kperflab_workers{host="h1",state="working"}': 1,
        'kperflab_workers{host="h2",state="idle"}': 1,
        'kperflab_workers{host="h3",state="gone"}': 1,
        'kperflab_disk_free_bytes{host="h1"}': 10 << 30,
        'kperflab_last_hour_lost_claims{host="h1"}': 2,
        'kperflab_last_hour_lost_claims{host="h3"}': None,
        'kperflab_experiments{state="running"}': 1,
        'kperflab_last_hour_step_seconds_bucket{group="guest",le="2.5",step="boot"}': 1,
        'kperflab_last_hour_step_seconds_bucket{group="guest",le="1.0",step="boot"}': 0,
        'kperflab_last_hour_step_seconds_gsum{group="guest",step="workload"}': 4.0,
        'kperflab_last_hour_build_seconds_gcount{queue="build.x86_64.gcc"}': 2,
        'kperflab_ready{check="database"}': 1,
        'kperflab_kept_bytes{kind="run",place="home"}': 7,
        'kperflab_kept_bytes{kind="run",place="store"}': 5,
        'kperflab_chore_done_timestamp_seconds{chore="expire_files"}': AT_NOON.timestamp(),
    }
    assert {key: samples.get(key) for key in expected} == expected
    assert samples["kperflab_late_answers_total"] >= 1
    assert samples["kperflab_corrupt_artifacts_total"] == 2 * Build.objects.count()
    assert samples['kperflab_lease_overdue_seconds{kind="run"}'] >= 40
    drift = [value for key, value in samples.items() if key.startswith("kperflab_target_drift_ratio")]
    assert drift == [pytest.approx(0.1)]


def test_the_steps_of_equal_targets_are_counted_together(client: Client, busy: None) -> None:
    Target.objects.filter(name="guest").update(group="racks")
    twin = Target.objects.create(name="twin", group="racks")
    second = Run.objects.order_by("position")[1]
    Run.objects.filter(pk=second.pk).update(
        target=twin, outcome="finished", finished_at=timezone.now(), steps={"boot": 3.0}
    )
    samples = figures(client)
    assert samples['kperflab_last_hour_step_seconds_gcount{group="racks",step="boot"}'] == 2
    assert samples['kperflab_last_hour_step_seconds_gsum{group="racks",step="boot"}'] == 5.0
    assert samples['kperflab_last_hour_runs{blame="",outcome="finished",target="guest"}'] == 1


def test_a_kernel_that_may_not_boot_yet_waits_in_no_queue(client: Client, db: None) -> None:
    experiment = make_grid()
    samples = figures(client)
    assert samples['kperflab_queue_waiting{queue="build.x86_64.gcc"}'] == 2
    assert samples['kperflab_queue_waiting{queue="target.guest"}'] == 0
    Build.objects.update(created_at=timezone.now() - timedelta(minutes=10))
    assert figures(client)['kperflab_queue_oldest_wait_seconds{queue="build.x86_64.gcc"}'] >= 600
    finish_builds(experiment)
    Run.objects.update(created_at=timezone.now() - timedelta(minutes=10))
    samples = figures(client)
    assert samples['kperflab_queue_waiting{queue="target.guest"}'] == 4
    assert samples['kperflab_queue_oldest_wait_seconds{queue="target.guest"}'] < 60, (
        "its kernel has only just come"
    )


def test_names_and_units_follow_the_conventions(client: Client, busy: None) -> None:
    client.get("/experiments/")
    text = client.get("/metrics").content.decode()
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("kperflab_"), family.name
        assert family.documentation.endswith("."), family.name
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples)
        else:
            assert not family.name.endswith("_total"), family.name
    assert "kperflab_http_request_duration_seconds_bucket" in text


def test_an_experiment_more_is_no_label_more_and_no_question_more(
    client: Client, busy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "KEPT_S", 1000.0)
    # Twenty grids may take longer than a worker may be silent.
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    figures(client)
    with CaptureQueriesContext(connection) as before:
        few = figures(client)
    for number in range(20):
        make_experiment(name=f"one more {number}", state="done")
        make_grid()
    figures(client)
    with CaptureQueriesContext(connection) as after:
        many = figures(client)
    assert len(after) == len(before)
    assert few.keys() == many.keys()
    assert not [key for key in many if "one more" in key]


def rooms(samples: Figures, what: str) -> dict[str, float]:
    """By place."""
    start = f"kperflab_storage_{what}_bytes"
    return {
        key.partition('place="')[2].partition('"')[0]: value
        for key, value in samples.items()
        if key.startswith(start)
    }


def test_a_directorys_room_is_told_and_a_buckets_is_not(
    client: Client, db: None, store: Store, settings: Any
) -> None:
    samples = figures(client)
    free, used = rooms(samples, "free"), rooms(samples, "used")
    assert free.keys() == used.keys()
    here = shutil.disk_usage(settings.HOME)
    assert free["home"] == pytest.approx(here.free, abs=4 << 30)
    assert used["home"] == pytest.approx(here.used, abs=4 << 30)
    assert ("store" in free) == (not store.address.startswith("s3://"))
    if "store" in free:
        assert free["store"] == pytest.approx(shutil.disk_usage(store.address).free, abs=4 << 30)


def test_a_store_that_is_away_has_no_room_and_keeps_nobody_from_the_other_figures(
    client: Client, db: None, settings: Any, tmp_path: Path
) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": str(tmp_path / "away")}))
    samples = figures(client)
    assert samples['kperflab_ready{check="store"}'] == 0
    assert rooms(samples, "free").keys() == {"home"}


def test_only_those_who_may_read_the_figures(client: Client, charlie: User, alice: User) -> None:
    away: dict[str, Any] = {"REMOTE_ADDR": "203.0.113.9"}
    refused = client.get("/metrics", **away)
    assert (refused.status_code, "KPERFLAB_METRICS_FROM" in refused.content.decode()) == (403, True)
    assert signed_in(alice).get("/metrics", **away).status_code == 403
    assert signed_in(charlie).get("/metrics", **away).status_code == 200
    assert client.get("/metrics/", HTTP_X_FORWARDED_FOR="203.0.113.9").status_code == 403


def test_every_alert_of_ours_is_of_figures_that_there_are(client: Client, busy: None) -> None:
    claimed_build(Build.objects.create(inputs="x", tree_id="t", commit="c", request={"cc": "gcc"}))
    client.get("/experiments/")
    there = names(figures(client)) | {"up"}
    rules = yaml.safe_load((ROOT / "docs/operations/alerts.yml").read_text())
    (group,) = rules["groups"]
    for rule in group["rules"]:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}, rule
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        named = set(re.findall(r"\bkperflab_\w+", rule["expr"]))
        assert named or "up{" in rule["expr"], rule["alert"]
        assert named <= there, f"{rule['alert']}: {named - there}"
    assert len(group["rules"]) >= 10


def test_every_alert_has_a_runbook_that_says_what_to_do_and_when_it_is_over() -> None:
    rules = yaml.safe_load((ROOT / "docs/operations/alerts.yml").read_text())["groups"][0]["rules"]
    sections = re.split(r"^## ", (ROOT / "docs/operations/runbooks.md").read_text(), flags=re.M)[1:]
    texts = {title: text for title, _, text in (section.partition("\n") for section in sections)}
    assert list(texts) == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook_url"].endswith(f"runbooks.html#{rule['alert'].lower()}")
        parts = re.findall(r"^\*\*(.*?)\.?\*\*", texts[rule["alert"]], flags=re.M)
        assert parts == ["Means", "See it", "Do", "Over when"], rule["alert"]
