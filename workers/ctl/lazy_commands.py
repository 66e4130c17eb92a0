# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands whose modules are imported when they are called; before, only their names and the first line of their docstrings are read."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

# "module:function" below workers.ctl, or the module alone where the function has the command's name; or a group.
Place = str | typer.Typer
# The ends of commands' help: the lines that call them.
EXAMPLES = Path(__file__).with_name("examples.txt").read_text().splitlines()


class LateGroup(TyperGroup):
    """A group whose `places` are imported when they are called."""

    places: ClassVar[Mapping[str, Place]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table; typer would list groups last."""
        return list(self.places)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command in place of its help line; a wrong name is refused with the nearest ones."""
        name, known, rest = super().resolve_command(ctx, args)
        place = self.places.get(name or "")
        command = load(place, name) if name and isinstance(place, str) else known
        return name, add_examples(command, f"{_path(ctx)}{name}"), rest


def late_group(
    panels: Mapping[str | None, Mapping[str, Place]], cls: type[LateGroup] = LateGroup, **settings: Any
) -> typer.Typer:
    """Return a group of commands, by the panel of its help that lists them. settings: typer's own."""
    places = {name: place for named in panels.values() for name, place in named.items()}
    group = typer.Typer(cls=type(cls.__name__, (cls,), {"places": places}), no_args_is_help=True, **settings)
    for panel, named in panels.items():
        for name, place in named.items():
            if isinstance(place, str):
                group.command(name, help=summary(place, name), rich_help_panel=panel)(_not_loaded)
            else:
                group.add_typer(place, name=name, rich_help_panel=panel)
    return group


def summary(place: str, name: str) -> str:
    """Return the first line of a command's docstring, from the text of its module."""
    module, function = _function(place, name)
    source = Path(__file__).with_name(f"{module}.py").read_text()
    match = re.search(rf'^def {function}\(.*?"""(.*?)(?:\n|""")', source, re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def load(place: str, name: str) -> Any:
    """Import a command's module and return the command."""
    module, function = _function(place, name)
    alone = typer.Typer()
    # A callback makes it a group, although it has one command.
    alone.callback()(lambda: None)
    alone.command(name)(getattr(import_module(f"workers.ctl.{module}"), function))
    return get_group(alone).commands[name]


def examples_of(path: str) -> list[str]:
    """Return the examples of a command by its path, such as "target list"."""
    return [line for line in EXAMPLES if f"labctl {path} " in f"{line} "]


def add_examples(command: Any, path: str) -> Any:
    """Put a command's examples at the end of its help, once; returns the command."""
    lines = [] if isinstance(command, TyperGroup) else examples_of(path)
    # Typer folds a paragraph into one line, so each example is one.
    examples = "\n\n".join(("Examples:", *(f"  {line}" for line in lines)))
    if lines and examples not in (command.epilog or ""):
        command.epilog = f"{command.epilog}\n\n{examples}" if command.epilog else examples
    return command


def _function(place: str, name: str) -> tuple[str, str]:
    module, _, function = place.partition(":")
    return module, function or name.replace("-", "_")


def _path(context: Any) -> str:
    """Return the names of the groups around a command, without the program's own."""
    return f"{_path(context.parent)}{context.info_name} " if context.parent else ""


def _not_loaded() -> None:
    raise AssertionError("a command was called without its module")
