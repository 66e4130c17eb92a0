# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands whose modules are imported when they are called; until then their names and one line each."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

from workers.ctl.examples import add_examples


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """The place of a command: a module of workers, and its function that adds it. told: the first line of its help."""

    module: str
    told: str
    register: str = "register"


class LateGroup(TyperGroup):
    """A group whose `places` are loaded when called; `--help` shows what they say here."""

    places: ClassVar[Mapping[str, CommandPlace]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command itself in place of its line; a wrong name is refused with the nearest ones."""
        name, known, rest = super().resolve_command(ctx, args)
        command = load(self.places[name], name) if name and name in self.places else known
        return name, add_examples(command, f"{_path(ctx)}{name}"), rest


def _path(context: Any) -> str:
    """Return the names of the groups around a command, without the program's own."""
    return f"{_path(context.parent)}{context.info_name} " if context.parent else ""


def load(place: CommandPlace, name: str) -> Any:
    """Import a command's module and return the command."""
    alone = typer.Typer()
    # Makes a group of it, however few commands the module has.
    alone.callback()(lambda: None)
    getattr(import_module(f"workers.ctl.{place.module}"), place.register)(alone)
    return get_group(alone).commands[name]


def announce(group: typer.Typer, places: Mapping[str, CommandPlace], panel: str | None = None) -> None:
    """List commands that a LateGroup will load."""
    for name, place in places.items():
        group.command(name, help=place.told, rich_help_panel=panel)(_not_loaded)


def _not_loaded() -> None:
    raise AssertionError("a command was called without its module")
