# SPDX-License-Identifier: GPL-2.0-or-later
"""Access to the state of the lab itself: this machine, the networks named by KPERFLAB_METRICS_FROM, operators."""

from ipaddress import ip_address

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed

from lab.people.permissions import may
from web.addresses import client_address, is_of_this_machine
from web.api.auth import TokenAuth


def may_watch(request: HttpRequest) -> bool:
    """Return whether the client may see more than "ok"; False also where the account cannot be looked up."""
    return is_of_this_machine(request) or _from_a_network(request) or _operates(request)


def _from_a_network(request: HttpRequest) -> bool:
    try:
        address = ip_address(client_address(request))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_FROM)


def _operates(request: HttpRequest) -> bool:
    """By a session, or `Authorization: Token …` of an operator with the scope "operate"."""
    try:
        found = TokenAuth().authenticate(request)
        if found is not None:
            user, token = found
            return may(user, "operate", scopes=token.scopes)
        return may(request.user, "operate")
    except (AuthenticationFailed, DatabaseError):
        return False
