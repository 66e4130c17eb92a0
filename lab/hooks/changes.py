# SPDX-License-Identifier: GPL-2.0-or-later
"""Create, change, try and remove hooks, for their owners and for operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from lab.errors import AddressRefused, FieldRefused, NotAllowed, UnknownRow, one_row
from lab.from_attributes import attributes
from lab.hooks.events import EVENTS, TEST, experiment_payload
from lab.hooks.outgoing_http import check_url
from lab.hooks.request import Event as SentEvent
from lab.hooks.request import key_of, new_secret, request_for
from lab.models import Delivery, Experiment, Hook, Tree, User
from lab.models.states import DeliveryState, move
from lab.people.permissions import check_may, may, may_change
from lab.validation_messages import nearest

MOST_HOOKS = 20
LONGEST_URL = 1000
# The placeholder of the commit or patch, which an address must contain.
PLACES = {Hook.Kind.GITHUB: "{commit}", Hook.Kind.GITLAB: "{commit}", Hook.Kind.PATCHWORK: "{patch}"}
# How many of the newest experiments are searched for one to try a status hook with.
LOOKED_THROUGH = 50


@dataclass(frozen=True, slots=True)
class HookFields:
    """The fields of a hook's form. tree: a tree's name, "" for all; secret: "" keeps it, or makes one for a webhook."""

    name: str
    url: str
    kind: str = Hook.Kind.WEBHOOK
    events: Sequence[str] = EVENTS
    secret: str = ""
    tree: str = ""
    enabled: bool = True


def make_hook(*, by: User, fields: HookFields, scopes: Sequence[str] | None = None) -> Hook:
    """Make a hook of one's own. Raises NotAllowed, FieldRefused with the name of the field."""
    check_may(by, "submit", "create hooks", scopes=scopes)
    if Hook.objects.filter(owner=by).count() >= MOST_HOOKS:
        raise FieldRefused("name", f"you have {MOST_HOOKS} hooks, the maximum: remove one of them first")
    return _save(Hook(owner=by), fields)


def change_hook(
    *, hook_id: int, by: User, changes: Mapping[str, Any], scopes: Sequence[str] | None = None
) -> Hook:
    """Change some of HookFields; without a secret the old one stays, unless the kind or host has changed.

    Raises UnknownRow, NotAllowed, FieldRefused.
    """
    with transaction.atomic():
        # Locked before it is read: of two changes at once, the second is made to what the first one wrote.
        Hook.objects.select_for_update().filter(pk=hook_id).first()
        hook = own_hook(hook_id=hook_id, by=by, scopes=scopes)
        now = attributes(hook, ("name", "url", "kind", "events", "enabled"))
        now["tree"] = hook.tree.name if hook.tree else ""
        return _save(hook, HookFields(**{**now, **changes}))


def remove_hook(*, hook_id: int, by: User, scopes: Sequence[str] | None = None) -> None:
    """Remove a hook with its deliveries. Raises UnknownRow, NotAllowed."""
    own_hook(hook_id=hook_id, by=by, scopes=scopes).delete()


def own_hook(*, hook_id: int, by: User, scopes: Sequence[str] | None = None) -> Hook:
    """Return a hook that somebody may see and change. Raises UnknownRow, also for a hook of others, NotAllowed."""
    hooks = Hook.objects.select_related("owner", "tree").filter(pk=hook_id)
    if not may(by, "operate", scopes=scopes):
        hooks = hooks.filter(owner=by)
    hook = one_row(hooks, f"hook {hook_id}")
    if not may_change(by, hook.owner, scopes=scopes):
        raise NotAllowed(f"changing hook {hook_id} takes a submitter, and a token with the scope submit")
    return hook


def try_hook(*, hook_id: int, by: User, scopes: Sequence[str] | None = None) -> Delivery:
    """Queue a delivery to see whether it arrives: of a test event, or of the latest status of a status hook.

    Raises UnknownRow, NotAllowed, FieldRefused for "url" where no experiment yet could be marked.
    """
    hook = own_hook(hook_id=hook_id, by=by, scopes=scopes)
    payload: dict[str, Any] = {"event": TEST, "at": timezone.now().isoformat(timespec="seconds")}
    if hook.kind != Hook.Kind.WEBHOOK:
        payload = _latest(hook)
    return Delivery.objects.create(
        hook=hook, event=TEST, subject=f"{TEST}/{uuid4().hex[:12]}", payload=payload, next_at=timezone.now()
    )


