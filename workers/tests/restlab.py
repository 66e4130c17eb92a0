# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab behind a real server for tests of labctl, and experiments that are submitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from lab.models import Experiment, Target, Tree, User
from lab.people.tokens import issue_token
from lab.tests.factories import make_user
from lab.tests.fetchers import a_fetcher, repeating
from workers import labctl, local
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_labctl import call


@contextmanager
def lab_behind(
    url: str, fake_lab: FakeLab, settings: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeLab]:
    """A server with a lab behind it, whose operators have registered the pretend tree; the caller is nobody."""
    cache.clear()
    # What a migration wrote is gone after the first of these tests.
    Target.objects.get_or_create(name="guest", defaults={"driver": "libvirt", "vcpus": 2, "memory_mib": 1024})
    settings.PUBLIC_URL = url
    monkeypatch.setenv("LABCTL_SERVER", url)
    Tree.objects.create(
        name="pretend",
        kind="git",
        location=str(fake_lab.kernel.work),
        default_revision=fake_lab.kernel.base.commit,
    )
    (folder / "folder").mkdir()
    monkeypatch.chdir(folder / "folder")
    with a_fetcher():
        yield fake_lab


def signed_in(monkeypatch: pytest.MonkeyPatch, name: str = "alice", **fields: Any) -> User:
    user = User.objects.filter(username=name).first() or make_user(name, **fields)
    _, token = issue_token(
        user=user, name="t", scopes=["read"] if user.role == "viewer" else ["read", "submit"]
    )
    monkeypatch.setenv("LABCTL_TOKEN", token)
    return user


def a_worker() -> AbstractContextManager[None]:
    """Somebody who carries out whatever is queued, as `labctl work` does on the lab's machine."""

    def work() -> None:
        for experiment in Experiment.objects.filter(state__in=("queued", "running")):
            local.work_through(experiment.pk)

    return repeating(work)


def described(lab: FakeLab, ns: float = 1250.0, *, workload: str = "showgids") -> str:
    """A description of a patch whose kernel takes `ns` where the base takes 1000; returns the file's name."""
    lab.scripts["other"] = lambda request: opens(ns + len(lab.driver.requests) % 3)
    Path("other.patch").write_text(lab.diff("fs/inode.c", "\tWARN_HERE();\n", ""))
    Path("other.toml").write_text(
        f'name = "other"\ntree = "pretend"\nbase = "{lab.kernel.base.commit}"\n'
        '[[patches]]\nname = "other"\nfile = "other.patch"\n'
        f'[[cases]]\nworkload = "{workload}"\npreset = "smoke"\n'
        "[measure]\nboots = 5\niterations = 2\nwarmup = 1\n"
    )
    return "other.toml"


def submitted(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **more: Any
) -> int:
    assert call(monkeypatch, "submit", described(lab, **more)) == labctl.EXIT_OK
    return int(capsys.readouterr().out)
