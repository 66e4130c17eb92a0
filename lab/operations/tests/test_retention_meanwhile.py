# SPDX-License-Identifier: GPL-2.0-or-later
"""The retention policy beside people and processes: what is kept while it removes, and what a killed process left in the store."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lab.experiments.never_delete import keep_for
from lab.models import User
from lab.operations import retention
from lab.operations.retention import expire, plan_expiry
from lab.operations.tests.test_retention import ALL, World
from lab.operations.tests.test_retention import home as home
from lab.operations.tests.test_retention import store as store
from lab.storage.artifacts import name_in_store
from lab.storage.directory import DirectoryStorage
from lab.storage.store import Store
from lab.tests.factories import make_user
from lab.tests.fresh_python import run_python
from lab.tests.labs import ROOT

pytestmark = pytest.mark.process

# A process is killed when it has written half of a file into the store.
KILLED = """
import io, os, signal, sys
from django.conf import settings
settings.configure()
from lab.storage.directory import DirectoryStorage
from lab.storage.store import Store

class Half(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(size)

Store(DirectoryStorage(location=sys.argv[1])).put(sys.argv[2], Half(bytes(2 << 20)))
"""


def test_what_somebody_keeps_while_much_is_being_removed_stays(
    home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, operator = World(home, store), make_user("carol", User.Role.OPERATOR)
    experiments = [world.experiment(), world.experiment()]
    world.age_all()
    plan = plan_expiry()
    (later,) = (row for row in experiments if not row.variants.filter(build__artifact_key=plan.going[0].name))
    monkeypatch.setattr(retention, "_AT_ONCE", 1)
    monkeypatch.setattr(retention, "ASK_AGAIN_S", 0.0)
    delete = DirectoryStorage.delete

    def delete_slowly(storage: DirectoryStorage, name: str) -> None:
        keep_for(experiment_id=later.pk, by=operator, kept=True)
        delete(storage, name)

    monkeypatch.setattr(DirectoryStorage, "delete", delete_slowly)
    expire(plan)
    assert world.has(later) == ALL
    assert [world.has(row) for row in experiments if row != later] == [set()]


def test_what_a_killed_process_was_sending_keeps_nothing_from_going_and_goes_after_a_day(
    home: Path, store: Store
) -> None:
    world, place = World(home, store), Path(store.storage.location)
    old = world.experiment()
    build = old.variants.get().build
    assert build is not None
    for name in (name_in_store(build.artifact_key, "ab" * 32), f"compiled/{'c' * 64}"):
        done = run_python(["-c", KILLED, str(place), name], {"PYTHONPATH": str(ROOT)}, ROOT)
        assert done.returncode == -signal.SIGKILL
    drafts = set(place.rglob(".*"))
    assert len(drafts) == 2
    expire(plan_expiry())
    assert drafts == set(place.rglob(".*"))
    world.age_all()
    expire(plan_expiry())
    assert world.has(old) == set()
    assert [path for path in place.rglob("*") if path.is_file()] == []
