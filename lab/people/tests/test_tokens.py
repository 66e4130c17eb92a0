# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from lab.errors import FieldRefused, UnknownRow
from lab.models import Token, User
from lab.people.tokens import MOST_DAYS, find_token, has_ended, issue_token, list_tokens, revoke_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x" * 12, role=User.Role.SUBMITTER)


def test_a_token_is_found_by_its_text_and_kept_as_a_hash(ada: User) -> None:
    token, text = issue_token(user=ada, name=" ci  of mm ", scopes=["submit", "read"])
    assert token.name == "ci of mm"
    assert token.scopes == ["read", "submit"]
    assert text not in str(Token.objects.values().get())
    match = find_token(text)
    assert match is not None
    assert match.user == ada
    assert Token.objects.get().used_at is not None
    assert find_token(text + "0") is None


def test_using_a_token_often_writes_seldom(
    ada: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _, text = issue_token(user=ada, name="ci", scopes=["read"])
    find_token(text)
    with django_assert_num_queries(1):
        find_token(text)


def test_a_token_ends_with_its_time_and_with_its_user(ada: User) -> None:
    token, text = issue_token(user=ada, name="ci", scopes=["read"], days=1)
    Token.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert find_token(text) is None
    assert [has_ended(token) for token in list_tokens(ada)] == [True]
    _, lasting = issue_token(user=ada, name="ci", scopes=["read"], days=None)
    assert find_token(lasting) is not None
    User.objects.update(is_active=False)
    assert find_token(lasting) is None


@pytest.mark.parametrize(
    ("field", "given", "told"),
    [
        ("name", {"name": "  "}, "name of 1 to 100"),
        ("name", {"name": "a\x1b[2J"}, "name of 1 to 100"),
        ("scopes", {"scopes": []}, "at least one of read, submit"),
        ("scopes", {"scopes": ["raed"]}, 'did you mean "read"'),
        ("scopes", {"scopes": ["operate"]}, "a submitter may not operate"),
        ("days", {"days": 0}, "from 1 to"),
        ("days", {"days": MOST_DAYS + 1}, "from 1 to"),
    ],
)
def test_what_is_wrong_with_a_token_is_told_with_its_field(
    ada: User, field: str, given: dict[str, object], told: str
) -> None:
    with pytest.raises(FieldRefused, match=told) as caught:
        issue_token(**({"user": ada, "name": "ci", "scopes": ["read"]} | given))  # type: ignore[arg-type]
    assert caught.value.field == field
    assert not Token.objects.exists()


def test_only_ones_own_tokens_are_revoked(ada: User) -> None:
    bob = User.objects.create_user("bob", password="x" * 12)
    token, text = issue_token(user=ada, name="ci", scopes=["read"])
    with pytest.raises(UnknownRow):
        revoke_token(user=bob, token_id=token.token_key)
    revoke_token(user=ada, token_id=token.token_key)
    assert find_token(text) is None