def deliver_again(*, delivery_id: int, by: User, scopes: Sequence[str] | None = None) -> Delivery:
    """Queue a delivery that is over once more, or try a waiting one now. Raises UnknownRow, NotAllowed."""
    delivery = Delivery.objects.filter(pk=delivery_id).first()
    if delivery is None or delivery.hook_id is None:
        raise UnknownRow(f"no hook has a delivery {delivery_id}")
    own_hook(hook_id=delivery.hook_id, by=by, scopes=scopes)
    now = timezone.now()
    for over in (DeliveryState.DELIVERED, DeliveryState.GIVEN_UP):
        move(Delivery, delivery_id, over, DeliveryState.WAITING, attempts=0, next_at=now, delivered_at=None)
    Delivery.objects.filter(pk=delivery_id, state=DeliveryState.WAITING).update(next_at=now)
    delivery.refresh_from_db()
    return delivery


def _latest(hook: Hook) -> dict[str, Any]:
    """Return the current status of the newest experiment that the hook could mark."""
    newest = Experiment.objects.select_related("tree", "submitter", "standing").order_by("-pk")
    if hook.tree_id is not None:
        newest = newest.filter(tree=hook.tree_id)
    for experiment in newest[:LOOKED_THROUGH]:
        payload = experiment_payload(experiment, TEST)
        if request_for(hook.kind, hook.url, hook.secret, SentEvent("", TEST, payload, 0)):
            return payload
    raise FieldRefused("url", "none of the latest experiments has a commit or patch that it could mark")


def _save(hook: Hook, fields: HookFields) -> Hook:
    # A token is only sent to the address for which it was entered, no matter who changes the address.
    moved = bool(hook.pk) and (hook.kind, _host(hook.url)) != (fields.kind, _host(fields.url))
    hook.name = _name(fields.name)
    hook.kind = _kind(fields.kind)
    hook.url = _url(fields.url, hook.kind)
    hook.events = _events(fields.events)
    hook.secret = _secret(hook, fields.secret, moved=moved)
    hook.tree = _tree(fields.tree, hook.kind)
    hook.enabled = fields.enabled
    try:
        with transaction.atomic():
            hook.save()
            if not hook.enabled:
                # Due now, and given up as the hook is disabled: else each would wait for its next try.
                waiting = Delivery.objects.filter(hook=hook, state=DeliveryState.WAITING)
                waiting.update(next_at=timezone.now())
    except IntegrityError:
        raise FieldRefused("name", f'there is a hook "{hook.name}" already: choose another name') from None
    return hook


def _name(name: str) -> str:
    kept = " ".join(name.split())
    if not 1 <= len(kept) <= 100 or not kept.isprintable():
        raise FieldRefused("name", "a hook's name has 1 to 100 characters")
    return kept


def _kind(kind: str) -> Hook.Kind:
    if kind not in Hook.Kind.values:
        raise FieldRefused("kind", f'there is no kind "{kind[:40]}"; {nearest(kind[:40], Hook.Kind.values)}')
    return Hook.Kind(kind)


def _url(url: str, kind: Hook.Kind) -> str:
    place = PLACES.get(kind, "")
    if len(url) > LONGEST_URL:
        raise FieldRefused("url", f"an address has at most {LONGEST_URL:,} characters")
    if place and place not in url:
        raise FieldRefused("url", f"the address of a {kind} hook must contain {place}")
    try:
        check_url(url.replace(place, "0") if place else url, private=settings.HOOKS_PRIVATE)
    except AddressRefused as exc:
        raise FieldRefused("url", str(exc)) from exc
    return url


def _events(events: Sequence[str]) -> list[str]:
    for event in events:
        if event not in EVENTS:
            raise FieldRefused("events", f'there is no event "{event[:40]}"; {nearest(event[:40], EVENTS)}')
    if not events:
        raise FieldRefused("events", f"choose at least one of {', '.join(EVENTS)}")
    return [event for event in EVENTS if event in events]


def _secret(hook: Hook, text: str, *, moved: bool) -> str:
    secret = text.strip() or ("" if moved else hook.secret)
    if hook.kind != Hook.Kind.WEBHOOK:
        if not secret:
            raise FieldRefused("secret", f"a {hook.kind} hook needs a token of that place, as its secret")
        if not (secret.isascii() and secret.isprintable()) or len(secret) > 500 or " " in secret:
            raise FieldRefused("secret", "a token has printable characters without blanks, at most 500")
        return secret
    if not secret:
        return new_secret()
    try:
        key_of(secret)
    except ValueError as exc:
        raise FieldRefused("secret", f"{exc}; leave it empty for a new one") from exc
    return secret


def _tree(name: str, kind: Hook.Kind) -> Tree | None:
    if not name:
        if kind in (Hook.Kind.GITHUB, Hook.Kind.GITLAB):
            raise FieldRefused(
                "tree", f"a {kind} hook needs a tree, the one whose commits the forge has: choose it"
            )
        return None
    trees = {tree.name: tree for tree in Tree.objects.order_by("pk")}
    if name not in trees:
        raise FieldRefused("tree", f'there is no tree "{name[:100]}"; {nearest(name[:100], trees)}')
    return trees[name]


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]
