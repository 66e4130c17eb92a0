# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.models import Alert, Delivery, Experiment, Hook, Note, Revision, Standing, User
from lab.tests.factories import make_experiment
from web.api.tests.conftest import As
from web.api.tests.store import TREND, fill


@pytest.fixture
def lab(people: dict[str, User], tmp_path: Path) -> Experiment:
    return fill(people, tmp_path)


def test_a_note_is_its_authors_to_change(ask: As, lab: Experiment) -> None:
    made = ask("alice").post("notes/", {"experiment": lab.pk, "text": "cold cache?"})
    assert made.status_code == 201
    note = made.json()["id"]
    assert made.json()["author"] == "alice"
    assert ask("dora")("PATCH", f"notes/{note}/", {"text": "mine"}).status_code == 403
    assert ask("bob").post("notes/", {"experiment": lab.pk, "text": "x"}).status_code == 403
    assert ask().post("notes/", {"experiment": lab.pk, "text": "x"}).status_code == 401
    assert ask("alice")("PATCH", f"notes/{note}/", {"text": "warm"}).json()["text"] == "warm"
    assert ask("alice", "read")("DELETE", f"notes/{note}/").status_code == 403
    assert ask("charlie")("DELETE", f"notes/{note}/").status_code == 204
    assert not Note.objects.filter(pk=note).exists()


def test_a_note_on_a_revision_names_its_commit(ask: As, lab: Experiment) -> None:
    commit = Revision.objects.values_list("commit", flat=True)[0]
    body = {"tree": "tiny", "commit": commit, "trend": TREND, "text": "merge window"}
    note = ask("alice").post("notes/", body).json()
    assert (note["commit"], note["tree"], note["trend"]) == (commit, "tiny", TREND)
    refused = ask("alice").post("notes/", body | {"commit": "f" * 40})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/commit"


@pytest.mark.parametrize("trend", ["no key", "0" * 12])
def test_a_note_on_a_trend_that_there_is_not_is_refused(trend: str, ask: As, lab: Experiment) -> None:
    commit = Revision.objects.values_list("commit", flat=True)[0]
    alice = ask("alice")
    # No page of a trend would show it, and its own page could not lead back to that trend.
    answer = alice.post("notes/", {"tree": "tiny", "commit": commit, "trend": trend, "text": "x"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/trend"


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"text": "on nothing"}, 422, "exactly one experiment, run or revision"),
        ({"experiment": 10**6, "text": "x"}, 422, "there is no experiment 1000000"),
        ({"experiment": "1", "text": "x"}, 400, "valid integer"),
        ({"experiment": True, "text": "x"}, 400, "valid integer"),
        ({"experiment": 1.5, "text": "x"}, 400, "valid integer"),
        ({"experiment": 1, "text": 7}, 400, "valid string"),
        ({"experiment": 1, "text": ""}, 400, "may not be blank"),
        ({"experiment": 1, "txt": "x"}, 400, 'did you mean "text"?'),
        ({"experiment": 1}, 400, "required"),
        (["text"], 400, "dictionary"),
    ],
)
def test_a_note_that_is_none_is_told_why(ask: As, lab: Experiment, body: Any, status: int, told: str) -> None:
    refused = ask("alice").post("notes/", body)
    assert refused.status_code == status
    assert told in str(refused.json()["errors"])


def test_a_decision_must_know_the_newest_one(ask: As, lab: Experiment) -> None:
    (newest,) = ask().get(f"triage/?experiment={lab.pk}").json()["results"]
    body = {name: newest[name] for name in ("case", "variant", "metric")} | {
        "state": "expected",
        "reason": "known",
    }
    stale = ask("alice").post("triage/", body)
    assert stale.status_code == 409
    assert "dora has set it to acknowledged" in stale.json()["detail"]
    made = ask("alice").post("triage/", body | {"seen": newest["id"]})
    assert made.status_code == 201
    assert (made.json()["author"], made.json()["experiment"]) == ("alice", lab.pk)
    unfixed = ask("alice").post("triage/", body | {"seen": made.json()["id"], "state": "fixed"})
    assert unfixed.json()["errors"][0]["pointer"] == "/fixed_by"
    assert ask("alice").post("triage/", body | {"case": 10**6}).status_code == 404
    wrong = ask("alice").post("triage/", body | {"state": "expcted"})
    assert 'did you mean "expected"?' in wrong.json()["detail"]


def test_a_hook_tells_its_secret_when_it_is_made_and_never_again(ask: As, lab: Experiment) -> None:
    made = ask("alice").post("hooks/", {"name": "mine", "url": "https://hooks.example.org/x"})
    assert made.status_code == 201, made.content
    assert made.json()["secret"].startswith("whsec_")
    path = f"hooks/{made.json()['id']}/"
    assert "secret" not in ask("alice").get(path).json()
    assert ask("dora").get(path).status_code == 404
    assert ask("charlie").get(path).status_code == 200
    missing = ask("dora").get("hooks/999999/").json()["detail"].replace("999999", path.split("/")[1])
    for method, place in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "try/")):
        refused = ask("dora")(method, f"{path}{place}", {"enabled": False} if method == "PATCH" else None)
        assert (refused.status_code, refused.json()["detail"]) == (404, missing), method
    changed = ask("alice")("PATCH", path, {"enabled": False, "events": ["alert"]}).json()
    assert (changed["enabled"], changed["events"], changed["url"]) == (
        False,
        ["alert"],
        "https://hooks.example.org/x",
    )
    assert Hook.objects.get(name="mine").secret == made.json()["secret"]
    bad = ask("alice")("PATCH", path, {"url": "http://127.0.0.1/"})
    assert bad.json()["errors"][0]["pointer"] == "/url"
    assert ask("alice")("DELETE", path).status_code == 204
    assert ask("bob").post("hooks/", {"name": "b", "url": "https://example.org/"}).status_code == 403


