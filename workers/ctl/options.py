# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that labctl's commands share: those that name a lab, and where they print."""

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import IO, Annotated, Any, Concatenate, ParamSpec, TypeVar, cast, get_type_hints

import typer
from rich.console import Console
from rich.text import Text

from workers.ctl import complete
from workers.ctl.clients.choose import local_client, open_client
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import SettingsWrong
from workers.ctl.preferences import read_preferences

# Exit codes a pipeline reads: no regression, a regression, the data cannot tell, the lab failed, a wrong call.
EXIT_OK, EXIT_REGRESSION, EXIT_UNKNOWN, EXIT_LAB, EXIT_USAGE = 0, 1, 2, 3, 64

# The same as in lab/experiments/priority.py, whose import takes Django.
PRIORITIES = ("low", "normal", "high")


class Output(Console):
    """A console whose reader, such as head, may close the pipe: the command continues, and its exit code stays the verdict."""

    def on_broken_pipe(self) -> None:
        """Discard the rest. Rich would exit with 1, which means a regression here."""
        self.quiet = True
        _discard(self.file)


out = Output(highlight=False)
err = Output(stderr=True, highlight=False)

WHICH = "Which lab"
Local = Annotated[
    bool,
    typer.Option(
        "--local", help="this machine alone, without a server (or LABCTL_LOCAL=1)", rich_help_panel=WHICH
    ),
]
Server = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", help="the lab's address (or LABCTL_SERVER)", rich_help_panel=WHICH
    ),
]
ExperimentId = Annotated[
    int,
    typer.Argument(
        metavar="EXPERIMENT",
        help="the experiment's number, as `labctl list` shows it",
        autocompletion=complete.experiments,
    ),
]

TABLE, JSON = "table", "json"


def format_option(*forms: str) -> Any:
    """Return the option --format of a command that prints these forms; any other is refused, with the nearest."""

    def known(form: str) -> str:
        if form not in forms:
            from lab.validation_messages import nearest

            raise typer.BadParameter(f'there is no format "{form}"; {nearest(form, forms)}')
        return form

    words = f"{', '.join(forms[:-1])} or {forms[-1]}"
    return typer.Option(
        "--format",
        metavar="FORM",
        help=f"{words}; json is the REST API's document",
        callback=known,
        autocompletion=complete.one_of(*forms),
    )


Format = Annotated[str, format_option(TABLE, JSON)]

P = ParamSpec("P")
Options = TypeVar("Options")


def through_client(command: Callable[Concatenate[Client, P], None]) -> Callable[..., None]:
    """Give a command the options --local and --server; it gets the client they open as its first argument."""
    signature = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in (("is_local", False, Local), ("server", "", Server))
    ]

    @functools.wraps(command)
    def called(*args: Any, is_local: bool = False, server: str = "", **arguments: Any) -> None:
        with open_client(is_local=is_local, server=server, say=whisper) as client:
            command(client, *args, **arguments)

    own = list(signature.parameters.values())[1:]
    called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return called


def with_options(
    options: type[Options], **tables: Sequence[inspect.Parameter]
) -> Callable[[Callable[Concatenate[Client, Options, P], None]], Callable[Concatenate[Client, P], None]]:
    """Give a command one option for each field of a frozen dataclass; it gets the dataclass after the client.

    tables: further options, by the field of the dataclass that receives their values as a mapping.
    """
    hints = get_type_hints(options, include_extras=True)
    ours = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(options)  # type: ignore[arg-type]
        if field.default is not MISSING
    ]
    names = {our.name for our in ours}
    ours += [option for further in tables.values() for option in further]

    def wrap(
        command: Callable[Concatenate[Client, Options, P], None],
    ) -> Callable[Concatenate[Client, P], None]:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def called(client: Client, *args: Any, **arguments: Any) -> None:
            own = {name: arguments.pop(name) for name in names & arguments.keys()}
            for table, further in tables.items():
                own[table] = {option.name: arguments.pop(option.name, None) for option in further}
            chosen = options(**own)
            command(client, chosen, *args, **arguments)

        client, _, *own = signature.parameters.values()
        called.__signature__ = signature.replace(parameters=[client, *own, *ours])  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[Client, P], None]", called)

    return wrap


def on_this_machine(is_local: bool) -> None:
    """Make the lab of this machine ready, for a command that only works there. Raises SettingsWrong without --local."""
    if not (is_local or read_preferences().local):
        raise SettingsWrong("this works on this machine alone, not over a server: add --local")
    local_client()


def print_json(value: Any) -> None:
    """Print JSON as it is: not by rich, which would fold its lines. Numbers that JSON does not have become null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    write_out(json.dumps(finite, indent=2, ensure_ascii=False) + "\n")


def write_out(text: str) -> bool:
    """Write a text as it is, not by rich, which would fold its lines; False once the reader has closed the pipe."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        return False
    return True


def _discard(file: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def write_file(file: Path, data: bytes) -> None:
    """Write into a file, or to standard output for "-". Raises BadParameter."""
    if str(file) == "-":
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard(sys.stdout)
        return
    try:
        file.write_bytes(data)
    except OSError as exc:
        raise typer.BadParameter(f'cannot write "{file}": {exc.strerror}') from exc
    err.print(Text(f"{len(data):,} bytes in {file}"))


def whisper(line: str) -> None:
    """Print a side remark, dimmed, on standard error."""
    err.print(Text(f"  {line}", style="dim"), soft_wrap=True)
