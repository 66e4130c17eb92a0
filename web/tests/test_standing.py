# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of standing experiments and alerts, and the address forges push to."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from lab.models import Alert, Standing, Target, Tree, User
from lab.standing import changes
from lab.tests.factories import make_experiment
from web.tests.conftest import SCRIPT, Page, strip_escaped

SECRET = "a secret of enough characters"
TOML = """
name = "x"
tree = "debian-6.1"
[[cases]]
workload = "showgids"
preset = "smoke"
"""
TYPED = {
    "name": "nightly",
    "toml": TOML,
    "branch": "",
    "poll_minutes": "5",
    "quiet_from": "22",
    "quiet_until": "6",
    "mail_to": "ann@example.org, bob@example.org",
    "enabled": "yes",
}


@pytest.fixture
def standing(alice: User) -> Standing:
    experiment = make_experiment(name=SCRIPT)
    nightly = Standing.objects.create(
        name="nightly",
        owner=alice,
        spec={"name": SCRIPT, "tree": "tiny", "cases": [{"workload": "showgids", "preset": "smoke"}]},
        tree=Tree.objects.get(name="tiny"),
        branch="main",
        secret=SECRET,
        problem=f"waits {SCRIPT}",
        mail_to=["ann@example.org"],
        last_commit="c" * 40,
    )
    experiment.standing = nightly
    experiment.save()
    Alert.objects.create(
        standing=nightly,
        experiment=experiment,
        trend="abc123abc123",
        metric="ns_per_open",
        commit="d" * 40,
        ratio=1.2,
        worse=True,
        text=f"got worse {SCRIPT}",
    )
    return nightly


def push(client: Client, name: str = "nightly", **headers: str) -> Any:
    return client.post(f"/hooks/forge/{name}", b"{}", content_type="application/json", headers=headers)


def test_everybody_reads_them_and_nobody_but_those_who_may_sees_the_secret(
    page: Page, standing: Standing, submitter: Client, viewer: Client, operator: Client
) -> None:
    for by in (None, viewer, submitter):
        for address in ("/standing/", "/standing/nightly/", "/alerts/", "/alerts/?unseen=1"):
            assert "nightly" in page(address, by)
    for by, sees in ((None, False), (viewer, False), (submitter, True), (operator, True)):
        text = page("/standing/nightly/", by)
        assert (SECRET in text) is sees
        assert ("ann@example.org" in text) is sees
        assert ("Run now" in text) is sees
        assert "<script" not in strip_escaped(text)


def test_a_form_becomes_a_standing_experiment(submitter: Client, alice: User) -> None:
    Target.objects.get_or_create(name="guest")
    answer = submitter.post("/standing/new", TYPED)
    assert answer.headers["Location"] == "/standing/nightly/"
    row = Standing.objects.get()
    assert (row.owner, row.tree.name, row.poll_every_s) == (alice, "debian-6.1", 300)
    assert (row.quiet_from, row.quiet_until, row.enabled, row.backfill) == (22, 6, True, False)
    assert row.mail_to == ["ann@example.org", "bob@example.org"]
    assert len(row.secret) >= 32
    changed = TYPED | {"name": "weekly", "backfill": "yes", "secret": ""}
    del changed["enabled"]
    assert submitter.post("/standing/nightly/edit", changed).status_code == 302
    after = Standing.objects.get()
    assert (after.name, after.enabled, after.backfill, after.secret) == ("weekly", False, True, row.secret)