def test_a_hook_that_moves_to_another_host_tells_its_new_secret(ask: As, lab: Experiment) -> None:
    made = ask("alice").post("hooks/", {"name": "mine", "url": "https://hooks.example.org/x"}).json()
    path = f"hooks/{made['id']}/"
    same = ask("alice")("PATCH", path, {"url": "https://hooks.example.org/y"}).json()
    assert same["secret"] is None
    moved = ask("alice")("PATCH", path, {"url": "https://other.example.org/y"}).json()
    assert moved["secret"] == Hook.objects.get(name="mine").secret
    assert moved["secret"] != made["secret"]


def test_deliveries_are_seen_and_sent_again_by_the_hooks_owner(ask: As, lab: Experiment) -> None:
    hook = Hook.objects.get(name="ci")
    tried = ask("alice").post(f"hooks/{hook.pk}/try/")
    assert tried.status_code == 201
    listed = ask("alice").get(f"hooks/{hook.pk}/deliveries/").json()["results"]
    assert listed == ask("alice").get("deliveries/").json()["results"]
    assert [delivery["event"] for delivery in listed] == ["test", "alert"]
    assert ask("dora").get("deliveries/").json()["count"] == 0
    for place in ("", "deliveries/"):
        assert ask("dora").get(f"hooks/{hook.pk}/{place}").status_code == 404
    row = Delivery.objects.get(event="alert")
    Delivery.objects.filter(pk=row.pk).update(state="given-up", attempts=9)
    assert ask("dora").post(f"deliveries/{row.pk}/again/").status_code == 404
    again = ask("alice").post(f"deliveries/{row.pk}/again/").json()
    assert (again["state"], again["attempts"]) == ("waiting", 0)
    assert ask("alice").get(f"deliveries/{row.pk}/").json()["payload"] == {}


STANDING = {
    "name": "mm-next",
    "spec": {"name": "mm", "tree": "tiny", "cases": [{"workload": "showgids", "preset": "smoke"}]},
    "branch": "mm-unstable",
}


def test_a_standing_experiment_is_made_changed_asked_for_and_removed(ask: As, lab: Experiment) -> None:
    made = ask("alice").post("standing/", STANDING)
    assert made.status_code == 201, made.content
    standing = made.json()
    assert (standing["owner"], standing["tree"], standing["branch"]) == ("alice", "tiny", "mm-unstable")
    assert len(standing["secret"]) >= 16
    seen = ask().get("standing/mm-next/").json()
    assert "secret" not in seen
    assert seen["spec"]["cases"][0]["workload"] == "showgids"
    assert ask("dora")("PATCH", "standing/mm-next/", {"enabled": False}).status_code == 403
    changed = ask("alice")("PATCH", "standing/mm-next/", {"poll_every_s": 600}).json()
    assert (changed["poll_every_s"], changed["branch"]) == (600, "mm-unstable")
    assert Standing.objects.get().secret == standing["secret"]
    assert ask("alice").post("standing/mm-next/run/").json()["due"] is True
    assert ask().get("standing/?enabled=true&search=mm").json()["count"] == 1
    assert ask("alice")("DELETE", "standing/mm-next/").status_code == 204
    assert ask().get("standing/mm-next/").status_code == 404


def test_a_standing_experiment_that_cannot_be_is_told_by_its_field(ask: As, lab: Experiment) -> None:
    refused = ask("alice").post("standing/", STANDING | {"quiet_from": 25})
    assert refused.json()["errors"][0]["pointer"] == "/quiet_from"
    refused = ask("alice").post("standing/", STANDING | {"spec": {"name": "x", "cases": []}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/spec")
    assert ask("bob").post("standing/", STANDING).status_code == 403


def test_an_alert_is_seen_once(ask: As, lab: Experiment) -> None:
    ask("alice").post("standing/", STANDING)
    alert = Alert.objects.create(
        standing=Standing.objects.get(),
        trend=TREND,
        metric="ns_per_open",
        commit="c",
        ratio=1.2,
        worse=True,
        text="slow",
    )
    assert ask().get("alerts/?unseen=true").json()["count"] == 1
    assert ask("bob").post(f"alerts/{alert.pk}/seen/").status_code == 403
    assert ask("dora").post(f"alerts/{alert.pk}/seen/").json()["seen_by"] == "dora"
    assert ask("alice").post(f"alerts/{alert.pk}/seen/").json()["seen_by"] == "dora"
    assert ask().get("alerts/?unseen=true").json()["count"] == 0
    assert ask("alice").post("alerts/999/seen/").status_code == 404


def test_a_password_in_a_git_address_is_not_told(ask: As, lab: Experiment) -> None:
    assert "secret" not in str(ask().get(f"experiments/{lab.pk}/description/").json())
    row = make_experiment(spec={"git": "https://a:secret@example.org/x.git", "cases": []})
    assert ask().get(f"experiments/{row.pk}/description/").json()["git"] == "https://example.org/x.git"
