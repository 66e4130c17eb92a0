# SPDX-License-Identifier: GPL-2.0-or-later
"""The submitter of an experiment gets one mail when it finishes, through a real mail server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.comparisons.conclusion.collect import conclusion_data
from lab.hooks import finish_mails
from lab.hooks.changes import HookFields, make_hook
from lab.hooks.deliver import MOST_TRIES, DeliveryAttempt, deliver_due
from lab.models import Delivery, Experiment, Standing, Target, Tree, User
from lab.models.states import DeliveryState
from lab.people.accounts import set_finish_mails
from lab.runs.settle import cancel_experiment, settle
from lab.tests.factories import finish_builds, finish_run, make_bisection, make_grid, make_user
from lab.tests.fresh_python import run_python
from lab.tests.mail_receiver import MailReceiver, Taken, receiving_mails
from lab.tests.receiver import receiving
from lab.tests.template_database import begin_with_template

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice", email="alice@kernel.example")


@pytest.fixture
def server(settings: Any) -> Iterator[MailReceiver]:
    with receiving_mails() as receiver:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", receiver.port
        settings.DEFAULT_FROM_EMAIL = "Lab <lab@lab.example>"
        yield receiver


def finished(by: User | None, name: str = "rwsem & <hashed>", **fields: Any) -> Experiment:
    experiment = make_grid()
    Experiment.objects.filter(pk=experiment.pk).update(submitter=by, name=name, **fields)
    finish_builds(experiment)
    for run in experiment.runs.all():
        finish_run(run, {"ns_per_open": [1.0, 1.0, 1.0]})
    experiment.refresh_from_db()
    assert experiment.state == "done"
    return experiment


def try_now() -> DeliveryAttempt:
    Delivery.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    (tried,) = deliver_due()
    return tried


def words(text: str) -> str:
    return " ".join(text.split())


def body(taken: Taken) -> str:
    return str(taken.mail.get_content()).replace("\r\n", "\n")


def test_the_submitter_gets_one_mail_with_the_conclusion(alice: User, server: MailReceiver) -> None:
    experiment = finished(alice)
    (tried,) = deliver_due()
    assert str(tried) == (
        f"mail to alice: experiment.done of experiment/{experiment.pk}: delivered (accepted by 127.0.0.1:{server.port})"
    )
    assert deliver_due() == []
    assert settle(experiment.pk) is False
    (taken,) = server.taken
    conclusion = conclusion_data(experiment)
    assert (taken.sender, taken.receivers) == ("lab@lab.example", ("alice@kernel.example",))
    assert taken.mail["From"] == "Lab <lab@lab.example>"
    assert taken.mail["To"] == "alice@kernel.example"
    assert taken.mail["Subject"] == f"[kperflab] rwsem & <hashed>: {conclusion['headline']}"
    assert taken.mail["Auto-Submitted"] == "auto-generated"
    assert taken.mail.get_content_type() == "text/plain"
    assert words(conclusion["text"]) in words(body(taken))
    assert f"http://127.0.0.1:8000/experiments/{experiment.pk}/\n" in body(taken)
    assert max(map(len, body(taken).splitlines())) <= 150


def test_the_link_in_the_mail_is_the_one_in_its_header(alice: User, server: MailReceiver) -> None:
    finished(alice)
    deliver_due()
    (taken,) = server.taken
    link = taken.mail["List-Unsubscribe"].strip(" <>")
    assert link.startswith("http://127.0.0.1:8000/mails/stop/")
    assert f"No more of these mails: {link}\n" in body(taken)
    assert taken.mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_one_that_failed_says_why(alice: User, server: MailReceiver) -> None:
    experiment = make_grid()
    Experiment.objects.filter(pk=experiment.pk).update(submitter=alice)
    finish_builds(experiment)
    for run in experiment.runs.all():
        finish_run(run, outcome="lost", blame="lab", problem="no answer\nfrom the BMC")
        Target.objects.update(faults=0)
    assert try_now().event == "experiment.failed"
    (taken,) = server.taken
    assert "No answer: the base kernel did not finish a boot" in taken.mail["Subject"]
    assert "no answer from the BMC" in words(body(taken))


def test_cancelling_tells_the_submitter_unless_it_was_the_submitter(
    alice: User, server: MailReceiver
) -> None:
    for by in (alice, make_user("olga", User.Role.OPERATOR, email="olga@kernel.example"), None):
        experiment = make_grid()
        Experiment.objects.filter(pk=experiment.pk).update(submitter=alice)
        assert cancel_experiment(experiment.pk, by=by)
    assert [tried.event for tried in deliver_due()] == ["experiment.cancelled"] * 2
    assert {taken.receivers for taken in server.taken} == {("alice@kernel.example",)}


@pytest.mark.parametrize("fields", [{"email": ""}, {"is_active": False}, {"finish_mails": False}], ids=str)
def test_nobody_who_gets_no_mails_gets_one(fields: dict[str, Any], alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(**fields)
    finished(User.objects.get(pk=alice.pk))
    assert not Delivery.objects.exists()


def test_what_the_lab_submits_by_itself_sends_none(alice: User) -> None:
    finished(None)
    tree = Tree.objects.get(name="tiny")
    finished(alice, standing=Standing.objects.create(name="nightly", owner=alice, tree=tree, spec={}))
    step = make_grid()
    make_bisection(tree, ["a" * 40, "b" * 40]).steps.create(number=1, revision=0, boots=2, experiment=step)
    Experiment.objects.filter(pk=step.pk).update(submitter=alice)
    assert cancel_experiment(step.pk)
    assert not Delivery.objects.exists()


def test_whoever_turns_them_off_meanwhile_gets_none(alice: User, server: MailReceiver) -> None:
    finished(alice)
    set_finish_mails(alice, on=False)
    tried = try_now()
    assert (tried.state, tried.answer) == (
        DeliveryState.GIVEN_UP,
        "its recipient has turned mails off",
    )
    assert server.conversations == 0


def test_a_lab_without_a_mail_server_sends_none(alice: User, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    finished(alice)
    tried = try_now()
    assert tried.state == DeliveryState.GIVEN_UP
    assert "KPERFLAB_SMTP is not set" in tried.answer


@pytest.mark.hostile
@pytest.mark.parametrize(
    "name",
    [
        "x\nBcc: all@example.org",
        "x\r\nBcc: all@example.org\r\n\r\nbody",
        "x\u2028Bcc: all@example.org",
        "x\x00\x0b\x0c\x1c\x85Bcc: all@example.org",
        "=?utf-8?q?x=0ABcc:_all@example.org?=",
        "\u202eevil" + "ü" * 150,
    ],
)
def test_a_name_is_no_header(name: str, alice: User, server: MailReceiver) -> None:
    finished(alice, name=name)
    deliver_due()
    (taken,) = server.taken
    assert taken.receivers == ("alice@kernel.example",)
    assert taken.mail["Bcc"] is None
    assert set(taken.mail.keys()) == {
        "Content-Type",
        "MIME-Version",
        "Content-Transfer-Encoding",
        "Subject",
        "From",
        "To",
        "Date",
        "Message-ID",
        "List-Unsubscribe",
        "List-Unsubscribe-Post",
        "Auto-Submitted",
    }
    assert taken.mail["Subject"].isprintable()


@pytest.mark.hostile
def test_a_body_of_strangers_ends_no_mail(alice: User, server: MailReceiver) -> None:
    finished(alice, name=".\r\n.\r\nMAIL FROM:<evil@example.org>\r\n")
    finished(alice, name="second")
    deliver_due()
    assert {taken.sender for taken in server.taken} == {"lab@lab.example"}
    assert len(server.taken) == 2
    assert server.conversations == 1


def test_a_server_that_is_away_is_tried_again_and_then_takes_it(
    alice: User, server: MailReceiver, settings: Any
) -> None:
    finished(alice)
    settings.EMAIL_PORT = 9
    tried = try_now()
    assert tried.state == DeliveryState.WAITING
    assert tried.answer.startswith("the mail server 127.0.0.1:9 does not answer: ConnectionRefusedError")
    assert deliver_due() == []
    settings.EMAIL_PORT = server.port
    assert try_now().state == DeliveryState.DELIVERED
    assert len(server.taken) == 1


def test_a_server_that_stays_away_is_given_up(alice: User, server: MailReceiver, settings: Any) -> None:
    finished(alice)
    settings.EMAIL_PORT = 9
    assert [try_now().state for _ in range(MOST_TRIES)] == [
        *[DeliveryState.WAITING] * (MOST_TRIES - 1),
        DeliveryState.GIVEN_UP,
    ]


def test_a_server_that_says_nothing_holds_up_neither_hooks_nor_the_worker(
    alice: User, server: MailReceiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish_mails, "DEADLINE_S", 0.3)
    settings.HOOKS_PRIVATE = True
    server.mute = True
    with receiving() as hooked:
        make_hook(by=alice, fields=HookFields("ci", hooked.url))
        for _ in range(3):
            finished(alice)
        tried = {(attempt.to, attempt.state) for attempt in deliver_due()}
    assert tried == {("hook ci", DeliveryState.DELIVERED), ("mail to alice", DeliveryState.WAITING)}
    assert len(hooked.got) == 3
    assert server.conversations == 1


@pytest.mark.parametrize(
    ("replies", "state"),
    [
        ({"RCPT": "550 no such mailbox"}, DeliveryState.GIVEN_UP),
        ({"RCPT": "451 come back later"}, DeliveryState.WAITING),
        ({".": "554 looks like spam"}, DeliveryState.GIVEN_UP),
        ({".": "452 full"}, DeliveryState.WAITING),
        ({"MAIL": "530 who are you"}, DeliveryState.WAITING),
    ],
)
def test_a_refusal_of_the_mail_is_final_and_one_of_the_moment_is_not(
    replies: dict[str, str], state: DeliveryState, alice: User, server: MailReceiver
) -> None:
    server.replies = replies
    finished(alice)
    tried = try_now()
    assert (tried.state, server.taken) == (state, [])
    assert next(iter(replies.values()))[4:] in tried.answer


def test_one_mail_that_is_refused_takes_no_other_with_it(alice: User, server: MailReceiver) -> None:
    bad = make_user("bob", email='"b\u00f6b"@kernel.example')
    finished(bad)
    finished(alice)
    states = {attempt.to: attempt.state for attempt in deliver_due()}
    assert states["mail to alice"] == DeliveryState.DELIVERED


def test_a_mail_that_is_tried_again_has_the_same_number(alice: User, server: MailReceiver) -> None:
    finished(alice)
    assert try_now().state == DeliveryState.DELIVERED
    Delivery.objects.update(state=DeliveryState.WAITING)
    assert try_now().state == DeliveryState.DELIVERED
    first, second = server.taken
    assert first.mail["Message-ID"] == second.mail["Message-ID"]


FINISH = """
import workers.app
from django.core.management import call_command
call_command("migrate", verbosity=0)
from lab.hooks.tests.test_finish_mails import finished
from lab.tests.factories import make_user
finished(make_user("alice", email="alice@kernel.example"), name="by the environment")
"""
DELIVER = "import workers.app; from workers import tasks; tasks.deliver_events()"


@pytest.mark.process
def test_the_environment_alone_sends_it(tmp_path: Path) -> None:
    """From submission's end to a mail in a mailbox, each step in a process of its own."""
    begin_with_template(tmp_path / "home")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KPERFLAB_")}
    with receiving_mails() as receiver:
        variables = {
            "KPERFLAB_HOME": str(tmp_path / "home"),
            "KPERFLAB_SMTP": receiver.url,
            "KPERFLAB_MAIL_FROM": "perf@lab.example",
            "KPERFLAB_URL": "https://lab.example/",
        }
        for code in (FINISH, DELIVER):
            done = run_python(["-c", code], clean | variables, ROOT)
            assert done.returncode == 0, done.stderr
    (taken,) = receiver.taken
    assert taken.receivers == ("alice@kernel.example",)
    assert taken.mail["From"] == "perf@lab.example"
    assert taken.mail["Message-ID"].endswith("@lab.example>")
    assert taken.mail["Subject"].startswith("[kperflab] by the environment: No difference")
    assert "https://lab.example/experiments/1/\n" in body(taken)
    assert taken.mail["List-Unsubscribe"].strip().startswith("<https://lab.example/mails/stop/")
