# SPDX-License-Identifier: GPL-2.0-or-later
"""Hooks and their deliveries: each submitter's own, and all for operators."""

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lab.errors import FieldRefused
from lab.hooks.changes import (
    HookFields,
    change_hook,
    deliver_again,
    make_hook,
    own_hook,
    remove_hook,
    try_hook,
)
from lab.hooks.events import EVENTS
from lab.hooks.pages import delivery_page, hook_rows
from lab.models import Hook, Tree
from web.access import needs, person
from web.buttons import pressed
from web.listing import back_to_list, page_number

_KINDS = {
    "webhook": "webhook: signed JSON",
    "github": "GitHub: commit statuses",
    "gitlab": "GitLab: commit statuses",
    "patchwork": "patchwork: checks",
}
_MEANINGS = {
    "experiment.queued": "submitted; a status then says pending",
    "experiment.done": "finished, with its verdicts",
    "experiment.failed": "nothing can be compared",
    "experiment.cancelled": "somebody cancelled it",
    "alert": "a step appeared in a trend",
    "target.quarantined": "a target was taken out of service; sent only to webhooks for all trees",
    "target.released": "the target boots again; sent only to webhooks for all trees",
}


@never_cache
@needs("submit")
@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """One's hooks."""
    return render(request, "web/hooks.html", {"rows": hook_rows(person(request))})


@never_cache
@needs("submit")
@require_safe
def show(request: HttpRequest, hook_id: int) -> HttpResponse:
    """One hook, its secret if it signs with it, and its deliveries."""
    hook = own_hook(hook_id=hook_id, by=person(request))
    ctx = {
        "hook": hook,
        "kind": _KINDS[hook.kind],
        "signs": hook.kind == Hook.Kind.WEBHOOK,
        "page": delivery_page(hook.pk, page_number(request)),
        "query": request.GET.urlencode(),
    }
    return render(request, "web/hook.html", ctx)


@never_cache
@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form of a new hook."""
    if request.method == "POST":
        return _saved(request, None)
    typed = {"kind": Hook.Kind.WEBHOOK, "enabled": "yes"}
    return _form(request, typed, list(EVENTS), {}, None)


@never_cache
@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, hook_id: int) -> HttpResponse:
    """The same form for an existing hook."""
    hook = own_hook(hook_id=hook_id, by=person(request))
    if request.method == "POST":
        return _saved(request, hook)
    typed = {
        "name": hook.name,
        "kind": hook.kind,
        "url": hook.url,
        "tree": hook.tree.name if hook.tree else "",
    }
    typed |= {"enabled": "yes"} if hook.enabled else {}
    return _form(request, typed, hook.events, {}, hook)


@needs("submit")
@require_POST
def act(request: HttpRequest, hook_id: int) -> HttpResponse:
    """Send a test delivery, or remove the hook."""
    by = person(request)
    own_hook(hook_id=hook_id, by=by)
    if pressed(request, "act", ("test", "remove")) == "remove":
        remove_hook(hook_id=hook_id, by=by)
        messages.success(request, "The hook is removed.")
        return redirect("hooks")
    try:
        try_hook(hook_id=hook_id, by=by)
        messages.success(request, "A test was sent: reload this page to see the response.")
    except FieldRefused as exc:
        messages.error(request, f"{capfirst(str(exc))}.")
    return redirect("hook", hook_id)


@needs("submit")
@require_POST
def again(request: HttpRequest, delivery_id: int) -> HttpResponse:
    """Send a delivery once more."""
    delivery = deliver_again(delivery_id=delivery_id, by=person(request))
    messages.success(request, f"{delivery.event} of {delivery.subject} is being sent again.")
    return redirect(back_to_list(request, "hook", delivery.hook_id))


def _saved(request: HttpRequest, hook: Hook | None) -> HttpResponse:
    typed, events, by = request.POST.dict(), request.POST.getlist("events"), person(request)
    fields = HookFields(
        name=typed.get("name", ""),
        url=typed.get("url", "").strip(),
        kind=typed.get("kind", ""),
        events=events,
        secret=typed.get("secret", ""),
        tree=typed.get("tree", ""),
        enabled="enabled" in typed,
    )
    try:
        saved = (
            make_hook(by=by, fields=fields)
            if hook is None
            else change_hook(hook_id=hook.pk, by=by, changes=asdict(fields))
        )
    except FieldRefused as exc:
        return _form(request, typed, events, {exc.field: str(exc)}, hook)
    messages.success(request, f"{saved.name} is saved.")
    return redirect("hook", saved.pk)


def _form(
    request: HttpRequest, typed: dict[str, str], events: list[str], errors: dict[str, str], hook: Hook | None
) -> HttpResponse:
    ctx = {
        "typed": typed,
        "errors": errors,
        "hook": hook,
        "kinds": list(_KINDS.items()),
        "events": [(event, _MEANINGS[event], event in events) for event in EVENTS],
        "trees": list(Tree.objects.order_by("name").values_list("name", flat=True)),
    }
    return render(request, "web/hook_form.html", ctx, status=422 if errors else 200)
