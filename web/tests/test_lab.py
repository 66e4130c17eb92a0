# SPDX-License-Identifier: GPL-2.0-or-later
"""The operator's page: true, and what its buttons do."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from lab.models import Build, Experiment, Run, Target, User, Worker
from lab.models.states import Outcome
from lab.people.tokens import issue_token
from lab.runs.claim import Claim
from lab.runs.hand_back import lease_name
from lab.runs.record import RunRecord, record_run, refuse_late
from lab.tests.factories import claimed_build, claimed_run, finish_builds, make_grid
from web.tests.conftest import SCRIPT, Page


@pytest.fixture
def booting(db: None) -> Run:
    """A boot under way, of an experiment whose builds are there."""
    experiment = make_grid()
    finish_builds(experiment)
    run = Run.objects.order_by("position")[0]
    claimed_run(run)
    # However slow the machine that tests.
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() + timedelta(hours=1))
    run.refresh_from_db()
    return run


def test_everything_that_an_operator_asks_for_is_there(page: Page, operator: Client, booting: Run) -> None:
    Target.objects.create(
        name=f"rack {SCRIPT}",
        group="amd",
        quarantined_at=timezone.now(),
        quarantine_reason=f"3 faults {SCRIPT}",
    )
    Worker.objects.create(
        name=f"h1:1:1 {SCRIPT}", host="h1", queues=["target.guest"], idle_reason=f"full {SCRIPT}"
    )
    Worker.objects.create(name="h2:2:2", host="h2", seen_at=timezone.now() - timedelta(hours=2))
    second = Run.objects.order_by("position")[1]
    Run.objects.filter(pk=second.pk).update(
        state="failed", outcome="lost", blame="lab", problem=f"the rack {SCRIPT}", finished_at=timezone.now()
    )
    refuse_late(Claim("run", second.pk, "x"), f"panicked {SCRIPT}")
    for address in ("/lab/", "/lab/live"):
        text = page(address, operator)
        assert SCRIPT not in text
        for words in (
            "in quarantine: 3 faults",
            "group amd",
            f"Run {booting.pk}",
            "target.guest",
            "(paused)",
            "gone",
            "valid for",
            "the rack",
            "panicked",
            "no worker takes them",
        ):
            assert words in text, words


def test_a_lab_without_anything_says_so(page: Page, operator: Client) -> None:
    text = page("/lab/", operator)
    for words in ("nothing is being built or booted", "No worker has reported", "None in a week"):
        assert words in text


def test_a_claim_is_taken_back_and_its_late_answer_refused(operator: Client, booting: Run) -> None:
    claim = Claim("run", booting.pk, booting.token)
    answer = operator.post(
        f"/lab/claims/run/{booting.pk}", {"lease": lease_name(booting.token)}, follow=True
    ).content.decode()
    assert f"Run {booting.pk} is queued again" in answer
    booting.refresh_from_db()
    assert (booting.state, booting.token, booting.claimed_by) == ("queued", "", "")
    assert not record_run(claim, RunRecord(outcome=Outcome.FINISHED))
    assert "Results that arrived after their claim had expired" in operator.get("/lab/").content.decode()


def test_a_claim_that_is_another_by_now_is_left_alone(operator: Client, booting: Run) -> None:
    said = operator.post(f"/lab/claims/run/{booting.pk}", {"lease": "00000000"}, follow=True).content.decode()
    assert "has changed since this page was loaded" in said
    booting.refresh_from_db()
    assert booting.state == "running"
    assert operator.post("/lab/claims/run/999").status_code == 404
    assert operator.post(f"/lab/claims/tree/{booting.pk}").status_code == 404


def test_a_build_is_taken_back(operator: Client, db: None) -> None:
    make_grid()
    build = Build.objects.all()[0]
    claimed_build(build)
    listed = operator.get("/lab/?search=rack").content.decode()
    form = listed.partition(f'action="/lab/claims/build/{build.pk}"')[2].partition("</form>")[0]
    assert 'name="kept" value="search=rack"' in form
    answer = operator.post(f"/lab/claims/build/{build.pk}", {"kept": "search=rack"})
    assert answer.headers["Location"] == "/lab/?search=rack"
    build.refresh_from_db()
    assert build.state == "queued"


def test_a_target_is_released_from_quarantine(operator: Client, db: None) -> None:
    target = Target.objects.create(name="m1", faults=3, quarantined_at=timezone.now(), quarantine_reason="x")
    said = operator.post(f"/lab/targets/{target.pk}", {"released": "yes"}, follow=True).content.decode()
    assert "m1 is released" in said
    target.refresh_from_db()
    assert (target.faults, target.quarantined_at) == (0, None)


def test_a_button_leads_back_to_the_targets_that_were_listed(page: Page, operator: Client) -> None:
    target = Target.objects.create(name="rack-1")
    for address in ("/lab/?search=rack&page=2", "/lab/live?search=rack&page=2"):
        (kept,) = set(re.findall(r'name="kept" value="([^"]*)"', page(address, operator)))
        posted = {"enabled": "no", "kept": unescape(kept)}
        answer = operator.post(f"/lab/targets/{target.pk}", posted)
        assert answer.headers["Location"] == "/lab/?search=rack&page=2"


def test_only_operators_see_and_change_it(
    viewer: Client, submitter: Client, client: Client, booting: Run
) -> None:
    for by in (viewer, submitter):
        assert by.get("/lab/live").status_code == 403
        assert by.post(f"/lab/claims/run/{booting.pk}").status_code == 403
    assert client.get("/lab/live").status_code == 302
    booting.refresh_from_db()
    assert booting.state == "running"


def headers(user: User, *scopes: str) -> dict[str, str]:
    return {"Authorization": f"Token {issue_token(user=user, name='x', scopes=scopes, days=1)[1]}"}


def test_the_api_tells_operators_the_same_and_takes_claims_back(
    client: Client, charlie: User, alice: User, booting: Run, caplog: pytest.LogCaptureFixture
) -> None:
    Worker.objects.create(name="h1:1:1", host="h1", queues=["target.guest"], version="abc")
    operates, reads = headers(charlie, "read", "operate"), headers(alice, "read", "submit")
    for address in ("workers", "queues", "claims"):
        assert client.get(f"/api/v1/{address}/", headers=reads).status_code == 403, address
        assert client.get(f"/api/v1/{address}/", headers=operates).status_code == 200, address
    (worker,) = client.get("/api/v1/workers/?host=h1", headers=operates).json()["results"]
    assert (worker["name"], worker["queues"], worker["version"]) == ("h1:1:1", ["target.guest"], "abc")
    queues = {queue["name"]: queue for queue in client.get("/api/v1/queues/", headers=operates).json()}
    assert (queues["target.guest"]["running"], queues["target.guest"]["workers"]) == (1, ["h1:1:1"])
    (claim,) = client.get("/api/v1/claims/", headers=operates).json()
    assert (claim["kind"], claim["id"], claim["target"]) == ("run", booting.pk, "guest")
    assert booting.token not in str(claim), "the token lets one write"
    assert client.delete(f"/api/v1/claims/run/{booting.pk}/", headers=reads).status_code == 403
    caplog.set_level(logging.WARNING)
    assert client.delete(f"/api/v1/claims/run/{booting.pk}/", headers=operates).status_code == 204
    assert "by charlie" in caplog.text
    assert client.delete(f"/api/v1/claims/run/{booting.pk}/", headers=operates).status_code == 409
    assert client.delete("/api/v1/claims/run/999/", headers=operates).status_code == 404


def test_a_boot_that_ended_is_in_no_list_of_claims(operator: Client, booting: Run) -> None:
    record_run(Claim("run", booting.pk, booting.token), RunRecord(outcome=Outcome.FINISHED))
    assert "nothing is being built or booted" in operator.get("/lab/").content.decode()
    assert Experiment.objects.exists()


@pytest.fixture
def many(db: None) -> list[Target]:
    """Sixty targets in two groups, of which one is in quarantine and one is disabled."""
    return Target.objects.bulk_create(
        Target(
            name=f"board-{number:02d}",
            group="amd" if number % 2 else "arm",
            quarantined_at=timezone.now() if number == 7 else None,
            enabled=number != 8,
        )
        for number in range(60)
    )


def test_targets_of_a_lab_whose_one_worker_reports_nowhere_are_well(
    page: Page, operator: Client, many: list[Target]
) -> None:
    text = page("/lab/", operator)
    assert f"{Target.objects.count() - 2} well" in text
    assert "unserved" not in text


def test_many_targets_are_told_by_state_and_by_group_and_a_page_of_them_is_shown(
    page: Page, operator: Client, many: list[Target], settings: Any
) -> None:
    settings.REDIS = "redis://:secret@localhost:6379/0"
    Target.objects.exclude(name__startswith="board").delete()
    text = page("/lab/", operator)
    for words in (
        "60 targets",
        "1 quarantine",
        "1 disabled",
        "58 unserved",
        "?group=amd",
        "60 targets, page 1 of 3",
    ):
        assert words in text, words
    # What needs a person comes first.
    assert text.index("board-07") < text.index("board-00")
    assert text.count("/edit") == 25
    # An operator disabled it: it is not ill.
    disabled = page("/lab/?state=disabled", operator)
    assert ">ill</span>" not in disabled
    assert "</svg>disabled</span>" in disabled


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("search=board-3", 10),
        ("group=arm&search=board-3", 5),
        ("state=quarantine", 1),
        ("state=disabled&group=amd", 0),
        ("state=odd&search=board-07", 1),
    ],
)
def test_the_address_narrows_the_targets_and_the_part_that_updates_itself_too(
    page: Page, operator: Client, many: list[Target], query: str, shown: int
) -> None:
    for address in ("/lab/", "/lab/live"):
        text = page(f"{address}?{query}", operator)
        assert text.count("/edit") == shown
        assert f"/lab/live?{query.replace('&', '&amp;')}" in text
    assert ("No target matches" in text) == (not shown)


def test_page_and_api_count_alike(page: Page, operator: Client, many: list[Target]) -> None:
    fleet = operator.get("/api/v1/fleet/").json()
    text = page("/lab/", operator)
    assert fleet["targets"] == Target.objects.count()
    for state, number in fleet["states"].items():
        assert f"{number} {state}" in text
    assert {group["group"]: group["targets"] for group in fleet["groups"]}["amd"] == 30
    assert sum(group["targets"] for group in fleet["groups"]) == fleet["targets"]


def test_what_is_opened_on_a_page_that_renews_itself_can_stay_open() -> None:
    # web/front/live.js finds it again by its id.
    templates = Path(__file__).parents[1] / "templates" / "web"
    fragments = {path.name: path.read_text() for path in templates.glob("*.html")}
    live = {name for name, text in fragments.items() if "hx-swap" in text}
    assert "lab_live.html" in live
    for name in live:
        assert not re.findall(r"<details(?![^>]*\bid=)[^>]*>", fragments[name]), name
