# SPDX-License-Identifier: GPL-2.0-or-later
"""Saved views: names for filtered lists of experiments, private or shared."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.db.models import Q

from lab.errors import FieldRefused, NotAllowed, UnknownRow
from lab.harmful_characters import check_field
from lab.models import SavedView, User
from lab.people.permissions import may, may_change

LONGEST_QUERY = 1000


def save_view(*, user: User, name: str, query: str, shared: bool = False) -> SavedView:
    """Keep a list's filters, such as "?state=running", under a name of this person's.

    Raises NotAllowed where a viewer would share, FieldRefused for "name" and "query".
    """
    _may_share(user, shared)
    kept, filters = _named(user, name), _filters(query)
    try:
        with transaction.atomic():
            return SavedView.objects.create(user=user, name=kept, query=filters, shared=shared)
    except IntegrityError:
        # A second click came between the look and the row.
        raise _taken(kept) from None


def edit_view(
    *,
    view_id: int,
    by: User,
    name: str | None = None,
    query: str | None = None,
    shared: bool | None = None,
    scopes: Sequence[str] | None = None,
) -> SavedView:
    """Change what is given of a view. Raises UnknownRow, and what `save_view` raises."""
    view = _own(view_id, by, scopes)
    if shared is not None:
        _may_share(by, shared)
        view.shared = shared
    if name is not None and name.strip() != view.name:
        view.name = _named(view.user, name)
    if query is not None:
        view.query = _filters(query)
    view.save()
    return view


def delete_view(*, view_id: int, by: User, scopes: Sequence[str] | None = None) -> None:
    """Remove a view. Raises UnknownRow, NotAllowed."""
    _own(view_id, by, scopes).delete()


def _own(view_id: int, by: User, scopes: Sequence[str] | None) -> SavedView:
    view = SavedView.objects.select_related("user").filter(pk=view_id).first()
    # Somebody else's own view is not told from none.
    if view is None or not (view.shared or view.user_id == by.pk):
        raise UnknownRow(f"there is no saved view {view_id}")
    # Viewers change their own too: they are nobody else's business.
    if view.user_id != by.pk and not may_change(by, view.user, scopes=scopes):
        raise NotAllowed(f'"{view.name}" is {view.user.username}\'s: only they and operators change it')
    return view


def _may_share(user: User, shared: bool) -> None:
    if shared and not may(user, "submit"):
        raise NotAllowed(f"{user.username} is a {user.role}: submitters and operators share views")


def _named(user: User, name: str) -> str:
    kept = " ".join(name.replace("\0", "").split())
    if not 1 <= len(kept) <= 100:
        raise FieldRefused("name", "a view's name has 1 to 100 characters")
    check_field(kept, "name")
    if SavedView.objects.filter(user=user, name=kept).exists():
        raise _taken(kept)
    return kept


def _taken(name: str) -> FieldRefused:
    return FieldRefused("name", f'you have a view "{name}" already: delete it, or take another name')


def kept_filters(query: str) -> str:
    """The filters of an address alone, such as "?state=running"; "" if none is set. The page of a list is not one."""
    kept = [pair for pair in parse_qsl(query.lstrip("?")) if pair[0] != "page"]
    return f"?{urlencode(kept)}" if kept else ""


def _filters(query: str) -> str:
    text = kept_filters(query)
    if not text:
        raise FieldRefused("query", "set a filter or a search first: this list shows everything")
    if len(text) > LONGEST_QUERY:
        raise FieldRefused("query", f"the filters have {len(text):,} characters, at most {LONGEST_QUERY:,}")
    return text


@dataclass(frozen=True, slots=True)
class ViewLine:
    """A saved view. query: as in a URL, such as "?state=running". mine: whether it belongs to the current user."""

    id: int
    name: str
    query: str
    shared: bool
    owner: str
    mine: bool


def views_for(user: User | AnonymousUser) -> tuple[ViewLine, ...]:
    """One's own views and those that others share, by name."""
    seen = Q(shared=True) | Q(user=user) if isinstance(user, User) else Q(shared=True)
    return _lines(seen, user)


def own_views(user: User) -> tuple[ViewLine, ...]:
    """One's own views, by name."""
    return _lines(Q(user=user), user)


def _lines(seen: Q, user: User | AnonymousUser) -> tuple[ViewLine, ...]:
    rows = SavedView.objects.filter(seen).select_related("user").order_by("name", "pk")
    return tuple(
        ViewLine(row.pk, row.name, row.query, row.shared, row.user.username, row.user_id == user.pk)
        for row in rows
    )
