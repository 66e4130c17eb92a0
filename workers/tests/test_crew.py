# SPDX-License-Identifier: GPL-2.0-or-later
"""Several posts of one host under one command, as real processes: started again, stopped together, gone with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
# Notes that it is there, then waits; `--stubborn` will not be told to stop, `--brief` ends at once.
MEMBER = """
import os, signal, sys, time
from pathlib import Path
place, post = Path(sys.argv[1]), sys.argv[2].strip("-")
def leave(number, frame):
    (place / f"left.{post}.{os.getpid()}").touch()
    if post != "stubborn":
        sys.exit(0)
signal.signal(signal.SIGTERM, leave)
(place / f"came.{post}.{os.getpid()}").touch()
if post != "brief":
    while True:
        time.sleep(60)
"""
CREW = """
import sys
from workers import crew
crew.AGAIN_S, crew.STOP_S = 0.4, 0.5
member = (sys.executable, "-S", "-c", sys.argv[1], sys.argv[2])
sys.exit(crew.run_crew([[post] for post in sys.argv[3:]], member))
"""


class Crew:
    """A crew of these members in a process of its own."""

    def __init__(self, place: Path, posts: tuple[str, ...]) -> None:
        self.place = place
        self.process = subprocess.Popen(
            [sys.executable, "-c", CREW, MEMBER, str(place), *posts],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )

    def seen(self, what: str, post: str = "*") -> set[int]:
        """The processes of a post that `came` or `left`."""
        return {int(path.suffix[1:]) for path in self.place.glob(f"{what}.{post}.*")}

    def only(self, post: str) -> int:
        """The process of a post, once it is there."""
        until(lambda: bool(self.seen("came", post)))
        (pid,) = self.seen("came", post)
        return pid

    def end(self) -> None:
        """Leave nothing, whatever the test found."""
        self.process.kill()
        self.process.wait()
        for pid in self.seen("came"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + 30
    while not holds():
        assert monotonic() < end
        sleep(0.02)


def gone(pid: int) -> bool:
    """Ended, whether or not somebody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def crew_of(tmp_path: Path) -> Iterator[Callable[..., Crew]]:
    made: list[Crew] = []

    def make(*posts: str) -> Crew:
        made.append(Crew(tmp_path, posts))
        return made[-1]

    yield make
    for crew in made:
        crew.end()


def test_one_that_is_killed_is_started_again_and_the_others_go_on(crew_of: Callable[..., Crew]) -> None:
    crew = crew_of("--builds", "--upkeep")
    first, other = crew.only("builds"), crew.only("upkeep")
    os.kill(first, signal.SIGKILL)
    until(lambda: len(crew.seen("came", "builds")) == 2)
    assert crew.seen("came", "upkeep") == {other}
    assert not gone(other)


def test_one_that_ends_at_once_is_started_again_after_a_pause_each_time(crew_of: Callable[..., Crew]) -> None:
    began = monotonic()
    crew = crew_of("--brief", "--upkeep")
    until(lambda: len(crew.seen("came", "brief")) >= 3)
    assert len(crew.seen("came", "brief")) <= (monotonic() - began) / 0.4 + 1
    assert len(crew.seen("came", "upkeep")) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_are_stopped_together_and_may_finish(
    crew_of: Callable[..., Crew], number: signal.Signals
) -> None:
    crew = crew_of("--builds", "--upkeep")
    members = {crew.only("builds"), crew.only("upkeep")}
    crew.process.send_signal(number)
    assert crew.process.wait(30) == 0
    assert crew.seen("left") == members
    assert all(map(gone, members))
    assert crew.seen("came") == members, "none was started again meanwhile"


def test_one_that_will_not_stop_is_killed_in_the_end(crew_of: Callable[..., Crew]) -> None:
    crew = crew_of("--stubborn", "--upkeep")
    members = {crew.only("stubborn"), crew.only("upkeep")}
    crew.process.terminate()
    assert crew.process.wait(30) == 0
    assert crew.seen("left") == members
    assert all(map(gone, members))


def test_a_killed_crew_leaves_nobody_behind(crew_of: Callable[..., Crew]) -> None:
    crew = crew_of("--builds", "--upkeep")
    members = {crew.only("builds"), crew.only("upkeep")}
    crew.process.kill()
    crew.process.wait()
    until(lambda: all(map(gone, members)))
    assert crew.seen("left") == members, "each was asked, and gave back what it was at"