@pytest.mark.parametrize("seconds", [60, 100, 1_000, 604_799])
def test_the_form_takes_back_the_interval_that_it_shows(
    submitter: Client, standing: Standing, seconds: int
) -> None:
    Standing.objects.update(poll_every_s=seconds)
    form = submitter.get("/standing/nightly/edit").content.decode()
    (minutes,) = re.findall(r'name="poll_minutes" value="([^"]*)"', form)
    typed = TYPED | {"toml": TOML.replace("debian-6.1", "tiny"), "poll_minutes": minutes}
    assert submitter.post("/standing/nightly/edit", typed).status_code == 302
    assert Standing.objects.get().poll_every_s == seconds


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"name": "two words"}, "name", "letters, digits"),
        ({"name": "new"}, "name", "letters, digits"),
        ({"toml": "x ="}, "toml", "not valid TOML"),
        ({"toml": TOML.replace("showgids", "showgid")}, "toml", "did you mean"),
        ({"toml": TOML.replace("debian-6.1", "debian-6.l")}, "toml", "there is no tree"),
        ({"branch": "main"}, "branch", "has no branches"),
        ({"poll_minutes": "soon"}, "poll_minutes", "“soon” is not a number of minutes"),
        ({"poll_minutes": "0"}, "poll_minutes", "60 to 604,800 seconds"),
        ({"quiet_from": "99"}, "quiet_from", "99 is not an hour"),
        ({"mail_to": "me"}, "mail_to", "not a mail address"),
        ({"secret": "short"}, "secret", "16 to 100"),
    ],
)
def test_a_wrong_field_is_told_beside_it_and_what_was_typed_stays(
    typed: dict[str, str], field: str, said: str, submitter: Client
) -> None:
    Target.objects.get_or_create(name="guest")
    answer = submitter.post("/standing/new", TYPED | typed)
    text = answer.content.decode()
    assert answer.status_code == 422
    error = text.split(f'id="{field}-error">')[1].split("</span>")[0]
    assert said.lower() in error.lower().replace("&quot;", '"')
    assert 'value="ann@example.org, bob@example.org"' in text or field == "mail_to"
    assert not Standing.objects.exists()


