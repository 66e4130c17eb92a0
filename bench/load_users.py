# SPDX-License-Identifier: GPL-2.0-or-later
"""The load of fifty people and their scripts on a lab's pages; run by bench/load.py through locust."""

from __future__ import annotations

import random

from locust import HttpUser, between, task

# As bench/load_store.py numbers them.
EXPERIMENTS, RUNS_EACH = 1000, 30
LISTS = ("experiments", "comparisons", "runs", "samples")


class Reader(HttpUser):
    """Looks at a page, reads for some seconds, goes on."""

    wait_time = between(1, 3)
    trends: tuple[str, ...] = ()

    def on_start(self) -> None:
        """Know some trends."""
        page = self.client.get("/api/v1/trends/", name="/api/v1/trends/").json()
        type(self).trends = tuple(one["key"] for one in page["results"])

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
            self.client.get(f"/trends/{random.choice(self.trends)}/", name="/trends/K/")

    @task(1)
    def regressions(self) -> None:
        """Open the list of recent regressions."""
        self.client.get("/regressions/")

    @task(4)
    def lists(self) -> None:
        """The same rows from our API and from a plain one, one right after the other."""
        name, page = random.choice(LISTS), random.randint(1, 20)
        ways = [f"/api/v1/{name}/?page={page}&page_size=50", f"/plain/{name}/?page={page}"]
        random.shuffle(ways)
        for way in ways:
            self.client.get(way, name=way.split("?")[0])
