# SPDX-License-Identifier: GPL-2.0-or-later
"""Readiness looks at the store: in time, seldom, and by name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Event
from time import monotonic
from typing import Any, TypeVar

import pytest

from lab.operations.readiness import checked_now
from lab.storage import store_check as storeanswer
from lab.storage.store import Store
from lab.storage.store_check import StoreStatus, store_answer
from lab.tests.stores import BUCKET, KEYS, choose, directory_store, told_by
from lab.tests.stores import moto as moto
from lab.tests.stores import small_disk as small_disk
from lab.tests.stores import store as store

T = TypeVar("T")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storeanswer, "_asking", storeanswer._Asking())


@pytest.fixture
def waits() -> list[float]:
    """The seconds for which those who ask were ready to wait, one after the other."""
    ready: list[float] = []

    class Noted(Condition):
        def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
            if timeout is not None:
                ready.append(timeout)
            return super().wait_for(predicate, timeout)

    storeanswer._asking._changed = Noted()
    return ready


def answer() -> StoreStatus:
    status = store_answer()
    assert status is not None
    return status


def test_a_lab_without_a_store_is_not_asked_for_one() -> None:
    assert store_answer() is None


@pytest.mark.django_db
def test_a_store_that_is_there_has_a_line_among_the_checks(store: Store) -> None:
    (line,) = [check for check in checked_now() if check.name == "store"]
    assert line.ok, line.message
    assert line.message.startswith(store.address)
    assert "answers in" in line.message
    assert list(store.entries()) == [], "looking leaves nothing there"


def test_a_directory_that_is_not_mounted_is_named(settings: Any, tmp_path: Path) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": str(tmp_path / "away")}))
    assert not answer().ok
    assert f"there is no directory {tmp_path / 'away'}: create it, or mount it" in answer().message


def test_a_bucket_that_is_not_there_is_named(settings: Any, moto: str) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": f"s3://nobodys?endpoint={moto}", **KEYS}))
    assert not answer().ok
    assert "s3://nobodys" in answer().message
    assert "there is no such bucket" in answer().message


def test_a_server_that_is_away_is_waited_for_no_longer_than_the_deadline(
    settings: Any, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    monkeypatch.setattr(storeanswer, "DEADLINE_S", 0.5)
    url = f"s3://{BUCKET}?endpoint=http://127.0.0.1:9"
    choose(settings, told_by({"KPERFLAB_STORE": url, **KEYS}))
    status = answer()
    (ready,) = waits
    assert ready <= 0.5
    assert not status.ok
    assert f"s3://{BUCKET}" in status.message
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in status.message


def test_a_store_that_hangs_holds_up_nobody_and_is_asked_by_one_thread(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    monkeypatch.setattr(storeanswer, "DEADLINE_S", 0.2)
    let_go, asked = Event(), []

    def hang(self: Store) -> None:
        asked.append(self)
        assert let_go.wait(20)

    directory_store(settings, tmp_path / "store")
    monkeypatch.setattr(Store, "reach", hang)
    assert re.search(r" has not answered for \d+ s$", answer().message)
    assert [answer().ok for _ in range(50)] == [False] * 50
    assert waits[0] > 0
    assert waits[1:] == [0.0] * 50, "only the first waits for it"
    assert len(asked) == 1
    let_go.set()
    end = monotonic() + 60
    while not answer().ok:
        assert monotonic() < end
    assert len(asked) == 1


def test_many_questions_are_one_to_the_store_until_its_answer_is_old(settings: Any, tmp_path: Path) -> None:
    directory_store(settings, tmp_path / "store")
    assert all(answer().ok for _ in range(10))
    shutil.rmtree(tmp_path / "store")
    assert answer().ok, "the last answer still counts"
    known, at, status = storeanswer._asking._found or pytest.fail("nothing was kept")
    storeanswer._asking._found = known, at - storeanswer.KEPT_S - 1, status
    assert not answer().ok


def test_another_store_is_asked_for_itself(settings: Any, tmp_path: Path) -> None:
    directory_store(settings, tmp_path / "one")
    assert answer().message.startswith(str(tmp_path / "one"))
    directory_store(settings, tmp_path / "two")
    assert answer().message.startswith(str(tmp_path / "two"))


@pytest.mark.process
def test_a_store_whose_disk_is_nearly_full_is_told(small_disk: Path, settings: Any) -> None:
    directory_store(settings, small_disk / "store")
    assert not answer().ok
    assert "0.0 GiB free, 1.0 are needed: free space with labctl lab expire" in answer().message


def test_a_setting_that_is_no_store_is_told(settings: Any) -> None:
    settings.STORE_PROBLEM = told_by({"KPERFLAB_STORE": "relative/dir"}).problem
    assert not answer().ok
    assert "KPERFLAB_STORE: give an absolute directory" in answer().message