def test_what_a_worker_notes_while_a_form_is_checked_is_not_overwritten(
    standing: Standing, submitter: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(*arguments: Any) -> Any:
        Standing.objects.update(last_commit="d" * 40, due=True, stale=True)
        return described(*arguments)

    described = changes._described
    monkeypatch.setattr(changes, "_described", checked)
    typed = TYPED | {"toml": TOML.replace("debian-6.1", "tiny"), "branch": "main", "poll_minutes": "10"}
    assert submitter.post("/standing/nightly/edit", typed).status_code == 302
    standing.refresh_from_db()
    assert standing.poll_every_s == 600
    # Otherwise the revision would be measured a second time, and the push would be forgotten.
    assert (standing.last_commit, standing.due, standing.stale) == ("d" * 40, True, True)


def test_an_experiments_description_is_taken_over(page: Page, submitter: Client) -> None:
    spec = {"name": "mine", "tree": "tiny", "base": "v1", "cases": [{"workload": "stat-walk"}]}
    experiment = make_experiment(spec=spec)
    text = page(f"/standing/new?from={experiment.pk}", submitter)
    assert "workload = &quot;stat-walk&quot;" in text
    assert submitter.get("/standing/new?from=99999").status_code == 404


def test_who_may_not_change_one_is_refused(
    standing: Standing, viewer: Client, operator: Client, client: Client
) -> None:
    for by, status in ((viewer, 403), (client, 302), (operator, 302)):
        assert by.post("/standing/nightly/act", {"act": "disable"}).status_code == status
    standing.refresh_from_db()
    assert not standing.enabled
    assert viewer.get("/standing/nightly/edit").status_code == 403
    assert viewer.get("/standing/new").status_code == 403


def test_a_password_in_a_git_url_is_not_shown(page: Page, standing: Standing, submitter: Client) -> None:
    secret = "https://a:secret@example.org/x.git"
    Standing.objects.update(spec=standing.spec | {"git": secret})
    assert "https://example.org/x.git" in page("/standing/nightly/")
    assert "secret@" not in page("/standing/nightly/")
    row = make_experiment(spec={"git": secret, "cases": []})
    assert "secret@" not in page(f"/standing/new?from={row.pk}", submitter)


def test_a_button_that_the_page_lacks_is_refused(standing: Standing, submitter: Client) -> None:
    assert submitter.post("/standing/nightly/act", {"act": "pause"}).status_code == 400


def test_run_now_enable_and_remove(standing: Standing, submitter: Client) -> None:
    submitter.post("/standing/nightly/act", {"act": "disable"})
    text = submitter.post("/standing/nightly/act", {"act": "run"}, follow=True).content.decode()
    assert "enable it first" in text
    submitter.post("/standing/nightly/act", {"act": "enable"})
    submitter.post("/standing/nightly/act", {"act": "run"})
    standing.refresh_from_db()
    assert (standing.due, standing.last_commit) == (True, "")
    assert submitter.post("/standing/nightly/act", {"act": "remove"}).headers["Location"] == "/standing/"
    assert not Standing.objects.exists()


def test_an_alert_is_marked_as_seen_by_submitters_only(
    page: Page, standing: Standing, submitter: Client, viewer: Client
) -> None:
    alert = Alert.objects.get()
    assert "(1 new)" in page("/standing/", viewer)
    assert viewer.post(f"/alerts/{alert.pk}/seen").status_code == 403
    assert 'name="kept" value="unseen=1&amp;page=1"' in page("/alerts/?unseen=1&page=1", submitter)
    seen = submitter.post(f"/alerts/{alert.pk}/seen", {"kept": "unseen=1&page=1"})
    assert seen.headers["Location"] == "/alerts/?unseen=1&page=1"
    assert "No new alert" in page("/alerts/?unseen=1", viewer)
    assert "alice" in page("/alerts/", viewer)


def test_alerts_come_in_pages(page: Page, standing: Standing) -> None:
    Alert.objects.bulk_create(
        Alert(
            standing=standing,
            trend="t",
            metric="m",
            commit=f"{n:040x}",
            ratio=1,
            worse=False,
            text=f"step {n}",
        )
        for n in range(60)
    )
    assert "step 59" in page("/alerts/")
    assert "step 3<" in page("/alerts/?page=2")
    assert "step 59" in page("/alerts/?page=x")


def test_a_signed_push_makes_it_look_without_a_cookie_or_a_session(standing: Standing) -> None:
    strict = Client(enforce_csrf_checks=True)
    digest = hmac.new(SECRET.encode(), b"{}", hashlib.sha256).hexdigest()
    assert push(strict, X_Hub_Signature_256=f"sha256={digest}").status_code == 202
    standing.refresh_from_db()
    assert standing.due
    for wrong in ({}, {"X_Hub_Signature_256": "sha256=00"}, {"X_Gitlab_Token": "guess"}):
        assert push(strict, **wrong).status_code == 403
    assert push(strict, "nowhere", X_Gitlab_Token=SECRET).status_code == 403
    assert strict.get("/hooks/forge/nightly").status_code == 405


def test_a_push_reaches_a_lab_where_nobody_reads_without_signing_in(
    standing: Standing, settings: Any
) -> None:
    settings.ANONYMOUS_MAY_READ = False
    assert push(Client(), X_Gitlab_Token=SECRET).status_code == 202


def test_pushes_from_one_address_are_limited(standing: Standing, settings: Any) -> None:
    cache.clear()
    settings.API_RATES = settings.API_RATES | {"push": "3/min"}
    statuses = [push(Client(), X_Gitlab_Token="guess").status_code for _ in range(4)]
    assert statuses == [403, 403, 403, 429]
    assert push(Client(), X_Gitlab_Token=SECRET).headers["Retry-After"]
    cache.clear()


def test_when_it_is_told_is_shown(page: Page, standing: Standing) -> None:
    assert "not yet" in page("/alerts/")
    Alert.objects.update(told_at=timezone.now())
    assert "now" in page("/alerts/")
