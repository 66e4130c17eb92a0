# SPDX-License-Identifier: GPL-2.0-or-later
"""Shell completion of numbers, names and revisions. It answers quickly or not at all, and never prints."""

import subprocess
from collections.abc import Callable
from typing import Any

from kernels.processes.environment import passing
from workers.ctl.clients.base import Kind
from workers.ctl.clients.choose import open_client
from workers.ctl.clients.client import Client
from workers.ctl.plaintext import plain_line
from workers.ctl.preferences import OF_GIT

NEWEST = 30
REFS = 200
Found = list[tuple[str, str]]


def experiments(incomplete: str) -> Found:
    """Return the newest experiments, by number, with their names."""
    return _asked(
        incomplete,
        lambda client: [(str(row["id"]), str(row["name"])) for row in client.experiments({}, NEWEST)],
    )


def trees(incomplete: str) -> Found:
    """Registered trees."""
    return _named("trees", incomplete)


def targets(incomplete: str) -> Found:
    """Targets."""
    return _named("targets", incomplete)


def workloads(incomplete: str) -> Found:
    """Workloads, with what they do."""
    return _named("workloads", incomplete)


def branches(incomplete: str) -> Found:
    """Branches and tags of the current git tree."""
    done = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname:short)", f"--count={REFS}", "refs/heads", "refs/tags"],
        capture_output=True,
        text=True,
        check=False,
        env=passing(*OF_GIT),
    )
    return [(name, "") for name in done.stdout.splitlines() if name.startswith(incomplete)]


def one_of(*words: str) -> Callable[[str], Found]:
    """Fixed words."""
    return lambda incomplete: [(word, "") for word in words if word.startswith(incomplete)]


def _named(kind: Kind, incomplete: str) -> Found:
    return _asked(
        incomplete,
        lambda client: [(str(row["name"]), str(row.get("summary", ""))) for row in client.names(kind)],
    )


def _asked(incomplete: str, ask: Callable[[Client], Found]) -> Found:
    """Return the lab's answer, or nothing if it does not answer: a shell waits in the middle of a line."""
    answers: Any = []
    try:
        with open_client(is_local=False, server="", say=lambda _: None, hasty=True) as client:
            answers = ask(client)
    except Exception:  # a completion reports no errors
        return []
    return [
        (plain_line(value), plain_line(description))
        for value, description in answers
        if value.startswith(incomplete)
    ]
