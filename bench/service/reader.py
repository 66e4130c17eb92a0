# SPDX-License-Identifier: GPL-2.0-or-later
"""The actions of people on a lab's pages; run by bench/service/people.py through locust."""

import random
import re

from locust import HttpUser, between, task

# As bench/load_store.py numbers them.
EXPERIMENTS, RUNS_EACH = 1000, 30


class Reader(HttpUser):
    """Looks at a page, reads for some seconds, goes on."""

    wait_time = between(1, 3)
    trends: tuple[str, ...] = ()

    def on_start(self) -> None:
        """Read the trends' addresses off their page, the first of all people."""
        if not self.trends:
            page = self.client.get("/trends/").text
            type(self).trends = tuple(re.findall(r'scope="row"><a href="(/trends/[^"?]+)"', page))

    @task(2)
    def front(self) -> None:
        """The page everybody begins with."""
        self.client.get("/")

    @task(3)
    def experiments(self) -> None:
        """The list, by page."""
        self.client.get(f"/experiments/?page={random.randint(1, 10)}", name="/experiments/")

    @task(2)
    def search(self) -> None:
        """The list, filtered."""
        word = random.choice(("vfs", "mm", "patch 7", "mainline"))
        self.client.get(f"/experiments/?q={word}&state=done", name="/experiments/?q=")

    @task(4)
    def experiment(self) -> None:
        """One of them, and its verdicts."""
        number = random.randint(1, EXPERIMENTS)
        self.client.get(f"/experiments/{number}/", name="/experiments/N/")
        self.client.get(f"/experiments/{number}/comparison/", name="/experiments/N/comparison/")

    @task(2)
    def runs(self) -> None:
        """Its boots, and one of them."""
        number = random.randint(1, EXPERIMENTS)
        self.client.get(f"/experiments/{number}/runs/", name="/experiments/N/runs/")
        self.client.get(f"/runs/{number * RUNS_EACH}/", name="/runs/N/")

    @task(1)
    def trend(self) -> None:
        """The trends, and one of them."""
        self.client.get("/trends/")
        if self.trends:
            self.client.get(random.choice(self.trends), name="/trends/K/")

    @task(1)
    def regressions(self) -> None:
        """Open the list of recent regressions."""
        self.client.get("/regressions/")
