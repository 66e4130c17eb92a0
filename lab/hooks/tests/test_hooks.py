# SPDX-License-Identifier: GPL-2.0-or-later
"""Hooks: who may make which, what is written when something happens, and what each kind is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.conftest import Describe
from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.hooks.changes import HookFields, change_hook, deliver_again, make_hook, remove_hook, try_hook
from lab.hooks.events import EVENTS, tell_experiment
from lab.hooks.request import Event, request_for, signature, status_of
from lab.models import Build, Delivery, Experiment, Hook, Target, Tree, User
from lab.models.states import ExperimentState
from lab.runs.record import Failure, record_build_failure
from lab.runs.settle import cancel_experiment, settle
from lab.submission.submit import submit_experiment
from lab.tests.factories import (
    claimed_build,
    finish_build,
    finish_builds,
    finish_run,
    make_experiment,
    make_grid,
    make_patch_switch,
    make_user,
)

pytestmark = pytest.mark.django_db
GITHUB = "https://api.github.com/repos/o/r/statuses/{commit}"


@pytest.fixture
def alice() -> User:
    return make_user("alice")


def hook(by: User, **fields: Any) -> Hook:
    defaults: dict[str, Any] = {"name": "a hook", "url": "https://ci.example.org/hook"}
    return make_hook(by=by, fields=HookFields(**(defaults | fields)))


def deliveries() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("pk").values_list("event", "subject"))


@pytest.mark.process
def test_a_hook_hears_when_an_experiment_is_queued(alice: User, describe: Describe, home: Any) -> None:
    hook(alice)
    charlie = make_user("charlie", User.Role.OPERATOR)
    experiment = submit_experiment(spec=describe(), by=charlie, home=home)
    assert deliveries() == [("experiment.queued", f"experiment/{experiment.pk}")]
    payload = Delivery.objects.get().payload["experiment"]
    assert payload["submitter"] == "charlie"
    assert payload["url"].endswith(f"/experiments/{experiment.pk}/")


@pytest.mark.process
def test_a_submission_that_fails_at_its_end_is_not_told(
    alice: User, describe: Describe, home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(alice)

    def fails(experiment_id: int) -> None:
        tell_experiment(experiment_id)
        raise RuntimeError

    monkeypatch.setattr("lab.submission.submit.tell_experiment", fails)
    with pytest.raises(RuntimeError):
        submit_experiment(spec=describe(), home=home)
    assert deliveries() == []
    assert not Experiment.objects.exists()


def test_a_hook_hears_once_that_an_experiment_is_done(alice: User) -> None:
    hook(alice)
    experiment = make_grid()
    finish_builds(experiment)
    for run in experiment.runs.all():
        finish_run(run, {"ns_per_open": [1.0, 1.0, 1.0]})
    assert deliveries() == [("experiment.done", f"experiment/{experiment.pk}")]
    assert settle(experiment.pk) is False
    assert len(deliveries()) == 1


def test_a_hook_hears_of_a_cancelled_and_of_a_failed_one(alice: User) -> None:
    hook(alice)
    cancelled, failed = make_grid(), make_grid()
    assert cancel_experiment(cancelled.pk)
    finish_builds(failed)
    for run in failed.runs.all():
        finish_run(run, outcome="lost", blame="lab", problem="power cut")
        Target.objects.update(faults=0)
    assert deliveries() == [
        ("experiment.cancelled", f"experiment/{cancelled.pk}"),
        ("experiment.failed", f"experiment/{failed.pk}"),
    ]


@pytest.mark.parametrize(
    "deaf",
    [{"enabled": False}, {"events": ["alert"]}, {"tree": "another"}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_hook_hears_only_what_it_asked_for(deaf: dict[str, Any], alice: User) -> None:
    Tree.objects.create(name="another", kind="git", location="/x", default_revision="v1")
    hook(alice, **deaf)
    assert cancel_experiment(make_grid().pk)
    assert deliveries() == []


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"name": " "}, "name", "1 to 100"),
        ({"name": "taken"}, "name", "another name"),
        ({"kind": "githb"}, "kind", 'did you mean "github"'),
        ({"url": "ftp://x"}, "url", "https://host/path"),
        ({"url": "https://"}, "url", "https://host/path"),
        ({"url": "http://x.example.org/"}, "url", "use an https"),
        ({"url": "https://me:pass@x.example.org/"}, "url", "enter it as the secret"),
        ({"url": "https://127.0.0.1/"}, "url", "not public"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url", "not public"),
        ({"url": f"https://x.example.org/{'x' * 1000}"}, "url", "at most 1,000"),
        ({"events": []}, "events", "at least one"),
        ({"events": ["experiment.don"]}, "events", 'did you mean "experiment.done"'),
        ({"secret": "hello"}, "secret", "leave it empty"),
        ({"secret": "whsec_aGVsbG8="}, "secret", "24 to 64 bytes"),
        ({"tree": "nowhere"}, "tree", 'no tree "nowhere"'),
        ({"kind": "github", "secret": "t", "tree": "tiny"}, "url", "{commit}"),
        ({"kind": "github", "url": GITHUB, "tree": "tiny"}, "secret", "needs a token"),
        ({"kind": "github", "url": GITHUB, "secret": "a\nb", "tree": "tiny"}, "secret", "printable"),
        ({"kind": "github", "url": GITHUB, "secret": "t"}, "tree", "choose it"),
        ({"kind": "patchwork", "secret": "t"}, "url", "{patch}"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], field: str, said: str, alice: User) -> None:
    make_experiment()
    hook(alice, name="taken")
    with pytest.raises(FieldRefused) as caught:
        hook(alice, **fields)
    assert caught.value.field == field
    assert said in str(caught.value)
    assert Hook.objects.count() == 1


def test_viewers_make_none_and_others_touch_only_their_own(alice: User) -> None:
    own = hook(alice)
    with pytest.raises(NotAllowed, match="viewer"):
        hook(make_user("bob", User.Role.VIEWER))
    dave = make_user("dave")
    with pytest.raises(UnknownRow):
        change_hook(hook_id=own.pk, by=dave, changes={"name": "x"})
    with pytest.raises(UnknownRow):
        try_hook(hook_id=own.pk, by=dave)
    with pytest.raises(NotAllowed):
        remove_hook(hook_id=own.pk, by=alice, scopes=["read"])
    remove_hook(hook_id=own.pk, by=make_user("charlie", User.Role.OPERATOR))
    assert not Hook.objects.exists()


def test_a_token_stays_where_it_was_given_for(alice: User) -> None:
    make_experiment()
    made = hook(alice, kind="github", url=GITHUB, secret="token", tree="tiny")
    charlie = make_user("charlie", User.Role.OPERATOR)
    same = {"name": "renamed", "url": GITHUB.replace("o/r", "o/s")}
    assert change_hook(hook_id=made.pk, by=charlie, changes=same).secret == "token"
    away = {"url": "https://evil.example.org/{commit}"}
    with pytest.raises(FieldRefused, match="needs a token"):
        change_hook(hook_id=made.pk, by=charlie, changes=away)


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example of the specification's own documentation.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def experiment_told(
    state: str = "done", code: int | None = 0, compared: bool = True, **verdicts: int
) -> dict[str, Any]:
    return {
        "event": f"experiment.{state}",
        "experiment": {
            "name": "my patch",
            "standing": "",
            "state": state,
            "url": "https://lab/1",
            "commit": "c" * 40,
            "message_ids": ["1@x"],
            "compared": compared,
            "verdicts": verdicts,
            "exit_code": code,
            "problem": "",
        },
    }


@pytest.mark.parametrize(
    ("payload", "github", "gitlab", "patchwork"),
    [
        (experiment_told("queued", None), "pending", "pending", "pending"),
        (experiment_told(unchanged=2, improvement=1), "success", "success", "success"),
        (experiment_told(code=1, unchanged=2, regression=1, inconclusive=3), "failure", "failed", "fail"),
        (experiment_told(code=2, unchanged=2, inconclusive=1), "error", "canceled", "warning"),
        (experiment_told(code=2), "error", "canceled", "warning"),
        (experiment_told(code=2, compared=False), "success", "success", "success"),
        (experiment_told("failed", 3), "error", "canceled", "warning"),
        (experiment_told("cancelled", 3), "error", "canceled", "warning"),
    ],
)
def test_what_an_experiment_says_becomes_the_word_of_each_forge(
    payload: dict[str, Any], github: str, gitlab: str, patchwork: str
) -> None:
    event = Event("n", payload["event"], payload, 0)
    for kind, word in (("github", github), ("gitlab", gitlab), ("patchwork", patchwork)):
        request = request_for(kind, "https://x/{commit}/{patch}", "token", event)
        assert request is not None
        assert json.loads(request.body)["state"] == word


def test_a_patch_that_does_not_compile_is_no_success(alice: User) -> None:
    hook(alice)
    experiment = make_grid((("good",), ("broken",)))
    broken = experiment.variants.get(name="broken")
    assert broken.build is not None
    for build in Build.objects.exclude(pk=broken.build.pk):
        finish_build(build)
    failure = Failure("kernel", "fs/inode.c:7: error")
    assert record_build_failure(claimed_build(broken.build), failure)
    for run in experiment.runs.filter(state="queued"):
        finish_run(run, {"ns_per_open": [1.0, 1.0, 1.0]})
    payload = Delivery.objects.get(event="experiment.done").payload
    assert payload["experiment"]["exit_code"] == 2
    status = status_of(payload)
    assert status is not None
    assert status.state == "untold"


def test_an_alert_marks_the_commit_it_names_unless_it_is_good_news() -> None:
    alert = {"worse": True, "standing": "s", "text": "slower", "url": "u", "commit": "d" * 40}
    event = Event("n", "alert", {"alert": alert}, 0)
    request = request_for("github", GITHUB, "token", event)
    assert request is not None
    assert request.url.endswith("d" * 40)
    assert json.loads(request.body)["state"] == "failure"
    assert status_of({"alert": alert | {"worse": False}}) is None


@pytest.mark.parametrize(
    ("patches", "commit"),
    [
        ([], "c" * 40),
        ([{"name": "p", "range": f"v6.1..{'d' * 40}"}], "d" * 40),
        ([{"name": "p", "range": "v6.1..topic"}], ""),
        ([{"name": "p", "text": "diff"}], ""),
    ],
)
def test_an_experiment_is_about_the_tip_of_its_range_or_its_base(
    patches: list[dict[str, str]], commit: str, alice: User
) -> None:
    experiment = make_experiment(spec={"patches": patches}, state=ExperimentState.DONE)
    for patch in patches:
        make_patch_switch(experiment, patch["name"], link="https://lore.kernel.org/r/2@x")
    hook(alice)
    tell_experiment(experiment.pk)
    payload = Delivery.objects.get().payload["experiment"]
    assert payload["commit"] == commit
    assert payload["message_ids"] == (["2@x"] if patches else [])


def test_trying_a_status_hook_takes_the_newest_experiment_it_could_mark(alice: User) -> None:
    make_experiment()
    made = hook(alice, kind="patchwork", url="https://pw.example.org/api/patches/{patch}/checks/", secret="t")
    with pytest.raises(FieldRefused, match="could mark"):
        try_hook(hook_id=made.pk, by=alice)
    experiment = make_experiment(state=ExperimentState.DONE)
    make_patch_switch(experiment, "p", link="https://lore.kernel.org/r/2@x")
    make_experiment()
    assert try_hook(hook_id=made.pk, by=alice).payload["experiment"]["id"] == experiment.pk


def test_a_delivery_that_is_over_is_queued_again(alice: User) -> None:
    made = hook(alice)
    delivery = try_hook(hook_id=made.pk, by=alice)
    Delivery.objects.update(state="given-up", attempts=8)
    again = deliver_again(delivery_id=delivery.pk, by=alice)
    assert (again.state, again.attempts) == ("waiting", 0)
    with pytest.raises(UnknownRow):
        deliver_again(delivery_id=delivery.pk, by=make_user("dave"))


def test_all_events_are_told_of(alice: User) -> None:
    assert hook(alice).events == list(EVENTS)
