# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that requests pages repeatedly, and what it sees."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

PAUSE_S = 0.2


def asked(trust: ssl.SSLContext | bool, url: str) -> httpx.Response:
    """One request, on a connection of its own."""
    return httpx.get(url, timeout=60, trust_env=False, verify=trust)


@dataclass
class Watch:
    """A client that requests a page repeatedly. answers: number of each; slowest: seconds."""

    answers: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0

    def look(self, trust: ssl.SSLContext | bool, url: str, over: threading.Event) -> None:
        """Ask until it is over, each time again."""
        while not over.wait(PAUSE_S):
            begun = time.monotonic()
            try:
                answer = asked(trust, url)
                summary = f"{answer.status_code} {answer.text.strip()[:60]}"
            except httpx.HTTPError as exc:
                summary = repr(exc)
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.answers[summary] = self.answers.get(summary, 0) + 1


@contextmanager
def watched(trust: ssl.SSLContext | bool, *urls: str) -> Iterator[list[Watch]]:
    """Somebody at each address, for as long as the block runs."""
    over = threading.Event()
    watches = [Watch() for _ in urls]
    threads = [
        threading.Thread(target=watch.look, args=(trust, url, over), daemon=True)
        for watch, url in zip(watches, urls, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield watches
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
