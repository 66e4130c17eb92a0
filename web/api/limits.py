# SPDX-License-Identifier: GPL-2.0-or-later
"""Rate limits: by person, or by address without one. Beyond it: 429 with Retry-After."""

from django.conf import settings
from rest_framework.throttling import AnonRateThrottle, UserRateThrottle


class PersonLimit(UserRateThrottle):
    """Requests of somebody who is signed in."""

    scope = "person"

    def get_rate(self) -> str:
        """As settings.API_RATES says now."""
        return settings.API_RATES[self.scope]

    def get_cache_key(self, request: object, view: object) -> str | None:
        """Return None for anonymous clients, which StrangerLimit counts."""
        user = getattr(request, "user", None)
        return super().get_cache_key(request, view) if user and user.is_authenticated else None  # type: ignore[arg-type]


class StrangerLimit(AnonRateThrottle):
    """Requests without a name, by address."""

    scope = "stranger"

    def get_rate(self) -> str:
        """As settings.API_RATES says now."""
        return settings.API_RATES[self.scope]


class LoginLimit(StrangerLimit):
    """Passwords tried from one address, right or wrong."""

    scope = "login"

    def get_cache_key(self, request: object, view: object) -> str:
        """Count by address, before anybody is identified."""
        ident = self.get_ident(request)  # type: ignore[arg-type]
        return self.cache_format % {"scope": self.scope, "ident": ident}


class SubmitLimit(PersonLimit):
    """Descriptions tried: each is applied to a tree."""

    scope = "submit"
