# SPDX-License-Identifier: GPL-2.0-or-later
"""A target that goes into quarantine, and one that comes back: hooks and operators are notified once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from lab.hooks.changes import HookFields, make_hook
from lab.hooks.deliver import deliver_due
from lab.models import Delivery, Quarantine, Run, Target, Tree, User
from lab.models.states import Outcome
from lab.runs.record import RunRecord, record_run
from lab.targets.health_checks import Checked, record_check
from lab.targets.operator_mails import tell_operators
from lab.targets.quarantine import FAULTS_IN_A_ROW, note_fault, release_target
from lab.tests.factories import claimed_run, finish_builds, make_grid, make_user, quarantine_target
from lab.tests.receiver import receiving

pytestmark = pytest.mark.django_db

LAST = "3 faults of the lab in a row, the last: "


@pytest.fixture
def box() -> Target:
    return Target.objects.create(name="box", group="rack", driver="metal")


@pytest.fixture
def boss() -> User:
    return make_user("boss", User.Role.OPERATOR, email="boss@lab.example")


def hook(**fields: Any) -> None:
    owner = User.objects.filter(username="owner").first() or make_user("owner")
    make_hook(by=owner, fields=HookFields(**({"name": "ours", "url": "https://ci.example.org/"} | fields)))


def target_events() -> list[str]:
    events = Delivery.objects.filter(event__startswith="target.")
    return list(events.order_by("pk").values_list("event", flat=True))


def test_the_boot_that_puts_a_target_into_quarantine_tells_it_once(boss: User) -> None:
    hook()
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    for number, run in enumerate(Run.objects.order_by("position")[:FAULTS_IN_A_ROW], start=1):
        lost = RunRecord(Outcome.LOST, blame="lab", problem="no answer\nfrom the BMC")
        assert record_run(claimed_run(run), lost)
        assert target_events() == ["target.quarantined"] * (number == FAULTS_IN_A_ROW)
    (delivery,) = Delivery.objects.filter(event="target.quarantined")
    assert delivery.payload["target"]["reason"].endswith("the last: no answer from the BMC")
    assert tell_operators()
    assert len(mail.outbox) == 1


def test_a_check_that_fails_tells_it_too_and_what_follows_is_no_news(box: Target, boss: User) -> None:
    hook()
    for _ in range(FAULTS_IN_A_ROW + 2):
        record_check(box.pk, Checked(False, "it does not boot"))
    assert target_events() == ["target.quarantined"]
    tell_operators()
    assert tell_operators() is None
    (sent,) = mail.outbox
    assert sent.to == ["boss@lab.example"]
    assert sent.subject.startswith(
        "[kperflab] box is in quarantine: 3 faults of the lab in a row, the last: health check"
    )
    assert "/targets/box/" in sent.body


def test_what_is_rolled_back_is_told_to_nobody(box: Target, boss: User) -> None:
    hook()
    with transaction.atomic():
        assert quarantine_target(box.pk, "it smells")
        transaction.set_rollback(True)
    assert (target_events(), Quarantine.objects.count(), tell_operators()) == ([], 0, None)
    with transaction.atomic():
        assert [note_fault(box.pk, "x") for _ in range(FAULTS_IN_A_ROW)] == [False, False, True]
        transaction.set_rollback(True)
    assert (target_events(), Quarantine.objects.count(), tell_operators()) == ([], 0, None)


def test_its_return_is_told_with_who_released_it_and_each_time_anew(box: Target, boss: User) -> None:
    hook()
    for number in (1, 2):
        assert quarantine_target(box.pk, f"reason {number}")
        assert not quarantine_target(box.pk, "once more")
        release_target(target_id=box.pk, by=boss)
        release_target(target_id=box.pk, by=boss)
    assert target_events() == ["target.quarantined", "target.released"] * 2
    last = Delivery.objects.order_by("-pk")[0].payload["target"]
    assert (last["name"], last["group"], last["driver"]) == ("box", "rack", "metal")
    assert (last["reason"], last["released_by"]) == (LAST + "reason 2", "boss")
    assert last["since"] <= last["until"]
    assert last["url"].endswith("/targets/box/")
    first = Delivery.objects.order_by("pk")[0].payload["target"]
    assert (first["until"], first["released_by"]) == (None, "")


def test_the_event_arrives(box: Target, settings: Any) -> None:
    settings.HOOKS_PRIVATE = True
    with receiving() as receiver:
        hook(url=receiver.url)
        quarantine_target(box.pk, "it smells")
        (sent,) = deliver_due()
        assert (sent.event, sent.status) == ("target.quarantined", 200)
        assert deliver_due() == []
    (got,) = receiver.got
    assert got.headers["kperflab-event"] == "target.quarantined"
    assert json.loads(got.body)["target"]["reason"] == LAST + "it smells"


def test_hooks_of_a_tree_and_commit_statuses_hear_of_no_target(box: Target) -> None:
    Tree.objects.create(name="tiny", kind="git", location="/x", default_revision="v1")
    hook(name="of a tree", tree="tiny")
    hook(name="quiet", events=["alert"])
    hook(
        name="github",
        kind="github",
        tree="tiny",
        secret="token",
        url="https://api.github.com/repos/o/r/statuses/{commit}",
    )
    hook(
        name="patchwork",
        kind="patchwork",
        secret="token",
        url="https://pw.example.org/api/patches/{patch}/checks/",
    )
    quarantine_target(box.pk, "it smells")
    assert target_events() == []


def test_operators_with_an_address_who_are_let_in_get_the_mail(box: Target, boss: User) -> None:
    make_user("gone", User.Role.OPERATOR, email="gone@lab.example", is_active=False)
    make_user("silent", User.Role.OPERATOR)
    make_user("second", User.Role.OPERATOR, email="second@lab.example")
    make_user("alice", email="alice@lab.example")
    quarantine_target(box.pk, "it smells")
    tell_operators()
    assert mail.outbox[0].to == ["boss@lab.example", "second@lab.example"]


def test_several_at_once_are_one_mail_in_their_order(box: Target, boss: User) -> None:
    other = Target.objects.create(name="other")
    quarantine_target(box.pk, "it smells")
    quarantine_target(other.pk, "it smokes")
    release_target(target_id=box.pk, by=boss)
    outcome = tell_operators()
    assert outcome
    assert outcome.notices == (
        f"box is in quarantine: {LAST}it smells",
        f"other is in quarantine: {LAST}it smokes",
        "box boots again: boss released it",
    )
    (sent,) = mail.outbox
    assert sent.subject == f"[kperflab] box is in quarantine: {LAST}it smells (and 2 more)"
    assert sent.body.index("it smells") < sent.body.index("it smokes") < sent.body.index("boots again")


def test_a_mail_that_cannot_be_sent_is_tried_again(
    box: Target, boss: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ConnectionRefusedError("nobody there")

    quarantine_target(box.pk, "it smells")
    with monkeypatch.context() as patched:
        patched.setattr("lab.targets.operator_mails.send_mail", fails)
        outcome = tell_operators()
    assert outcome
    assert "will be retried" in str(outcome)
    tell_operators()
    tell_operators()
    assert len(mail.outbox) == 1


def test_where_no_operator_has_an_address_it_is_said_once(box: Target) -> None:
    make_user("silent", User.Role.OPERATOR)
    quarantine_target(box.pk, "it smells")
    outcome = tell_operators()
    assert outcome
    assert "no operator has an address" in outcome.problem
    assert tell_operators() is None
    assert mail.outbox == []


def test_a_reason_that_a_machine_wrote_is_no_header(box: Target, boss: User) -> None:
    quarantine_target(box.pk, "odd\nBcc: all@example.org\0" + "x" * 2000)
    tell_operators()
    (sent,) = mail.outbox
    assert sent.subject.startswith(f"[kperflab] box is in quarantine: {LAST}odd Bcc: all@example.org")
    assert "\n" not in sent.subject
    assert len(sent.subject) <= 200


def test_a_quarantine_from_before_it_was_noted_ends_like_any_other(box: Target, boss: User) -> None:
    hook()
    began = timezone.now() - timedelta(days=2)
    Target.objects.filter(pk=box.pk).update(quarantined_at=began, quarantine_reason="long ago")
    release_target(target_id=box.pk, by=None)
    assert target_events() == ["target.released"]
    outcome = tell_operators()
    assert outcome
    assert outcome.notices == ("box boots again",)
    row = Quarantine.objects.get()
    assert (row.began_at, row.reason) == (began, "long ago")


def test_one_that_older_code_released_does_not_stay_open(box: Target, boss: User) -> None:
    quarantine_target(box.pk, "first")
    tell_operators(now=datetime(2026, 11, 22, tzinfo=UTC))
    Target.objects.update(quarantined_at=None, quarantine_reason="", faults=0)
    quarantine_target(box.pk, "second")
    release_target(target_id=box.pk, by=boss)
    assert not Quarantine.objects.filter(ended_at=None).exists()
    outcome = tell_operators()
    assert outcome
    assert outcome.notices == (f"box is in quarantine: {LAST}second", "box boots again: boss released it")


def test_releasing_what_is_in_no_quarantine_tells_nothing(box: Target, boss: User) -> None:
    hook()
    release_target(target_id=box.pk, by=boss)
    assert (target_events(), tell_operators()) == ([], None)
