# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a benchmark from the command line, install a peer for it, and count what it costs."""

import functools
import resource
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer


def run(main: Callable[..., int | None]) -> None:
    """Call a benchmark's main function with an option for each of its arguments; its module's text is the help."""
    text = sys.modules[main.__module__].__doc__ or ""
    cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @functools.wraps(main)
    def command(**options: Any) -> None:
        raise typer.Exit(main(**options) or 0)

    # Without the mark typer would fold the lines of a paragraph.
    cli.command(help="\n\n".join(f"\b\n{part}" for part in text.strip().split("\n\n")))(command)
    cli()


def spent(*, own: bool = False) -> float:
    """Return the CPU seconds of all processes that this one started and that ended. own: its own, too."""
    kinds = (resource.RUSAGE_CHILDREN, *((resource.RUSAGE_SELF,) if own else ()))
    return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def installed(package: str, place: Path) -> Path:
    """Return the folder of programs of an environment that has this package of PyPI, such as "virtme-ng==1.42"; made once."""
    programs = place / package / "bin"
    if not (place / package / "installed").exists():
        print(f"installing {package}", file=sys.stderr)
        venv.create(place / package, with_pip=True)
        subprocess.run([str(programs / "pip"), "install", "--quiet", package], check=True, timeout=600)
        (place / package / "installed").touch()
    return programs
