# SPDX-License-Identifier: GPL-2.0-or-later
"""The worker's side of fetches: who goes first, and that no child outlives or outgrows its limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError
from django.utils import timezone

from lab.experiments.limits import FETCH_SLOTS, FETCHES_RUNNING_EACH, PREVIEW_UNWATCHED_S
from lab.models import Fetch, User
from lab.submission.fetches.queue import (
    MOST_ATTEMPTS,
    MOST_INTERRUPTED,
    cancel_unwatched,
    claim_fetch,
    finish_fetch,
    return_dead_fetches,
    return_interrupted_fetch,
)
from lab.submission.fetches.requests import cancel_fetch, look_at_fetch
from lab.submission.fetches.work import carry_out
from lab.tests.factories import make_user
from workers.fetching import BUSY_CPU_S, CHILD, Bounds, FetchChildren
from workers.processes import usage_of

pytestmark = [pytest.mark.django_db, pytest.mark.hostile, pytest.mark.process]

# What children do here in place of fetching; the first argument is the fetch's number.
IDLE = "import time; time.sleep(600)"
GROWING = "import sys, time\nwith open(sys.argv[1], 'wb') as f:\n  f.write(bytes(1 << 20)); f.flush(); time.sleep(600)"
EATING = "import time; held = bytearray(300 << 20); time.sleep(600)"
BUSY = "while True: pass"
FAILING = "raise SystemExit(3)"
# A grandchild in a session of its own, as every git is, which ignores all polite signals.
BREEDING = (
    "import subprocess, sys, time\n"
    "p = subprocess.Popen([sys.executable, '-c', \"import signal, time; signal.signal(15, 1); time.sleep(600)\"],"
    " start_new_session=True)\n"
    "open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(600)"
)


def asked(user: User, number: int = 0) -> Fetch:
    request = {
        "description": {"name": f"n{number}"},
        "branch": None,
        "message": "",
        "each": False,
        "form_key": "",
    }
    return Fetch.objects.create(user=user, kind="preview", request=request, digest=f"{user.pk}-{number}")


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice")


def test_a_preview_that_nobody_asks_for_any_more_is_cancelled_and_a_submission_is_not(alice: User) -> None:
    late = timezone.now() - timedelta(seconds=PREVIEW_UNWATCHED_S + 1)
    for number, kind in enumerate(("preview", "submit", "preview")):
        row = asked(alice, number)
        Fetch.objects.filter(pk=row.pk).update(kind=kind, looked_at=late)
    watched = Fetch.objects.latest("pk")
    assert look_at_fetch(fetch_id=watched.pk, by=alice) == watched
    assert cancel_unwatched() == 1
    assert list(Fetch.objects.order_by("pk").values_list("kind", "state")) == [
        ("preview", "cancelled"),
        ("submit", "waiting"),
        ("preview", "waiting"),
    ]


def test_somebody_elses_look_does_not_keep_a_preview(alice: User) -> None:
    row = asked(alice)
    Fetch.objects.update(looked_at=timezone.now() - timedelta(seconds=PREVIEW_UNWATCHED_S + 1))
    look_at_fetch(fetch_id=row.pk, by=make_user("op", User.Role.OPERATOR))
    assert cancel_unwatched() == 1


def test_a_running_preview_without_a_client_is_ended_with_its_child(
    alice: User, hands: list[FetchChildren], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.fetching.RETURN_S", 0.0)
    asked(alice)
    fetching = FetchChildren(command=(sys.executable, "-c", IDLE))
    hands.append(fetching)
    fetching.step()
    (child,) = fetching._children
    Fetch.objects.update(looked_at=timezone.now() - timedelta(seconds=PREVIEW_UNWATCHED_S + 1))
    while fetching._children:
        child.renewed_at = 0.0
        fetching.step()
    assert child.process.poll() is not None
    assert Fetch.objects.get().state == "cancelled"


@pytest.fixture
def hands() -> Iterator[list[FetchChildren]]:
    made: list[FetchChildren] = []
    yield made
    for children in made:
        children.end()


def until_over(fetching: FetchChildren, row: Fetch, seconds: float = 240.0) -> Fetch:
    """Let the worker look until the fetch is over."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        fetching.step()
        row.refresh_from_db()
        if row.state not in ("waiting", "running"):
            return row
        time.sleep(0.05)
    raise AssertionError(f"the fetch is still {row.state}")


