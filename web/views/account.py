# SPDX-License-Identifier: GPL-2.0-or-later
"""Signing in and out, and one's own account: tokens, password. Django's own views check passwords, in our look."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required, login_required
from django.contrib.auth.views import LoginView, PasswordChangeView, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from lab.errors import FieldRefused, NotAllowed
from lab.hooks.pages import last_mail
from lab.people.accounts import has_mail_server, set_finish_mails, user_of
from lab.people.sign_in import LOCKED, redeem_secret, too_many_wrong_from
from lab.people.tokens import (
    DEFAULT_DAYS,
    MOST_DAYS,
    end_tokens,
    has_ended,
    issue_token,
    list_tokens,
    revoke_token,
    scopes_of,
)
from web.access import person
from web.addresses import client_address
from web.buttons import pressed

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_SCOPES = {
    "read": "look at everything",
    "submit": "submit, cancel, write notes and triage",
    "operate": "run the lab",
}


class SignIn(LoginView):
    """Sign in with a name and a password; redirect users who are signed in already."""

    template_name = "web/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check a password, unless too many from this address were wrong, for whatever names."""
        if too_many_wrong_from(client_address(request)):
            return locked_out(request, None, None)
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the form again; tell the audit log, since the status does not show the failure."""
        self.request.audit_rule = "wrong password"  # type: ignore[attr-defined]
        return super().form_invalid(form)


class ChangePassword(PasswordChangeView):
    """Change the user's own password; a user who signed in by a link has none to change."""

    template_name = "web/password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        """Change the password; this signs out other browsers and ends all tokens."""
        ended = end_tokens(person(self.request))
        tokens = (
            f" and {ended} API token{'s' if ended > 1 else ''} ended: make new ones below" if ended else ""
        )
        messages.success(self.request, f"Your password is changed. Other browsers are signed out{tokens}.")
        return super().form_valid(form)


@method_decorator(login_not_required, name="dispatch")
class ChoosePassword(PasswordResetConfirmView):
    """The page of an operator's link: choose a password and sign in."""

    template_name = "web/password.html"
    success_url = reverse_lazy("front")
    post_reset_login = True
    post_reset_login_backend = _BACKEND

    def form_valid(self, form: Any) -> HttpResponse:
        """Set the password, and end all tokens: somebody who knew the old one may have made some."""
        end_tokens(form.user)
        return super().form_valid(form)


@never_cache
@login_not_required
@require_GET
def sign_in_here(request: HttpRequest, secret: str) -> HttpResponse:
    """The link that `labctl serve --local` prints: good once, for a short time."""
    try:
        user = redeem_secret(secret)
    except NotAllowed as exc:
        ctx = {"said": str(exc)}
        return render(request, "web/link_over.html", ctx, status=403)
    login(request, user, backend=_BACKEND)
    return redirect("front")


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: object) -> HttpResponse:
    """Answer a browser that sent too many wrong passwords."""
    return render(request, "web/sign_in.html", {"locked": LOCKED}, status=429)


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """One's own account."""
    return _account(request)


@never_cache
@login_required
@require_POST
def issue(request: HttpRequest) -> HttpResponse:
    """Make a token; it is shown on this answer and never again."""
    typed = request.POST.dict()
    days = typed.get("days", "")
    if days and not (days.isascii() and days.isdecimal() and len(days) < 9):
        return _account(request, typed, {"days": f"“{days[:20]}” is not a number of days"}, status=422)
    try:
        token, text = issue_token(
            user=person(request),
            name=typed.get("name", ""),
            scopes=request.POST.getlist("scopes"),
            days=int(days) if days else None,
        )
    except FieldRefused as exc:
        return _account(request, typed, {exc.field: str(exc)}, status=422)
    return _account(request, made=(token.name, text))


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: str) -> HttpResponse:
    """End one of one's tokens."""
    revoke_token(user=person(request), token_id=token_id.replace("\0", ""))
    messages.success(request, "The token is revoked.")
    return redirect("account")


@login_required
@require_POST
def change_mails(request: HttpRequest) -> HttpResponse:
    """Turn one's own mails on or off."""
    on = pressed(request, "on", ("yes", "no")) == "yes"
    set_finish_mails(person(request), on=on)
    what = "You get a mail" if on else "You get no mail"
    messages.success(request, f"{what} when one of your experiments finishes.")
    return redirect("account")


@never_cache
@csrf_exempt
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def stop_mails(request: HttpRequest, secret: str) -> HttpResponse:
    """The link in each mail: POST turns the mails off, as mail programs do by RFC 8058; GET changes nothing.

    Programs that check links in mails send a GET. The link's signature replaces the form's CSRF token.
    """
    user = user_of(secret)
    if request.method == "POST":
        set_finish_mails(user, on=False)
    return render(request, "web/stop_mails.html", {"whose": user.username, "on": user.finish_mails})


def _account(
    request: HttpRequest,
    typed: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    *,
    made: tuple[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    user = person(request)
    chosen = request.POST.getlist("scopes") if typed else ["read", "submit"]
    ctx = {
        "typed": typed or {"days": str(DEFAULT_DAYS)},
        "errors": errors or {},
        "most_days": MOST_DAYS,
        "made": made,
        "example": _example(request, made[1]) if made else "",
        "tokens": [(token, has_ended(token)) for token in list_tokens(user)],
        "scopes": [(scope, _SCOPES[scope], scope in chosen) for scope in scopes_of(user)],
        "has_mail_server": has_mail_server(),
        "last_mail": last_mail(user),
        "has_password": user.has_usable_password(),
    }
    return render(request, "web/account.html", ctx, status=status)


def _example(request: HttpRequest, token: str) -> str:
    """Return commands that use a new token; a file keeps it out of the process list and of the shell's history."""
    server = request.build_absolute_uri("/").rstrip("/")
    return (
        "(umask 077; cat >kperflab.token <<'END'\n"
        f'header = "Authorization: Token {token}"\nEND\n)\n'
        f"curl -fsS -K kperflab.token {server}/api/v1/me/\n"
    )
