# SPDX-License-Identifier: GPL-2.0-or-later
"""Accounts: operators create them, set roles and deactivate them. Nobody's password is ever known to another.

People turn their own mails on and off.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from lab.errors import FieldRefused, UnknownRow, one_row
from lab.models import User
from lab.people.permissions import check_may


def invite(*, by: User, username: str, email: str = "", role: str = User.Role.SUBMITTER) -> User:
    """Make an account that has no password yet: `password_link` leads to choosing one.

    Raises NotAllowed, FieldRefused for "username", "email" and "role".
    """
    check_may(by, "operate", "manage accounts")
    name, address = username.strip(), _address(email)
    try:
        UnicodeUsernameValidator()(name[:150])
    except ValidationError:
        raise FieldRefused("username", "a name has letters, digits and @ . + - _ only") from None
    _must_be_role(role)
    taken = FieldRefused("username", f'there is already a user "{name[:60]}"')
    if len(name) > 150 or User.objects.filter(username__iexact=name).exists():
        raise taken if len(name) <= 150 else FieldRefused("username", "a name has at most 150 characters")
    user = User(username=name, email=address, role=role)
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise taken from None
    return user


def password_link(user: User) -> tuple[str, str]:
    """Return the number and the secret for a link that lets a person choose a password once, both as text.

    It expires with the next change of password or sign-in, and after settings.PASSWORD_RESET_TIMEOUT seconds.
    """
    return urlsafe_base64_encode(force_bytes(user.pk)), default_token_generator.make_token(user)


def change_role(*, by: User, user_id: int, role: str) -> User:
    """Give somebody another role. Raises NotAllowed, UnknownRow, FieldRefused for "role"."""
    check_may(by, "operate", "manage accounts")
    _must_be_role(role)
    with transaction.atomic():
        user = _locked(user_id)
        if role != User.Role.OPERATOR:
            _must_not_be_last(user)
            # A superuser passes every check of the libraries: the name goes with the role.
            user.is_superuser = user.is_staff = False
        user.role = role
        user.save(update_fields=["role", "is_superuser", "is_staff"])
    return user


def change_address(*, by: User, user_id: int, email: str) -> User:
    """Give somebody another mail address, or none. Raises NotAllowed, UnknownRow, FieldRefused for "email".

    People cannot change their own: the lab would send mails to any address.
    """
    check_may(by, "operate", "manage accounts")
    user = get_user(user_id)
    user.email = _address(email)
    user.save(update_fields=["email"])
    return user


def set_active(*, by: User, user_id: int, active: bool) -> User:
    """Activate or deactivate an account. While it is inactive, its sessions and tokens are invalid; its work stays.

    Raises NotAllowed, UnknownRow, FieldRefused for "active".
    """
    check_may(by, "operate", "manage accounts")
    with transaction.atomic():
        user = _locked(user_id)
        if not active:
            _must_not_be_last(user)
        user.is_active = active
        user.save(update_fields=["is_active"])
    return user


def get_user(user_id: int) -> User:
    """Return the row. Raises UnknownRow."""
    return one_row(User.objects.filter(pk=user_id), f"account {user_id}")


def _locked(user_id: int) -> User:
    # All operators' rows are locked: two of them cannot deactivate each other at once.
    list(User.objects.select_for_update().filter(role=User.Role.OPERATOR).values_list("pk"))
    return get_user(user_id)


def _address(email: str) -> str:
    address = email.strip()
    if address:
        try:
            User._meta.get_field("email").run_validators(address)
        except ValidationError:
            raise FieldRefused("email", f'"{address[:60]}" is not a mail address') from None
    return address


def _must_be_role(role: str) -> None:
    if role not in User.Role.values:
        raise FieldRefused("role", f'there is no role "{role[:40]}"; valid: {", ".join(User.Role.values)}')


def _must_not_be_last(user: User) -> None:
    others = User.objects.filter(role=User.Role.OPERATOR, is_active=True).exclude(pk=user.pk)
    if user.role == User.Role.OPERATOR and user.is_active and not others.exists():
        raise FieldRefused(
            "role", f"{user.username} is the last operator: make another user an operator first"
        )


def everybody() -> QuerySet[Any]:
    """Return all accounts, those who are let in first, by name; with each, as `amount`, its number of experiments."""
    return User.objects.annotate(amount=Count("experiments")).order_by("-is_active", "username")


_SALT = "kperflab.finish-mails"


def set_finish_mails(user: User, *, on: bool) -> None:
    """Turn somebody's mails on or off."""
    user.finish_mails = on
    user.save(update_fields=["finish_mails"])


def gets_mails(user: User) -> bool:
    """Return whether somebody has an address, is let in, and has not turned the mails off."""
    return bool(user.email) and user.is_active and user.finish_mails


def has_mail_server() -> bool:
    """Return whether this lab has a mail server; without one mails go to the log."""
    return not settings.EMAIL_BACKEND.endswith("console.EmailBackend")


def stop_secret(user: User) -> str:
    """Return the secret in the link of a mail."""
    return signing.Signer(salt=_SALT).sign_object(user.pk)


def user_of(secret: str) -> User:
    """Return the user whose mails a link turns off. Raises UnknownRow."""
    try:
        pk = signing.Signer(salt=_SALT).unsign_object(secret)
    except signing.BadSignature:
        pk = None
    user = User.objects.filter(pk=pk).first()
    if user is None:
        raise UnknownRow(
            "this link is incomplete, or its account was deleted: copy the whole link from the mail"
        )
    return user
