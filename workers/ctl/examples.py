# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples at the end of each command's `--help`: the lines of examples.txt that call the command."""

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

EXAMPLES = Path(__file__).with_name("examples.txt").read_text().splitlines()


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
