# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl work`: this machine's worker, beside the web server or as part of a fleet."""

import logging
from threading import Event
from typing import Annotated

import typer
from django.conf import settings

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.logs import set_up
from workers import local
from workers.crew import run_crew
from workers.ctl.options import Local, on_this_machine
from workers.fetching import fetching
from workers.initrds import remove_initrds
from workers.processes import end_at_sigterm
from workers.work import delivering, only_worker, work

log = logging.getLogger(__name__)

FLEET = "Workers of a fleet, over KPERFLAB_REDIS"


Builds = Annotated[
    bool,
    typer.Option("--builds", help="build kernels, with every compiler installed here", rich_help_panel=FLEET),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="NAME", help="boot on this target; repeatable", rich_help_panel=FLEET),
]
Upkeep = Annotated[
    bool, typer.Option("--upkeep", help="also run periodic maintenance", rich_help_panel=FLEET)
]
Beat = Annotated[
    bool,
    typer.Option("--beat", help="also run the scheduler (one process in the lab)", rich_help_panel=FLEET),
]


def work_until_stopped(
    is_local: Local = False,
    builds: Builds = False,
    target: Targets = None,
    upkeep: Upkeep = False,
    beat: Beat = False,
) -> None:
    """Build and boot queued work until Ctrl-C or SIGTERM; both return the current work to the queue."""
    posts = [["--builds"]] * builds + [["--target", name] for name in target or ()]
    posts += [["--upkeep"]] * upkeep + [["--beat"]] * beat
    if not posts:
        on_this_machine(is_local)
    set_up()
    if len(posts) > 1:
        raise typer.Exit(run_crew(posts))
    if posts:
        raise typer.Exit(_take_post(*posts[0]))
    _work_alone()


def _take_post(kind: str, name: str = "") -> int:
    # Celery's worker and beat are not needed on one machine.
    from workers.beat import beat
    from workers.fleet import build_post, serve_post, target_post, upkeep_post

    if kind == "--beat":
        beat()
        return 0
    return serve_post(
        build_post() if kind == "--builds" else target_post(name) if kind == "--target" else upkeep_post()
    )


def _work_alone() -> None:
    end_at_sigterm()
    with only_worker(settings.HOME):
        for line in (*local.sweep(), *remove_initrds(settings.HOME)):
            log.info("removed what a killed process left: %s", line)
        try:
            with delivering(), fetching():
                # From here on a signal ends the work in good order.
                log.info("working on %s", settings.HOME)
                work(Event())
        except (KeyboardInterrupt, SystemExit):
            log.info("stopped; nothing is lost")
            raise typer.Exit(0) from None
