# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a command line: an expected error is one line with its detail below, and the exit code says whose it is."""

import sys
from collections.abc import Callable
from traceback import print_exception
from typing import NoReturn

import typer
from rich.text import Text

from workers.ctl.options import EXIT_LAB, EXIT_OK, EXIT_USAGE, err


def run_program(cli: Callable[..., object], name: str) -> NoReturn:
    """Call a command line and exit. name: of the program, in front of its errors."""
    try:
        # Not standalone: typer would exit with 2 for a wrong call, which means "cannot tell" here.
        sys.exit(cli(standalone_mode=False) or EXIT_OK)  # type: ignore[arg-type]  # the commands' exit codes
    except SystemExit as exc:
        # Typer prints help by a console of its own, which exits with 1, a regression here, if the reader closes the pipe.
        sys.exit(EXIT_OK if isinstance(exc.__context__, BrokenPipeError) else exc.code)
    except (KeyboardInterrupt, typer.Abort):
        err.print("\nstopped; the same command continues from here")
        sys.exit(EXIT_LAB)
    except Exception as exc:
        sys.exit(_explain(exc, name))


def _explain(exc: Exception, name: str) -> int:
    """Print an expected error, or where any other arose, and return the exit code; Python's own, 1, means a regression."""
    # Typer hides its copy of click: the error of a wrong call is recognised by its format_message.
    format_message: Callable[[], str] | None = getattr(exc, "format_message", None)
    blame = getattr(exc, "blame", None)
    if (away := _database_away(exc)) and format_message is None:
        err.print(Text(f"{name}: {away}", style="red"), soft_wrap=True)
        return EXIT_LAB
    if format_message is None and blame is None:
        print_exception(exc)
        return EXIT_LAB
    lines: Callable[[], list[str]] | None = getattr(exc, "lines", None)
    said = format_message().removeprefix("Invalid value: ") if format_message else str(exc)
    for line in lines() if lines else [said]:
        err.print(Text(f"{name}: {line}", style="red"), soft_wrap=True)
    if detail := getattr(exc, "detail", ""):
        err.print(Text(detail, style="dim"), soft_wrap=True)
    return EXIT_LAB if blame in {"lab", "kernel"} else EXIT_USAGE


def _database_away(exc: Exception) -> str:
    """A line for a database that does not answer; "" for any other error. Django is not imported for this."""
    kind = type(exc)
    if (kind.__module__, kind.__name__) != ("django.db.utils", "OperationalError"):
        return ""
    reason = (str(exc).strip().splitlines() or ["it says nothing"])[0]
    return f"the lab's database does not answer ({reason[:300]}); if it runs on this machine, see make status and start it with make up"
