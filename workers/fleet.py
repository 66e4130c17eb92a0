# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet's workers: Celery processes, each for one kind of queue, that do one thing at a time.

The pool is `solo`: work is done in the process that Celery's messages reach. A signal therefore interrupts the work, returns
it to the queue and stops; a kill -9 ends everything, since a build's processes die with the process that started them.
"""

import logging
import platform
import signal
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from celery import signals
from celery.exceptions import SecurityWarning, WorkerShutdown
from django.conf import settings

import workers.upkeep  # noqa: F401  registers every task
from kernels.sandbox.memory import end_leftovers
from lab.leases.upkeep import begin_chore, end_chore
from lab.models import Target
from lab.one_line import error_line
from lab.runs.queues import target_queue
from lab.targets.drivers import is_guest
from workers import local, tasks, wakeups
from workers.app import over_the_broker
from workers.boot_request import user_space
from workers.broker_watch import Hearing, end_deaf
from workers.errors import TargetUnready
from workers.fetching import fetching
from workers.initrds import remove_initrds
from workers.presence import KEEP_GOING, KEPT_GOING_S, Presence
from workloads.errors import WorkloadsError

log = logging.getLogger(__name__)

# Compilers are found where the build's sandbox looks for them.
COMPILERS, COMPILER_NAMES = Path("/usr/bin"), ("gcc", "gcc-[0-9]*", "clang", "clang-[0-9]*")
# Upkeep waits for others: forges, mail servers, git servers.
UPKEEP_THREADS = 4
# Starting Python again each time takes seconds of the machine; waiting takes none.
AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Post:
    """The work of one process. builds: kernels; target: the target whose boots it takes; neither: upkeep."""

    name: str
    queues: tuple[str, ...]
    builds: bool = False
    target: str = ""


def build_post() -> Post:
    """Return the post for builds, by every compiler installed here."""
    names = sorted(
        {path.name for name in COMPILER_NAMES for path in COMPILERS.glob(name) if _is_version(path.name)}
    )
    return Post("builds", tuple(f"build.{platform.machine()}.{name}" for name in names), builds=True)


def _is_version(name: str) -> bool:
    """Return True for `gcc-12`, not for `gcc-ar-12`."""
    return name.partition("-")[2].replace(".", "").isdigit() or "-" not in name


def target_post(name: str) -> Post:
    """Return the post for one target."""
    return Post(target_queue(name), (target_queue(name),), target=name)


def upkeep_post() -> Post:
    """Return the post that keeps the lab going."""
    return Post("upkeep", ("upkeep",))


def serve_post(post: Post) -> int:
    """Work until a signal comes; returns the exit code. Raises MachineUnfit."""
    app = over_the_broker()
    # Root makes the mounts of a build's sandbox; what runs in it does not run as root, and messages are JSON.
    warnings.simplefilter("ignore", SecurityWarning)
    alone = post.builds or bool(post.target)
    hands = 1 if alone else UPKEEP_THREADS
    hearing = Hearing(post.queues, hands, wakeups.depth)
    presence = Presence(post.queues, builds=post.builds, also=lambda done: _beside(hearing, done))
    worker = app.Worker(
        hostname=f"{post.name}@{platform.node()}",
        pool_cls="solo" if alone else "threads",
        concurrency=hands,
        queues=list(post.queues),
        loglevel="INFO",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )

    def begin(**_given: Any) -> None:
        if alone:
            _stop_at_once()
        hearing.attach()
        log.info("working on %s", ", ".join(post.queues))

    signals.worker_ready.connect(begin, weak=False)
    signal.signal(signal.SIGTERM, _leave)
    presence.start()
    try:
        await_machine(post, presence)
        with nullcontext() if alone else fetching():
            worker.start()
    finally:
        presence.end()
    return int(worker.exitcode or 0)


def await_machine(post: Post, presence: Presence) -> None:
    """Remove what killed processes left here as soon as the target is there and libvirt answers; then get ready.

    Meanwhile `presence` says why nothing is taken.
    """
    while True:
        try:
            _sweep(post)
        except TargetUnready as error:
            presence.say(str(error))
            time.sleep(AGAIN_S)
        else:
            break
    if post.target:
        _make_user_space()
    presence.say("")


def _beside(hearing: Hearing, done: bool) -> None:
    end_deaf(hearing)
    keep_going(done)


def keep_going(done: bool) -> None:
    """Recover the work of dead workers every few seconds, even if beat or upkeep is gone; one worker does so for all.

    done: another worker has done so lately.
    """
    if done or not begin_chore(KEEP_GOING, KEPT_GOING_S):
        return
    tasks.return_dead()
    wakeups.dispatch()
    end_chore(KEEP_GOING, {})


def _sweep(post: Post) -> None:
    if post.builds and (count := end_leftovers()):
        log.info("ended %s processes of builds whose worker was killed", count)
    if post.target:
        for name in remove_initrds(settings.HOME):
            log.info("removed what run %s was booted with, whose worker was killed", name)
        if not is_guest(_driver_of(post.target)):
            return
        for line in local.sweep():
            log.info("removed what a killed process left: %s", line)


def _driver_of(name: str) -> str:
    drivers = dict(Target.objects.order_by("name").values_list("name", "driver"))
    if name not in drivers:
        raise TargetUnready(f'there is no target "{name}"; there are: {", ".join(drivers) or "none"}')
    return drivers[name]


def _make_user_space() -> None:
    """Compile and pack it before the first boot waits for it; if this fails, that boot reports the error."""
    try:
        user_space(settings.HOME)
    except (WorkloadsError, OSError) as error:
        log.warning("the guests' user space cannot be made here: %s", error_line(error))


def _leave(_number: int, _frame: object) -> NoReturn:
    # Before Celery's own handlers are there, nothing is under way.
    raise SystemExit(0)


def _stop_at_once() -> None:
    """Make a signal interrupt the work and return it to the queue; Celery itself would wait until it is done."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, _stop)


def _stop(_number: int, _frame: object) -> NoReturn:
    # One signal is enough: a second would interrupt the return of the work.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    raise WorkerShutdown(0)
