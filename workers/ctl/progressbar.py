# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment under way: followed through a client, drawn on a terminal, printed line by line elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Thread
from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lab.figures import duration
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import ClientError
from workers.ctl.plaintext import plain_line
from workers.ctl.terminal import doing_lines, stalled_line

LOCAL_REFRESH_S, REMOTE_REFRESH_S = 0.5, 2.0
PLAIN_REFRESH_S = 20.0
# A server may be restarted under a pipeline that waits for hours.
PATIENCE_S = 600.0


@dataclass
class Follower:
    """The last known state of one experiment. last: the build's last line; silence: why no answer came, if none did.

    apart: other processes do the work, which may be stalled.
    """

    client: Client
    experiment_id: int
    started: float = field(default_factory=monotonic)
    answered: float = field(default_factory=monotonic)
    experiment: Json = field(default_factory=dict)
    last: str = ""
    silence: str = ""
    apart: bool = True
    # A build, the offset up to which its log was read, and the beginning of a half-written line.
    _read: tuple[int, int] = (0, 0)
    _half: str = ""

    def look(self) -> None:
        """Ask once. Raises what the client raises; an error that may be retried only after PATIENCE_S without an answer."""
        try:
            self.experiment = self.client.experiment(self.experiment_id)
            self.last = self._last_line()
        except ClientError as exc:
            if not exc.retry or not self.experiment or monotonic() - self.answered > PATIENCE_S:
                raise
            self.silence = str(exc)
            return
        self.silence, self.answered = "", monotonic()

    @property
    def progress(self) -> Json:
        """Return the experiment's progress."""
        progress: Json = self.experiment["progress"]
        return progress

    @property
    def finished(self) -> bool:
        """Return whether it is over, well or not."""
        return bool(self.progress["finished"])

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return LOCAL_REFRESH_S if self.client.local else REMOTE_REFRESH_S

    def _last_line(self) -> str:
        """Return the last line of the running build, reading from where the last look ended."""
        build = next((activity["id"] for activity in self.progress["now"] if activity["kind"] == "build"), 0)
        if not build:
            return ""
        if self._read[0] != build:
            self._read, self.last, self._half = (build, 0), "", ""
        try:
            part = self.client.log("builds", build, self._read[1])
        except Exception as exc:
            if getattr(exc, "blame", "") == "submission":
                return ""  # not written yet, or over and gone
            raise
        whole, _, self._half = (self._half + part.text).rpartition("\n")
        self._read = (build, part.end)
        return next((plain_line(line) for line in reversed(whole.split("\n")) if line.strip()), self.last)


def follow(console: Console, client: Client, experiment_id: int) -> Json:
    """Show progress until the experiment is over; returns it. Raises what the client raises."""
    follower = Follower(client, experiment_id)
    follower.look()
    pause = Event()
    _show(console, follower, lambda: follower.finished or pause.wait(follower.pause))
    return follower.experiment


@contextmanager
def beside(console: Console, client: Client, experiment_id: int) -> Iterator[None]:
    """Show progress in a thread of its own while the caller does the work."""
    done = Event()
    follower = Follower(client, experiment_id, apart=False)

    def shown() -> None:
        from django.db import connection

        try:
            follower.look()
            _show(console, follower, lambda: done.wait(follower.pause))
        except Exception as exc:
            # The work continues without a display of its progress.
            if getattr(exc, "blame", None) is None:
                raise
        finally:
            connection.close()  # each thread has its own

    thread = Thread(target=shown, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


def _show(console: Console, follower: Follower, over: Callable[[], bool]) -> None:
    """Draw or tell until `over`, which waits in between, and once more after it."""
    if not console.is_terminal:
        _tell(console, follower, over)
        return
    with Live(drawn(follower), console=console, refresh_per_second=4, transient=False) as live:
        while True:
            last = over()
            follower.look()
            live.update(drawn(follower))
            if last:
                return


def _tell(console: Console, follower: Follower, over: Callable[[], bool]) -> None:
    """Print lines for logs: one whenever something else is being done, and every 20 seconds."""
    subject_said, said_at, counts_said = "", -PLAIN_REFRESH_S, ""
    while True:
        last = over()
        follower.look()
        doing, subject, counts = _doing(follower), _subject(follower), _counts(follower)
        news = bool(subject) and subject != subject_said
        if news or (last and counts != counts_said) or monotonic() - said_at > PLAIN_REFRESH_S:
            tail = f" ({follower.last})" if follower.last else ""
            line = f"{_since(follower):>12}  {counts}{_left(follower)}  {doing}{tail}"
            console.print(Text(line.rstrip()), soft_wrap=True)
            subject_said, said_at, counts_said = subject, monotonic(), counts
        if last:
            return


def _counts(follower: Follower) -> str:
    now = follower.progress
    return f"builds {_over(now, 'builds')}/{now['builds_total']}, boots {_over(now, 'boots')}/{now['boots_total']}"


def _since(follower: Follower) -> str:
    """Return how long it has been under way; how long we have looked, where the lab's clock is ahead of ours."""
    looked = monotonic() - follower.started
    started = follower.experiment.get("started_at")
    if not started or follower.finished:
        return duration(looked)
    return duration(max(looked, (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()))


def _left(follower: Follower) -> str:
    seconds = None if follower.finished else follower.progress["eta_s"]
    return "" if seconds is None else f", about {duration(seconds)} left"


def _over(now: Json, what: str) -> int:
    return sum(int(now[f"{what}_{how}"]) for how in ("done", "failed", "cancelled"))


def _count_of(now: Json, what: str) -> Text:
    """Return how many of a stage are over, and how many of them failed or were cancelled."""
    text = Text(f"{_over(now, what)}/{now[f'{what}_total']}")
    for how, style in (("failed", "red"), ("cancelled", "dim")):
        if number := now[f"{what}_{how}"]:
            text.append(f"  {number} {how}", style=style)
    return text


def _doing(follower: Follower) -> str:
    if follower.silence:
        return follower.silence
    if follower.apart and (stalled := stalled_line(follower.progress)):
        return stalled
    waits = "waiting for a worker" if follower.experiment["state"] == "queued" else ""
    return "; ".join(doing_lines(follower.progress)) or waits


def _subject(follower: Follower) -> str:
    """Return the text whose change is worth a new line of a log: the work, not its progress."""
    now = follower.progress["now"]
    if not now or follower.silence or (follower.apart and stalled_line(follower.progress)):
        return _doing(follower)
    return "; ".join(f"{activity['kind']} {activity['label']}" for activity in now)


def drawn(follower: Follower) -> Group:
    """Draw one refresh: name, time, a bar for each stage, what is being done, the build's last line."""
    now = follower.progress
    name = plain_line(follower.experiment["name"])
    head = Text.assemble((f"{name}  ", "bold"), f"{follower.experiment['state']}  ")
    head.append(_since(follower)).append(_left(follower), style="dim")
    stages = Table.grid(padding=(0, 1))
    for what in ("builds", "boots"):
        bar = ProgressBar(total=max(now[f"{what}_total"], 1), completed=_over(now, what), width=40)
        stages.add_row(Text(what), bar, _count_of(now, what))
    doing = [Text(line) for line in doing_lines(now)]
    if follower.last:
        doing.append(Text(f"  {follower.last}", style="dim", no_wrap=True, overflow="ellipsis"))
    stalled = follower.apart and stalled_line(now)
    if follower.silence or stalled or not doing:
        doing.append(Text(_doing(follower), style="yellow" if follower.silence or stalled else "dim"))
    return Group(head, stages, *doing)
