# SPDX-License-Identifier: GPL-2.0-or-later
"""Accounts, for operators, who create, change and lock them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from lab.errors import FieldRefused
from lab.models import User
from lab.people.accounts import (
    change_address,
    change_role,
    everybody,
    get_user,
    invite,
    password_link,
    set_active,
)
from web.access import needs, person
from web.buttons import pressed


@never_cache
@needs("operate")
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Everybody, and a form for one more."""
    return _people(request)


@never_cache
@needs("operate")
@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Make an account; its link is shown on this answer."""
    typed = request.POST.dict()
    try:
        user = invite(
            by=person(request),
            username=typed.get("username", ""),
            email=typed.get("email", ""),
            role=typed.get("role", ""),
        )
    except FieldRefused as exc:
        return _people(request, typed, {exc.field: str(exc)}, status=422)
    return _people(request, link=(user, _address(request, user)))


@never_cache
@needs("operate")
@require_POST
def link(request: HttpRequest, user_id: int) -> HttpResponse:
    """A new link for somebody who lost the first one, or the password."""
    user = get_user(user_id)
    return _people(request, link=(user, _address(request, user)))


@needs("operate")
@require_POST
def change(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change the role or the mail address, or lock or unlock the account."""
    by = person(request)
    try:
        if "active" in request.POST:
            active = pressed(request, "active", ("yes", "no")) == "yes"
            user = set_active(by=by, user_id=user_id, active=active)
            said = (
                f"{user.username} can sign in again." if user.is_active else f"{user.username} is shut out."
            )
        elif "email" in request.POST:
            user = change_address(by=by, user_id=user_id, email=request.POST["email"])
            said = (
                f"{user.username} gets mails at {user.email}."
                if user.email
                else f"{user.username} gets no mails."
            )
        else:
            user = change_role(by=by, user_id=user_id, role=request.POST.get("role", ""))
            said = f"{user.username} is now {user.role}."
    except FieldRefused as exc:
        return _people(request, errors={"people": str(exc)}, status=422)
    messages.success(request, said)
    return redirect("people")


def _address(request: HttpRequest, user: User) -> str:
    number, secret = password_link(user)
    return request.build_absolute_uri(reverse("choose_password", args=[number, secret]))


def _people(
    request: HttpRequest,
    typed: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    *,
    link: tuple[User, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    ctx = {
        "people": everybody(),
        "roles": User.Role.values,
        "typed": typed or {"role": User.Role.SUBMITTER},
        "errors": errors or {},
        "link": link,
    }
    return render(request, "web/people.html", ctx, status=status)
