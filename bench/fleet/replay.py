# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays a day's submissions over the REST API, each with the token of its submitter, and looks at them as CI does."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.fleet.day import Submission
from bench.fleet.lab import Fleet

CLIENTS = 4
# Each submitter's CI asks for the newest of its experiments so often.
POLL_S = 5.0


@dataclass
class Replay:
    """A day in progress. answers: status codes; late_s: how far behind its time the worst submission was sent."""

    fleet: Fleet
    speed: float
    answers: Counter[int] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    late_s: float = 0.0
    asked_s: list[float] = field(default_factory=list)
    _newest: dict[str, str] = field(default_factory=dict)

    def play(self, day: Sequence[Submission], begin_s: float, seconds: float) -> None:
        """Send each at its time, of a part of the day that begins at `begin_s`; returns when that part is over."""
        started = time.monotonic()
        due = list(day)
        poll = started + POLL_S
        with (
            httpx.Client(base_url=f"http://127.0.0.1:{self.fleet.lab.port}", timeout=120) as client,
            ThreadPoolExecutor(CLIENTS) as pool,
        ):
            waits: list[Future[None]] = []
            while (now := time.monotonic()) < started + seconds / self.speed:
                while due and started + (due[0].at_s - begin_s) / self.speed <= now:
                    submission = due.pop(0)
                    at = started + (submission.at_s - begin_s) / self.speed
                    waits.append(pool.submit(self._submit, client, submission, at))
                if now >= poll:
                    self.fleet.look_at_farms()
                    poll = now + POLL_S
                    waits += [pool.submit(self._look, client, *item) for item in self._newest.items()]
                time.sleep(0.02)
            for wait in waits:
                wait.result()

    def _submit(self, client: httpx.Client, submission: Submission, at: float) -> None:
        began = time.monotonic()
        self.late_s = max(self.late_s, began - at)
        answer = client.post(
            "/api/v1/experiments/",
            json=self._description(submission),
            headers=self._login(submission.submitter),
        )
        self.asked_s.append(time.monotonic() - began)
        self.answers[answer.status_code] += 1
        if answer.status_code == 201:
            self._newest[submission.submitter] = answer.json()["url"]
        elif answer.status_code != 202:
            self.problems[answer.text[:200]] += 1

    def _look(self, client: httpx.Client, who: str, url: str) -> None:
        self.answers[client.get(url, headers=self._login(who)).status_code] += 1

    def _login(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Token {self.fleet.tokens[who]}"}

    def _description(self, submission: Submission) -> dict[str, Any]:
        number = random.Random(f"{self.fleet.targets}/{submission.tree}/{submission.at_s}").getrandbits(48)
        names = [f"p{place}" for place in range(submission.patches)]
        return {
            "name": f"{submission.kind} {number:x}",
            "tree": f"tree{submission.tree}",
            "design": "one-at-a-time",
            "target": self.fleet.rack(submission.place),
            "priority": submission.priority,
            "patches": [{"name": name, "text": new_file(f"{number:x}-{name}")} for name in names],
            "cases": [{"workload": "showgids", "preset": "small"}],
            "measure": {"boots": submission.boots, "iterations": 5, "warmup": 1, "profile": False},
        }


def new_file(name: str) -> str:
    """Return a patch that adds a file of its own: it applies to every tree, beside every other."""
    path = f"drivers/simulated-{name}.c"
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+int simulated_{name.replace('-', '_')};\n"