@pytest.mark.parametrize(
    ("program", "bounds", "said"),
    [
        (IDLE, Bounds(silent_s=0.5), "the other host sent nothing for 0.5 s"),
        (BUSY, Bounds(deadline_s=1.0), "it was not over within 1 s"),
        (GROWING, Bounds(received=1 << 19), "it sent more than 0 MiB"),
        (EATING, Bounds(memory=200 << 20), "takes more than 200 MiB of memory"),
    ],
)
def test_a_child_that_passes_a_limit_is_ended_and_the_row_says_which(
    alice: User, hands: list[FetchChildren], tmp_path: Path, program: str, bounds: Bounds, said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    hands.append(FetchChildren(bounds, (sys.executable, "-c", program)))
    row = until_over(hands[0], asked(alice))
    assert row.state == "failed"
    assert said in row.problem["message"]
    assert "upload the patches" in row.problem["message"]
    assert (row.slot, row.token, row.claimed_by) == (None, "", "")
    assert not children_of_ours()


def test_only_files_that_are_open_to_write_count_as_received(tmp_path: Path) -> None:
    (tmp_path / "read").write_bytes(bytes(1 << 20))
    (tmp_path / "written").write_bytes(bytes(1 << 10))
    with (tmp_path / "read").open("rb") as read, (tmp_path / "written").open("ab") as written:
        process = subprocess.Popen(
            ["sleep", "60"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(read.fileno(), written.fileno()),
        )
    try:
        assert usage_of(process.pid).received == 1 << 10
    finally:
        process.kill()
        process.wait()


def test_work_on_the_processor_is_no_silence(alice: User, hands: list[FetchChildren]) -> None:
    row = asked(alice)
    hands.append(FetchChildren(Bounds(silent_s=3600.0), (sys.executable, "-c", BUSY)))
    hands[0].step()
    (child,) = hands[0]._children
    while usage_of(child.process.pid).cpu_s <= BUSY_CPU_S:
        time.sleep(0.05)
    child.grew_at -= 7200
    hands[0].step()
    assert hands[0]._children == [child]
    # Once it is stopped, the same two hours are a silence.
    child.process.send_signal(signal.SIGSTOP)
    hands[0].step()
    child.grew_at -= 7200
    assert "sent nothing for 1 h" in until_over(hands[0], row).problem["message"]


def test_a_cancelled_fetch_ends_with_all_that_it_started(
    alice: User, hands: list[FetchChildren], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = asked(alice)
    hands.append(FetchChildren(command=(sys.executable, "-c", BREEDING)))
    while not (tmp_path / str(row.pk)).exists() or not (tmp_path / str(row.pk)).read_text():
        hands[0].step()
        time.sleep(0.05)
    grandchild = int((tmp_path / str(row.pk)).read_text())
    assert usage_of(grandchild).memory
    cancel_fetch(fetch_id=row.pk, by=alice)
    while children_of_ours():
        hands[0].step()
        time.sleep(0.05)
    assert not is_running(grandchild)
    row.refresh_from_db()
    assert (row.state, row.problem) == ("cancelled", {})


def test_a_child_that_has_written_its_result_ends_by_itself_and_is_not_called_cancelled(
    alice: User, hands: list[FetchChildren], caplog: pytest.LogCaptureFixture
) -> None:
    row = asked(alice)
    hands.append(FetchChildren(command=(sys.executable, "-c", "import time; time.sleep(1)")))
    hands[0].step()
    (child,) = hands[0]._children
    row.refresh_from_db()
    finish_fetch(row.pk, row.token)
    child.renewed_at -= 3600
    with caplog.at_level("INFO", logger="workers.fetching"):
        while hands[0]._children:
            hands[0].step()
            time.sleep(0.05)
    assert child.process.returncode == 0
    assert "cancelled" not in caplog.text


def test_a_child_that_dies_is_the_labs_fault_and_no_verdict_on_the_description(
    alice: User, hands: list[FetchChildren]
) -> None:
    hands.append(FetchChildren(command=(sys.executable, "-c", FAILING)))
    row = until_over(hands[0], asked(alice))
    assert (row.state, row.problem["kind"]) == ("failed", "LabUnable")
    assert "ended with status 3" in row.problem["message"]


def test_a_fetch_that_loses_the_database_is_carried_out_again_and_given_up_after_five_times(
    alice: User, hands: list[FetchChildren], caplog: pytest.LogCaptureFixture
) -> None:
    # A process that finds no database, as while one restarts.
    away = ("env", "KPERFLAB_DATABASE=postgres://lab@127.0.0.1:9/lab?sslmode=disable", *CHILD)
    hands.append(FetchChildren(command=away))
    row = until_over(hands[0], asked(alice))
    assert caplog.text.count("lost the database") == MOST_INTERRUPTED
    assert (row.state, row.interrupted, row.problem["kind"]) == ("failed", MOST_INTERRUPTED, "LabUnable")
    assert "went away 5 times" in row.problem["message"]


def test_a_fetch_that_lost_the_database_may_still_lose_a_worker(alice: User) -> None:
    row = asked(alice)
    for _ in range(2):
        claimed = claim_fetch(by="host:1:1")
        assert claimed is not None
        assert return_interrupted_fetch(row.pk, claimed.token)
    assert claim_fetch(by="host:1:1") is not None
    assert return_dead_fetches(alive=lambda _: False) == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.attempt, row.interrupted) == ("waiting", 1, 2)


def test_a_fetch_that_was_over_when_its_process_lost_the_database_stays_over(alice: User) -> None:
    row = asked(alice)
    claimed = claim_fetch(by="host:1:1")
    assert claimed is not None
    finish_fetch(row.pk, claimed.token, preview={})
    assert not return_interrupted_fetch(row.pk, claimed.token)
    row.refresh_from_db()
    assert row.state == "done"


def test_a_database_that_goes_away_says_nothing_about_the_description(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("terminating connection due to administrator command")

    monkeypatch.setattr("lab.submission.fetches.work.fetch_series", away)
    row = asked(alice)
    claimed = claim_fetch(by="host:1:1")
    assert claimed is not None
    with pytest.raises(OperationalError):
        carry_out(row.pk, claimed.token)
    row.refresh_from_db()
    assert (row.state, row.problem) == ("running", {})


def test_there_are_never_more_than_the_slots_and_people_share_them(db: None) -> None:
    people = [make_user(name) for name in ("alice", "bob", "dora")]
    for number in range(4):
        asked(people[0], number)
    asked(people[1])
    asked(people[2])
    claimed = [claim_fetch(by="h:1:1") for _ in range(10)]
    taken = [row.user.username for row in claimed if row]
    assert taken == ["alice", "bob", "dora", "alice"]
    assert len(taken) == FETCH_SLOTS
    assert taken.count("alice") == FETCHES_RUNNING_EACH


def test_one_person_alone_leaves_slots_for_others(alice: User) -> None:
    for number in range(4):
        asked(alice, number)
    assert len([row for row in (claim_fetch(by="h:1:1") for _ in range(5)) if row]) == FETCHES_RUNNING_EACH


def test_what_a_dead_worker_left_is_carried_out_again_and_then_given_up(alice: User) -> None:
    row = asked(alice)
    for _ in range(MOST_ATTEMPTS):
        assert claim_fetch(by="host:1:1") is not None
        assert return_dead_fetches(alive=lambda _: False) == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.problem["kind"]) == ("failed", "LabUnable")
    assert "ended 2 times" in row.problem["message"]
    assert claim_fetch(by="host:1:1") is None


def test_an_answer_that_comes_late_writes_nothing(alice: User) -> None:
    from lab.errors import FetchLost
    from lab.submission.fetches.queue import finish_fetch

    row = asked(alice)
    first = claim_fetch(by="host:1:1")
    assert first is not None
    return_dead_fetches(alive=lambda _: False)
    with pytest.raises(FetchLost, match=f"fetch {row.pk} is no longer claimed by this worker"):
        finish_fetch(row.pk, first.token, preview={})
    row.refresh_from_db()
    assert (row.state, row.preview) == ("waiting", None)


def children_of_ours() -> list[int]:
    """Processes that this one started and that still live."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed if is_running(int(pid)) and b"-c" in _command(int(pid)).split(b"\0")]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
