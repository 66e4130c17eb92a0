# SPDX-License-Identifier: GPL-2.0-or-later
"""Signing in: the limit on wrong passwords from an address, and the link for the user who started the lab on this machine.

The user of that terminal owns the files of the lab anyway. The link is signed with the installation's secret, short-lived, and good for one sign-in.
"""

from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from axes.models import AccessAttempt
from django.core import signing
from django.utils import timezone

from lab.errors import NotAllowed
from lab.models import User

LOCAL = "local"
LASTS_S = 15 * 60
_SALT = "kperflab.signin"
_OVER = "this link was used or has expired: print another with `labctl sign-in --local`"

# Wrong passwords from one address, for any names: an office behind one address shares them.
MOST_WRONG: Final = 50
LOCKED_S: Final = 15 * 60
LOCKED: Final = "Too many wrong passwords: wait 15 minutes, or ask an operator for a link to a new one."
# An IPv6 site has at least a /64 of addresses of its own.
_SITE_BITS: Final = 64
_MOST_ROWS: Final = 10_000


def too_many_wrong_from(address: str) -> bool:
    """Return whether MOST_WRONG passwords were wrong within LOCKED_S from an address; all of an IPv6 /64 is one.

    django-axes locks a name at an address; this limit is for an address that tries many names.
    """
    try:
        asked = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    rows = AccessAttempt.objects.filter(attempt_time__gte=timezone.now() - timedelta(seconds=LOCKED_S))
    if asked.version == 4:
        rows = rows.filter(ip_address=address)
    failures = rows.order_by("-attempt_time").values_list("ip_address", "failures_since_start")[:_MOST_ROWS]
    wrong: int = sum(count for source, count in failures if _same_site(source, asked))
    return wrong >= MOST_WRONG


def _same_site(source: str | None, asked: IPv4Address | IPv6Address) -> bool:
    if source is None or asked.version == 4:
        return source is not None
    return ip_address(source) in ip_network(f"{asked}/{_SITE_BITS}", strict=False)


def issue_secret() -> str:
    """Return the secret of a sign-in link for the user "local", an operator; the first link creates that user."""
    user, made = User.objects.get_or_create(username=LOCAL, defaults={"role": User.Role.OPERATOR})
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return signing.dumps([user.pk, _last(user)], salt=_SALT)


def redeem_secret(secret: str) -> User:
    """Return the user that the link signs in, and invalidate the link. Raises NotAllowed."""
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
