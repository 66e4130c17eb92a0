# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache that may be down: pages are slower without it, but never fail."""

import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, ClassVar

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# A server that did not answer is retried after this time, so that a page does not wait for each of its look-ups.
ASK_AGAIN_S = 2.0


class ForgivingClient(RedisCacheClient):
    """Django's client; while Redis is down or its disk is full, it behaves like an empty cache.

    Counters in it, such as requests per minute, do not count then: the lab prefers too many answers to none.
    """

    _away_until: ClassVar[float] = 0.0

    def add(self, key: Any, value: Any, timeout: Any) -> bool:
        """True while there is no Redis: nobody else can have added it."""
        return bool(self._or_else(True, partial(super().add, key, value, timeout)))

    def get(self, key: Any, default: Any) -> Any:
        """The default while there is no Redis."""
        return self._or_else(default, partial(super().get, key, default))

    def set(self, key: Any, value: Any, timeout: Any) -> None:
        """Nothing is kept while there is no Redis."""
        self._or_else(None, partial(super().set, key, value, timeout))

    def touch(self, key: Any, timeout: Any) -> bool:
        """False while there is no Redis."""
        return bool(self._or_else(False, partial(super().touch, key, timeout)))

    def delete(self, key: Any) -> bool:
        """False while there is no Redis; a value on its disk may come back with it, until the value expires."""
        return bool(self._or_else(False, partial(super().delete, key)))

    def get_many(self, keys: Any) -> dict[Any, Any]:
        """Nothing while there is no Redis."""
        return dict(self._or_else({}, partial(super().get_many, keys)))

    def has_key(self, key: Any) -> bool:
        """False while there is no Redis."""
        return bool(self._or_else(False, partial(super().has_key, key)))

    def incr(self, key: Any, delta: int) -> int:
        """Raises ValueError while there is no Redis, as for any key that is not there."""
        count = self._or_else(None, partial(super().incr, key, delta))
        if count is None:
            raise ValueError(f"Key '{key}' not found.")
        return int(count)

    def set_many(self, data: Any, timeout: Any) -> None:
        """Nothing is kept while there is no Redis."""
        self._or_else(None, partial(super().set_many, data, timeout))

    def delete_many(self, keys: Any) -> None:
        """See delete."""
        self._or_else(None, partial(super().delete_many, keys))

    @classmethod
    def _or_else(cls, fallback: Any, ask: Callable[[], Any]) -> Any:
        if monotonic() < cls._away_until:
            return fallback
        try:
            return ask()
        except RedisError as exc:
            cls._away_until = monotonic() + ASK_AGAIN_S
            log.warning("the cache does not answer; the lab does without it for %g s: %s", ASK_AGAIN_S, exc)
            return fallback


class ForgivingRedis(RedisCache):
    """Django's Redis cache over that client."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = ForgivingClient
