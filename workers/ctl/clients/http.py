# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to a server: retried only where a repeat does no harm; the token never goes to another host."""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from workers.ctl.clients.base import Asking, Say
from workers.ctl.clients.errors import ServerAway, ServerStrange, SettingsWrong
from workers.ctl.clients.problems import refusal

BASE = "/api/v1/"
ATTEMPTS = 5
FIRST_WAIT_S = 0.5
# A command fails with a message rather than wait longer than this for one request.
LONGEST_WAIT_S = 60.0
# The server did not begin the request: any request may be resent.
NOT_TAKEN = {429, 503}
# It may have begun: only requests that may be sent twice are resent.
UNKNOWN_END = {502, 504}
# The server still works on an earlier request with the same key; the request is repeated for this long.
IN_PROGRESS, LONGEST_PROGRESS_S = 409, 300.0
# Submitting makes the tree ready first, which may take a fetch.
TIMEOUT = httpx.Timeout(30.0, connect=10.0, read=300.0)


def _is_address(url: str) -> bool:
    try:
        parts, host = urlsplit(url), httpx.URL(url).host
    except (ValueError, httpx.InvalidURL):
        return False
    return parts.scheme in {"http", "https"} and bool(host) and not parts.username


class Server:
    """One server and what is sent to it. Closing it closes the connections."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        say: Say = lambda _: None,
        hasty: bool = False,
        sleep: Callable[[float], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        if not _is_address(self.url):
            raise SettingsWrong(f'server: "{url}" is not an address; write https://lab.example.org')
        if not (token.isascii() and token.isprintable()):
            # Not printed: the output of a pipeline can be read by many.
            raise SettingsWrong(
                "the token has characters that no token has, such as a line break: copy it again into LABCTL_TOKEN, or run labctl login"
            )
        self._say, self._sleep = say, sleep or time.sleep
        self._attempts = 1 if hasty else ATTEMPTS
        headers = {"User-Agent": "labctl", "Accept": "application/json, */*;q=0.5"}
        if token:
            headers["Authorization"] = f"Token {token}"
        # Redirects are not followed: the token goes to the host that was named, and to no other.
        self._client = httpx.Client(
            headers=headers, timeout=1.0 if hasty else TIMEOUT, follow_redirects=False, transport=transport
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, asking: Asking) -> httpx.Response:
        """Return the answer, if it is 2xx. Raises Refused for 4xx, ServerAway, ServerStrange."""
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                answer = self._answer(asking)
            except httpx.TransportError as exc:
                if last or not (asking.again or isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout)):
                    raise self._away(exc) from exc
                self._wait(attempt, None, "does not answer")
                continue
            status = answer.status_code
            if status in NOT_TAKEN and not last:
                self._wait(attempt, answer, "limits requests" if status == 429 else "is not ready")
                continue
            if status in UNKNOWN_END and asking.again and not last:
                self._wait(attempt, answer, f"answers {status}")
                continue
            return self._good(answer)
        raise AssertionError("the last attempt returns or raises")

    def _answer(self, asking: Asking) -> httpx.Response:
        """Send a request, again and again while the server works on an earlier one with the same key."""
        answer, waited = self._send(asking), 0.0
        while _is_in_progress(answer) and waited < LONGEST_PROGRESS_S:
            waited += self._wait(1, answer, "still works on this request")
            answer = self._send(asking)
        return answer

    def _send(self, asking: Asking) -> httpx.Response:
        path = asking.path if asking.path.startswith("/") else f"{BASE}{asking.path}"
        try:
            return self._client.request(
                asking.method,
                self.url + path,
                params=dict(asking.params) or None,
                json=asking.json,
                headers=dict(asking.headers),
                auth=asking.basic,
            )
        except (TypeError, ValueError) as exc:
            # httpx writes the body before it sends anything.
            raise SettingsWrong(
                f"{asking.path}: not to be written as JSON (dates are texts, in quotes): {exc}"
            ) from exc
        except httpx.InvalidURL as exc:
            raise SettingsWrong(f'server: "{self.url}" is not an address: {exc}') from exc

    def _good(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        if answer.is_redirect:
            raise ServerStrange(
                f"{self.url} redirects to {answer.headers.get('location', 'nowhere')}; your token was not sent there. "
                "If that is your lab, set LABCTL_SERVER"
            )
        if answer.status_code in NOT_TAKEN or _is_in_progress(answer):
            raise ServerAway(
                f"{self.url} is busy (HTTP {answer.status_code}, {self._attempts} attempts); try later"
            )
        if answer.status_code >= 500:
            raise ServerAway(
                f"{self.url} fails: HTTP {answer.status_code} {answer.reason_phrase}; see its log"
            )
        raise refusal(answer, self.url)

    def _away(self, exc: httpx.TransportError) -> ServerAway:
        said = " ".join(str(exc).split()) or type(exc).__name__
        return ServerAway(f"no answer from {self.url}: {said}")

    def _wait(self, attempt: int, answer: httpx.Response | None, why: str) -> float:
        asked = wanted_wait(answer)
        if asked is not None and asked > LONGEST_WAIT_S:
            raise ServerAway(f"{self.url} {why}: it allows the next request in {asked:.0f} s")
        # Jitter, or all clients that failed together retry together.
        backoff = FIRST_WAIT_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311
        seconds = backoff if asked is None else asked + random.uniform(0, 0.5)  # noqa: S311
        self._say(f"{self.url} {why}; again in {seconds:.1f} s")
        self._sleep(seconds)
        return seconds


def _is_in_progress(answer: httpx.Response) -> bool:
    # Other conflicts say no time to come back.
    return answer.status_code == IN_PROGRESS and "retry-after" in answer.headers


def wanted_wait(answer: httpx.Response | None) -> float | None:
    """Seconds that Retry-After asks for, given as such or as a date; None without a readable one."""
    said = answer.headers.get("retry-after", "").strip() if answer is not None else ""
    if said.isdecimal():
        return float(said)
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
