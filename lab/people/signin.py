# SPDX-License-Identifier: GPL-2.0-or-later
"""A link that signs in whoever started the lab on this machine: who reads its terminal owns its files anyway.

It is signed with the installation's secret, short-lived, and good for one sign-in.
"""

from django.core import signing
from django.utils import timezone

from lab.errors import NotAllowed
from lab.models import User

LOCAL = "local"
LASTS_S = 15 * 60
_SALT = "kperflab.signin"
_OVER = "this link is used up or too old: print another with `labctl sign-in --local`"


def issue_secret() -> str:
    """Return what a link carries, for the user "local", who is an operator and made with the first link."""
    user, made = User.objects.get_or_create(username=LOCAL, defaults={"role": User.Role.OPERATOR})
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return signing.dumps([user.pk, _last(user)], salt=_SALT)


def redeem_secret(secret: str) -> User:
    """Return whom the link signs in, and use it up. Raises NotAllowed."""
    try:
        pk, last = signing.loads(secret, salt=_SALT, max_age=LASTS_S)
    except signing.BadSignature:
        raise NotAllowed(_OVER) from None
    user = User.objects.filter(pk=pk, is_active=True).first()
    if user is None or _last(user) != last:
        raise NotAllowed(_OVER)
    # The link names the sign-in before it; only one of two that come at once moves that on.
    used = User.objects.filter(pk=pk, last_login=user.last_login).update(last_login=timezone.now())
    if not used:
        raise NotAllowed(_OVER)
    user.refresh_from_db()
    return user


def _last(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""
