# SPDX-License-Identifier: GPL-2.0-or-later
"""Previews and submissions in a worker's hands, as people and programs meet them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lab.experiments.limits import FETCHES_OPEN_EACH
from lab.models import Experiment, Fetch, IdempotencyKey, Tree, User
from lab.people.tokens import issue_token
from lab.submission.fetches.requests import cancel_fetch
from lab.tests.factories import make_experiment, make_user
from lab.tests.fetchers import fetch_all
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.tests.conftest import SCRIPT, signed_in
from web.tests.test_submission import FILLED

pytestmark = pytest.mark.process

Post = Callable[..., Any]
GIT = {**FILLED, "params-showgids": "", "tree": "", "base": "v6.1"}


@pytest.fixture(autouse=True)
def trees_at_hand() -> None:
    """Here trees are what they are."""


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> str:
    """A repository that only workers may read."""
    settings.HOME, settings.LOCAL_PATHS = tmp_path / "home", True
    (tmp_path / "home" / "trees").mkdir(parents=True)
    return str(make_tiny_tree(tmp_path / "linux"))


@pytest.fixture
def form(source: str) -> dict[str, Any]:
    return {
        **GIT,
        "git": source,
        "patch-0-name": "one",
        "patch-0-text": diff("fs/inode.c", 10, "one"),
    }


@pytest.fixture
def described(source: str) -> dict[str, Any]:
    return {
        "name": "over REST",
        "git": source,
        "base": "v6.1",
        "patches": [{"name": "one", "text": diff("fs/inode.c", 10, "one")}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 3},
    }


@pytest.fixture
def post(alice: User) -> Post:
    """Post JSON to the API as alice."""
    token = issue_token(user=alice, name="t", scopes=["read", "submit"])[1]
    client = Client()

    def send(path: str, body: Any = None, method: str = "POST", **headers: str) -> Any:
        all_headers = {"Authorization": f"Token {token}"} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        path = f"/api/v1/{path}"
        return client.generic(method, path, _json(body), content_type="application/json", headers=all_headers)

    return send


def _json(body: Any) -> bytes:
    import json

    return b"" if body is None else json.dumps(body).encode()


def test_a_preview_of_a_git_tree_is_a_page_that_follows_a_worker(
    submitter: Client, form: dict[str, Any]
) -> None:
    sent = submitter.post("/experiments/new", {**form, "preview": "1"})
    row = Fetch.objects.get()
    assert sent.headers["Location"] == f"/fetches/{row.pk}/"
    waiting = submitter.get(f"/fetches/{row.pk}/").content.decode()
    assert "it is next" in waiting
    assert "The lab stops a fetch after 30 minutes, after 8 GiB, or when" in waiting
    assert f'hx-get="/fetches/{row.pk}/live"' in waiting
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in waiting
    fetch_all()
    assert submitter.get(f"/fetches/{row.pk}/live").headers["HX-Refresh"] == "true"
    done = submitter.get(f"/fetches/{row.pk}/")
    text = done.content.decode()
    assert done.status_code == 200
    assert "Preview: nothing is queued yet" in text
    assert "to build" in text
    assert 'value="kernfs"' in text
    assert Experiment.objects.count() == 0


def test_a_submission_of_a_git_tree_leads_to_its_experiment(submitter: Client, form: dict[str, Any]) -> None:
    page = submitter.post("/experiments/new", form).headers["Location"]
    assert Experiment.objects.count() == 0
    fetch_all()
    row = Experiment.objects.get()
    assert submitter.get(page).headers["Location"] == f"/experiments/{row.pk}/"
    again = submitter.post("/experiments/new", form)
    assert again.headers["Location"] == f"/experiments/{row.pk}/"


def test_one_page_sent_twice_is_one_fetch(submitter: Client, form: dict[str, Any]) -> None:
    first = submitter.post("/experiments/new", {**form, "key": "k"})
    second = submitter.post("/experiments/new", {**form, "key": "k"})
    assert first.headers["Location"] == second.headers["Location"]
    assert Fetch.objects.count() == 1


def test_a_branch_that_was_fetched_is_shown_as_a_patch_and_not_fetched_again(
    submitter: Client, form: dict[str, Any], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lab.submission.received_series import Received

    fetched = Received("work", diff("fs/dcache.c", 12, "work"), "branch work of x", "work", 1, 1)
    monkeypatch.setattr("lab.submission.fetches.series.receive_branch", lambda **_: fetched)
    sent = submitter.post(
        "/experiments/new", {**form, "branch_git": source, "branch": "work", "preview": "1"}
    )
    fetch_all()
    text = submitter.get(sent.headers["Location"]).content.decode()
    assert "branch work of x: one patch, as switch “work”" in text
    assert 'name="branch" value=""' in text
    assert "one+work" in text
    assert [series["name"] for series in Fetch.objects.get().received] == ["work"]


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("changed", "beside", "said"),
    [
        ({"base": "v9.9"}, "base", "has no revision"),
        ({"patch-0-text": diff("fs/inode.c", 10, "one").replace("line 9", "no line")}, "patch-0-text", "one"),
        ({"branch": "nowhere", "branch_git": "{source}"}, "branch", "has no branch"),
        ({"branch": "-x", "branch_git": "{source}"}, "branch", "cannot name a branch"),
    ],
)
def test_what_a_worker_refuses_comes_back_beside_its_field(
    submitter: Client, form: dict[str, Any], source: str, changed: dict[str, str], beside: str, said: str
) -> None:
    changed = {name: value.format(source=source) for name, value in changed.items()}
    page = submitter.post("/experiments/new", {**form, **changed, "preview": "1"}).headers["Location"]
    fetch_all()
    answer = submitter.get(page)
    text = answer.content.decode()
    assert answer.status_code == 422
    match = re.search(rf'id="{beside}-error">(.*?)</span>', text)
    assert match
    assert said in match[1]
    assert Experiment.objects.count() == 0


def test_a_description_as_toml_is_handed_over_too(submitter: Client, source: str) -> None:
    toml = f'name = "x"\ngit = "{source}"\nbase = "v9"\n[[cases]]\nworkload = "showgids"\npreset = "smoke"\n'
    posted = {"toml": toml, "preview": "1", "origin": str(make_experiment().pk)}
    page = submitter.post("/experiments/new", posted).headers["Location"]
    fetch_all()
    text = submitter.get(page).content.decode()
    assert "has no revision" in text
    assert "v9" in re.search(r'<textarea id="toml".*?</textarea>', text, re.DOTALL)[0]  # type: ignore[index]
    assert f'name="origin" value="{posted["origin"]}"' in text


def test_a_cancelled_preview_gives_the_form_back(submitter: Client, form: dict[str, Any]) -> None:
    page = submitter.post("/experiments/new", {**form, "preview": "1"}).headers["Location"]
    text = submitter.post(f"{page}cancel", follow=True).content.decode()
    assert "The preview was cancelled. Nothing was queued." in text
    assert 'value="kernfs"' in text
    assert fetch_all() == []


def test_a_rerun_of_a_git_tree_is_handed_over(submitter: Client, form: dict[str, Any]) -> None:
    submitter.post("/experiments/new", form)
    fetch_all()
    first = Experiment.objects.get()
    Experiment.objects.update(state="done")
    page = submitter.post(f"/experiments/{first.pk}/rerun").headers["Location"]
    assert page.startswith("/fetches/")
    fetch_all()
    second = Experiment.objects.exclude(pk=first.pk).get()
    assert second.origin == first
    assert submitter.get(page).headers["Location"] == f"/experiments/{second.pk}/"


def test_a_rerun_that_is_refused_says_so_on_the_experiments_page(
    submitter: Client, alice: User, source: str
) -> None:
    spec = {"name": "x", "git": f"{source}-gone", "cases": [{"workload": "showgids", "preset": "smoke"}]}
    row = make_experiment(submitter=alice, state="done", spec=spec)
    text = submitter.post(f"/experiments/{row.pk}/rerun", follow=True).content.decode()
    assert "It was not submitted again" in text
    assert Fetch.objects.count() == 0


# Others' fetches.


@pytest.mark.hostile
@pytest.mark.parametrize("path", ["", "live", "cancel"])
@pytest.mark.parametrize("who", ["dora", "viewer", "nobody"])
def test_anothers_fetch_is_nobody_elses(alice: User, path: str, who: str) -> None:
    row = Fetch.objects.create(
        user=alice, kind="preview", request={"description": {"name": SCRIPT}}, digest="d"
    )
    if who == "nobody":
        client, status = Client(), 302
    else:
        role, status = ("submitter", 404) if who == "dora" else ("viewer", 403)
        client = signed_in(make_user(who, User.Role(role)))
    address = f"/fetches/{row.pk}/{path}"
    answer = client.post(address) if path == "cancel" else client.get(address)
    assert answer.status_code == status
    assert b"<script>alert" not in answer.content
    row.refresh_from_db()
    assert row.state == "waiting"


def test_an_operator_may_cancel_anybodys_fetch(alice: User, operator: Client) -> None:
    row = Fetch.objects.create(user=alice, kind="preview", request={"description": {}}, digest="d")
    assert operator.post(f"/fetches/{row.pk}/cancel").status_code == 302
    row.refresh_from_db()
    assert row.state == "cancelled"


@pytest.mark.hostile
def test_a_name_that_is_a_script_is_a_text_on_the_page(submitter: Client, alice: User) -> None:
    request = {"description": {"name": SCRIPT}}
    row = Fetch.objects.create(
        user=alice, kind="preview", request=request, digest="d", state="running", progress=SCRIPT
    )
    text = submitter.get(f"/fetches/{row.pk}/").content.decode()
    assert SCRIPT not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("line", "bar", "first"),
    [
        ("importing linux-6.1.tar.xz: 30 %", 'max="100" value="30"', True),
        ("importing linux-6.1.tar.xz: 100 %", 'max="100" value="100"', True),
        ("fetching https://x.example/linux, receiving objects: 40 %", 'max="100" value="40"', False),
        ("applying mine", '<progress aria-label="In progress">', False),
        ("reading 5000 %", '<progress aria-label="In progress">', False),
    ],
)
def test_the_import_of_a_tree_is_shown_with_how_much_of_it_is_done(
    submitter: Client, alice: User, line: str, bar: str, *, first: bool
) -> None:
    row = Fetch.objects.create(
        user=alice, kind="preview", request={}, digest="d", state="running", progress=line
    )
    text = submitter.get(f"/fetches/{row.pk}/").content.decode()
    assert bar in text
    assert ("used here for the first time" in text) is first


# Limits.


@pytest.mark.hostile
def test_one_person_cannot_have_more_than_a_few_open(submitter: Client, form: dict[str, Any]) -> None:
    for number in range(FETCHES_OPEN_EACH):
        assert submitter.post("/experiments/new", {**form, "name": f"n{number}"}).status_code == 302
    refused = submitter.post("/experiments/new", {**form, "name": "one more"})
    assert refused.status_code == 422
    assert f"at most {FETCHES_OPEN_EACH} are allowed" in refused.content.decode()
    assert Fetch.objects.count() == FETCHES_OPEN_EACH
    cancel_fetch(fetch_id=Fetch.objects.all()[0].pk, by=Fetch.objects.all()[0].user)
    assert submitter.post("/experiments/new", {**form, "name": "one more"}).status_code == 302


@pytest.mark.hostile
def test_the_api_refuses_too_many_with_429(post: Post, described: dict[str, Any]) -> None:
    for number in range(FETCHES_OPEN_EACH):
        assert post("experiments/preview/", described | {"name": f"n{number}"}).status_code == 202
    refused = post("experiments/", described)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert "wait for one, or cancel it" in refused.json()["detail"]


# The API.


def test_the_api_answers_202_with_a_fetch_that_becomes_a_preview(
    post: Post, described: dict[str, Any]
) -> None:
    sent = post("experiments/preview/", described)
    assert sent.status_code == 202
    assert sent["Location"] == sent.json()["url"]
    assert sent["Retry-After"] == "1"
    fetch = sent.json()
    assert (fetch["state"], fetch["preview"], fetch["problem"], fetch["before"]) == ("waiting", None, None, 0)
    fetch_all()
    done = post(f"fetches/{fetch['id']}/", method="GET").json()
    assert done["state"] == "done"
    assert [variant["name"] for variant in done["preview"]["variants"]] == ["base", "one", "base-again"]
    assert post("fetches/", method="GET").json()["results"][0]["id"] == fetch["id"]


def test_the_api_submits_through_a_fetch_and_a_key_is_one_experiment(
    post: Post, described: dict[str, Any]
) -> None:
    sent = post("experiments/", described, Idempotency_Key="k1")
    assert sent.status_code == 202
    assert post("experiments/", described, Idempotency_Key="k1").json()["id"] == sent.json()["id"]
    other = post("experiments/", described | {"name": "other"}, Idempotency_Key="k1")
    assert other.json()["type"].endswith("#idempotency-key-reused")
    fetch_all()
    row = Experiment.objects.get()
    assert post(f"fetches/{sent.json()['id']}/", method="GET").json()["experiment"] == row.pk
    replayed = post("experiments/", described, Idempotency_Key="k1")
    assert (replayed.status_code, replayed["Idempotent-Replayed"], replayed.json()["id"]) == (
        200,
        "true",
        row.pk,
    )
    Fetch.objects.all().delete()
    assert post("experiments/", described, Idempotency_Key="k1").json()["id"] == row.pk


def test_a_fetch_that_failed_holds_the_problem_that_the_answer_would_have_been(
    post: Post, described: dict[str, Any]
) -> None:
    sent = post("experiments/", described | {"base": "v9"}, Idempotency_Key="k")
    fetch_all()
    fetch = post(f"fetches/{sent.json()['id']}/", method="GET").json()
    assert fetch["state"] == "failed"
    assert fetch["problem"]["status"] == 422
    assert fetch["problem"]["errors"][0]["pointer"] == "/base"
    assert not IdempotencyKey.objects.exists(), "the key is free again"
    assert post("experiments/", described, Idempotency_Key="k").status_code == 202


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("git", "/etc", "only operators may name a folder"),
        ("git", "http://127.0.0.1:1/x", "closed network"),
        ("git", "http://[::1]/x", "closed network"),
        ("git", "ext::sh -c id", "only operators may name a folder"),
        ("git", "file:///etc", "begins with"),
        ("git", "https://u:p@example.org/x", "no user name and no password"),
    ],
)
def test_an_address_that_no_worker_would_take_is_refused_at_once(
    post: Post, described: dict[str, Any], settings: Any, field: str, value: str, said: str
) -> None:
    settings.LOCAL_PATHS = False
    for path in ("experiments/", "experiments/preview/"):
        refused = post(path, described | {field: value})
        assert refused.status_code == 422
        assert said in refused.json()["detail"]
        assert refused.json()["errors"][0]["pointer"] == "/git"
    assert Fetch.objects.count() == 0


def test_a_token_that_only_reads_cancels_nothing(alice: User) -> None:
    row = Fetch.objects.create(user=alice, kind="preview", request={"description": {}}, digest="d")
    token = issue_token(user=alice, name="t", scopes=["read"])[1]
    answer = Client().post(f"/api/v1/fetches/{row.pk}/cancel/", headers={"Authorization": f"Token {token}"})
    assert answer.status_code == 403
    row.refresh_from_db()
    assert row.state == "waiting"


def test_the_limits_can_be_read_before(client: Client, db: None) -> None:
    limits = {limit["name"]: limit for limit in client.get("/api/v1/limits/").json()}
    assert limits["fetch_seconds"]["value"] == 1800
    assert all(limit["what"] and limit["unit"] for limit in limits.values())


def test_a_tree_that_is_registered_and_at_hand_needs_no_worker(
    submitter: Client, alice: User, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tree.objects.create(
        name="mine", kind="git", location="https://git.example.org/x", default_revision="main"
    )
    body = {**GIT, "tree": "mine", "preview": "1"}
    assert submitter.post("/experiments/new", body).headers["Location"].startswith("/fetches/")
    assert Fetch.objects.get().request["description"]["tree"] == "mine"
