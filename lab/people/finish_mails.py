# SPDX-License-Identifier: GPL-2.0-or-later
"""The choice to get a mail when an experiment of one's own finishes; the link in each mail turns it off without a sign-in.

The link is signed with the installation's secret, does that one thing, and does not expire: mails are kept for long.
"""

from django.conf import settings
from django.core import signing

from lab.errors import UnknownRow
from lab.models import User

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
    """Return what the link in a mail carries."""
    return signing.Signer(salt=_SALT).sign_object(user.pk)


def user_of(secret: str) -> User:
    """Return whose mails a link turns off. Raises UnknownRow."""
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
