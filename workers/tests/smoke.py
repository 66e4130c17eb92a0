# SPDX-License-Identifier: GPL-2.0-or-later
"""The smoke experiment of a lab that was set up elsewhere: a pretend kernel is really built there, a fake target boots it."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Any

import httpx

from kernels.tests.pretend import PretendKernel

TARGET = "pretend"
# A service that was just restarted answers after some tries; a build is some seconds of make.
DEADLINE_S = 240.0
# Run by the lab's own `manage.py shell`: a machine to boot on, a tree to build, and somebody who may. Prints the token last.
SEED = """
from lab.models import Target, Tree
Target.objects.get_or_create(name="{target}", defaults=dict(driver="fake"))
Tree.objects.get_or_create(name="pretend", defaults=dict(kind="git", location="{location}", default_revision="{base}"))
"""
# For whom may submit.
TOKEN = """
from lab.models import User
from lab.people.tokens import issue_token
somebody, _ = User.objects.get_or_create(username="smoke", defaults=dict(role="submitter"))
print(issue_token(user=somebody, name="smoke", scopes=["read", "submit"])[1])
"""


def seed(kernel: PretendKernel, location: str) -> str:
    """The program for `manage.py shell` of a lab that finds the pretend kernel's repository at a folder."""
    return SEED.format(target=TARGET, location=location, base=kernel.base.commit) + TOKEN


def description(kernel: PretendKernel, line: str = "") -> dict[str, Any]:
    """One patch on and off, as REST takes it; it puts another line in a warning's place."""
    changed = kernel.edited("fs/inode.c", "\tWARN_HERE();\n", line)
    return {
        "name": "smoke",
        "tree": "pretend",
        "base": kernel.base.commit,
        "target": TARGET,
        "patches": [{"name": "mine", "text": kernel.diff(changed)}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 3, "iterations": 2, "warmup": 1},
    }


def carried_out(
    url: str,
    token: str,
    body: dict[str, Any],
    *,
    seconds: float = DEADLINE_S,
    trust: ssl.SSLContext | bool = True,
) -> dict[str, Any]:
    """Submit over REST and wait; what the experiment is in the end. trust: whose certificates count."""
    headers = {"Authorization": f"Token {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=trust) as lab:
        place = f"/api/v1/experiments/{submitted(lab, body)}/"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            experiment: dict[str, Any] = lab.get(place).json()
            # A busy lab may answer an error once.
            if experiment.get("exit_code") is not None:
                return experiment
            time.sleep(0.5)
    raise AssertionError(f"the experiment is not over after {seconds:.0f} s: {experiment}")


def submitted(lab: httpx.Client, body: dict[str, Any]) -> int:
    """Submit over REST; return the experiment's number, once a worker has fetched the tree where the lab lacks it."""
    answer = lab.post("/api/v1/experiments/", json=body)
    assert answer.status_code in (201, 202), answer.text
    if answer.status_code == 201:
        return int(answer.json()["id"])
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        fetch = lab.get(answer.headers["Location"]).json()
        assert not fetch["problem"], fetch
        if fetch["experiment"]:
            return int(fetch["experiment"])
        time.sleep(0.5)
    raise AssertionError(f"the tree is not there after {DEADLINE_S:.0f} s: {fetch}")


def wait_for_page(url: str, seconds: float = 60.0) -> httpx.Response:
    """The first answer 200 of an address."""
    deadline = time.monotonic() + seconds
    trouble = ""
    while time.monotonic() < deadline:
        try:
            answer = httpx.get(url, timeout=10, trust_env=False)
        except httpx.HTTPError as exc:
            trouble = repr(exc)
        else:
            if answer.status_code == 200:
                return answer
            trouble = f"{answer.status_code} {answer.text[:300]}"
        time.sleep(0.5)
    raise AssertionError(f"{url} does not answer: {trouble}")


def repository_of(kernel: PretendKernel) -> Path:
    """The folder to give to the lab."""
    return kernel.work / ".git"
