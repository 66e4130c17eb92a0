# SPDX-License-Identifier: GPL-2.0-or-later
import time
from collections.abc import Callable

import pytest

from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.models import User
from lab.people.accounts import change_address, change_role, everybody, invite, password_link, set_active
from lab.people.permissions import may
from lab.people.sign_in import LASTS_S, issue_secret, redeem_secret
from lab.tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def charlie() -> User:
    return make_user("charlie", User.Role.OPERATOR)


def test_who_is_invited_has_a_role_and_no_password(charlie: User) -> None:
    user = invite(by=charlie, username=" dora ", email="dora@lab.example", role="submitter")
    assert (user.username, user.role, user.has_usable_password()) == ("dora", "submitter", False)
    assert user in everybody()


@pytest.mark.parametrize(
    ("username", "email", "role", "field"),
    [
        ("", "", "viewer", "username"),
        ("a b", "", "viewer", "username"),
        ("x" * 151, "", "viewer", "username"),
        ("CHARLIE", "", "viewer", "username"),
        ("dora", "nowhere", "viewer", "email"),
        ("dora", "", "king", "role"),
    ],
)
def test_what_is_wrong_with_an_invitation_is_told_of_its_field(
    charlie: User, username: str, email: str, role: str, field: str
) -> None:
    with pytest.raises(FieldRefused) as refused:
        invite(by=charlie, username=username, email=email, role=role)
    assert refused.value.field == field


def test_an_operator_enters_and_removes_an_address(charlie: User) -> None:
    alice = make_user("alice")
    for email in (" alice@lab.example ", ""):
        change_address(by=charlie, user_id=alice.pk, email=email)
        assert User.objects.get(pk=alice.pk).email == email.strip()
    # PostgreSQL refuses more than 254 characters.
    long = f"a@{'.'.join(['b' * 63] * 4)}.example"
    for email in ("nowhere", "a@lab.example\nBcc: b@lab.example", "a@lab.example, b@lab.example", long):
        with pytest.raises(FieldRefused, match="is not a mail address"):
            change_address(by=charlie, user_id=alice.pk, email=email)


def test_only_operators_manage_accounts(charlie: User) -> None:
    alice = make_user("alice")
    forbidden_all: list[Callable[[], User]] = [
        lambda: invite(by=alice, username="dora"),
        lambda: change_role(by=alice, user_id=alice.pk, role="operator"),
        lambda: change_address(by=alice, user_id=alice.pk, email="all@example.org"),
        lambda: set_active(by=alice, user_id=charlie.pk, active=False),
    ]
    for forbidden in forbidden_all:
        with pytest.raises(NotAllowed, match="only operators can manage"):
            forbidden()


def test_the_last_operator_stays_one(charlie: User) -> None:
    endings: list[Callable[[], User]] = [
        lambda: change_role(by=charlie, user_id=charlie.pk, role="viewer"),
        lambda: set_active(by=charlie, user_id=charlie.pk, active=False),
    ]
    for ending in endings:
        with pytest.raises(FieldRefused, match="last operator"):
            ending()
    second = make_user("dora", User.Role.OPERATOR)
    change_role(by=second, user_id=charlie.pk, role="viewer")
    charlie.refresh_from_db()
    assert not may(charlie, "submit")


def test_who_is_shut_out_may_nothing(charlie: User) -> None:
    alice = make_user("alice")
    assert not may(set_active(by=charlie, user_id=alice.pk, active=False), "read")
    assert may(set_active(by=charlie, user_id=alice.pk, active=True), "submit")
    with pytest.raises(UnknownRow):
        set_active(by=charlie, user_id=0, active=True)


def test_a_superuser_is_an_operator_and_stops_being_one_with_the_role(charlie: User) -> None:
    root = User.objects.create_superuser("root", password="x")
    assert may(root, "operate")
    demoted = change_role(by=charlie, user_id=root.pk, role="viewer")
    assert (may(demoted, "submit"), demoted.is_superuser) == (False, False)


def test_every_link_to_a_password_is_of_one_person(charlie: User) -> None:
    assert password_link(charlie)[0] != password_link(make_user("dora"))[0]


def test_a_sign_in_link_is_good_once() -> None:
    secret = issue_secret()
    user = redeem_secret(secret)
    assert (user.username, may(user, "operate"), user.has_usable_password()) == ("local", True, False)
    with pytest.raises(NotAllowed, match="labctl sign-in"):
        redeem_secret(secret)
    assert redeem_secret(issue_secret()) == user


def test_a_sign_in_link_ends_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = issue_secret()
    now = time.time()
    monkeypatch.setattr("django.core.signing.time.time", lambda: now + LASTS_S + 2)
    with pytest.raises(NotAllowed):
        redeem_secret(secret)


def test_a_sign_in_link_of_somebody_else_is_none() -> None:
    issue_secret()
    for made_up in ("", "x", issue_secret()[:-1] + "!"):
        with pytest.raises(NotAllowed):
            redeem_secret(made_up)


def test_a_sign_in_link_lets_nobody_in_who_is_shut_out() -> None:
    secret = issue_secret()
    User.objects.update(is_active=False)
    with pytest.raises(NotAllowed):
        redeem_secret(secret)
