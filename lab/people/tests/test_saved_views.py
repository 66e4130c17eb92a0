# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.models import SavedView, User
from lab.people.saved_views import delete_view, edit_view, save_view
from lab.tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_view_keeps_the_filters_and_neither_the_page_nor_what_is_empty() -> None:
    view = save_view(
        user=make_user("alice"), name=" my  own ", query="?state=running&page=3&tree=&search=a b"
    )
    assert (view.name, view.query, view.shared) == ("my own", "?state=running&search=a+b", False)


@pytest.mark.parametrize(
    ("name", "query", "field"),
    [
        ("", "?state=done", "name"),
        ("x" * 101, "?state=done", "name"),
        ("a", "?page=2", "query"),
        ("a", "", "query"),
        ("a", "?search=" + "x" * 1000, "query"),
        ("a", "?" + "a=1&" * 300, "query"),
    ],
)
def test_a_view_without_name_or_filters_is_refused(name: str, query: str, field: str) -> None:
    with pytest.raises(FieldRefused) as refused:
        save_view(user=make_user("alice"), name=name, query=query)
    assert refused.value.field == field


def test_a_name_is_taken_once_by_each_person() -> None:
    alice = make_user("alice")
    save_view(user=alice, name="mine", query="?state=done")
    save_view(user=make_user("dora"), name="mine", query="?state=done")
    with pytest.raises(FieldRefused, match="already"):
        save_view(user=alice, name="mine", query="?state=failed")


def test_a_viewer_keeps_views_and_shares_none() -> None:
    bob = make_user("bob", User.Role.VIEWER)
    view = save_view(user=bob, name="a", query="?state=done")
    with pytest.raises(NotAllowed, match="share"):
        save_view(user=bob, name="b", query="?state=done", shared=True)
    with pytest.raises(NotAllowed, match="share"):
        edit_view(view_id=view.pk, by=bob, shared=True)
    delete_view(view_id=view.pk, by=bob)
    assert not SavedView.objects.exists()


def test_somebody_elses_own_view_is_not_there_and_a_shared_one_is_not_theirs_to_change() -> None:
    alice, dora = make_user("alice"), make_user("dora")
    own = save_view(user=alice, name="own", query="?state=done")
    shared = save_view(user=alice, name="shared", query="?state=done", shared=True)
    with pytest.raises(UnknownRow):
        delete_view(view_id=own.pk, by=dora)
    with pytest.raises(NotAllowed, match="alice's"):
        delete_view(view_id=shared.pk, by=dora)
    edit_view(view_id=shared.pk, by=make_user("charlie", User.Role.OPERATOR), name="theirs", query="?tree=x")
    shared.refresh_from_db()
    assert (shared.name, shared.query, shared.user) == ("theirs", "?tree=x", alice)
