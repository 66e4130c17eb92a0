# SPDX-License-Identifier: GPL-2.0-or-later
"""`make up`, `make down`, `make status`: the whole service on this machine."""

import json
import subprocess
import sys
from typing import Annotated

import typer
from rich.text import Text

from lab.environment import state_root
from lab.figures import duration
from workers.ctl.options import out
from workers.ctl.program import run_program
from workers.errors import ServiceDown
from workers.service.place import ROOT, ServicePlace
from workers.service.supervising import Supervisor, environment
from workers.service.up import bring_down, bring_up, bring_up_stores, service_options

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Port = Annotated[int, typer.Option(min=1, max=65535, help="port of the pages")]


@cli.command()
def up(port: Port = 8000) -> None:
    """Start the service, or whatever of it does not run."""
    home = state_root()
    home.mkdir(parents=True, exist_ok=True)
    place = ServicePlace(home)
    experiments = bring_up(place, service_options(port), _say)
    _say(f"the lab is up: {_url(port)}")
    _sign_in(place, port)
    _say(f"logs: {place.logs}   status: make status   stop: make down")
    sqlite = home / "kperflab.sqlite3"
    if sqlite.exists() and not experiments:
        _say(
            f"The service has a database of its own, which is empty. What was measured with --local stays in {sqlite}: "
            "make down, then labctl serve --local shows it."
        )


@cli.command()
def stores(port: Port = 8000) -> None:
    """Start the database and Redis alone, with their tables."""
    home = state_root()
    home.mkdir(parents=True, exist_ok=True)
    bring_up_stores(ServicePlace(home), service_options(port), _say)
    _say("the database and Redis are up; to start the rest: make up")


@cli.command()
def down() -> None:
    """Stop the service; nothing of it is left running, and everything is kept."""
    place = ServicePlace(state_root())
    try:
        bring_down(place, _say)
    except ServiceDown as exc:
        _say(str(exc))
    else:
        _say(f"the lab is down; {place.home} has all its data")


@cli.command()
def status() -> None:
    """Show what runs."""
    place = ServicePlace(state_root())
    for program in Supervisor(place).states():
        detail = f"process {program.pid}, {duration(program.seconds)}" if program.pid else program.detail
        _say(f"{program.name:<20} {program.state.lower():<9} {detail}")


def _url(port: int) -> str:
    kept = json.loads(ServicePlace(state_root()).environment.read_text())
    return str(kept.get("KPERFLAB_URL", f"http://127.0.0.1:{port}"))


def _sign_in(place: ServicePlace, port: int) -> None:
    """Print a link that signs in the user of this terminal."""
    command = [sys.executable, "-m", "workers.labctl", "sign-in", "--local", "--port", str(port)]
    done = subprocess.run(command, env=environment(place), cwd=ROOT, capture_output=True, text=True)
    _say((done.stdout or done.stderr).strip())


def _say(line: str) -> None:
    out.print(Text(line), soft_wrap=True)


def main() -> None:
    """Run a command; an expected error is one line, its detail below."""
    run_program(cli, "kperflab")


if __name__ == "__main__":
    main()
