# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab backup` and `labctl lab restore`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.backup.make import Files, back_up
from lab.operations.backup.restore import restore as restore_lab
from workers.ctl.options import out, whisper

CHOICES: tuple[Files, ...] = ("none", "kept", "all")

Given = Annotated[Path, typer.Argument(metavar="FILE", help="the backup")]
Which = Annotated[
    str, typer.Option(help="run files and artifacts to include: none, kept (of kept experiments), or all")
]


def backup(file: Given, files: Which = "none") -> None:
    """Write a backup of tables, key and files while the lab keeps running.

    It contains the secret key and people's credentials: store it where only operators can read it.
    """
    chosen = next((choice for choice in CHOICES if choice == files), None)
    if chosen is None:
        raise typer.BadParameter(f"--files {files}: choose {', '.join(CHOICES)}")
    made = back_up(file, files=chosen, say=whisper)
    out.print(Text(f"{file}: {made.rows:,} rows, {made.files:,} files, {made.size:,} bytes"), soft_wrap=True)


def restore(
    file: Given,
    replace: Annotated[
        bool, typer.Option("--replace", help="overwrite the lab that is on this machine")
    ] = False,
) -> None:
    """Replace this machine's lab with a backup; stop the lab first.

    The whole backup is checked first and put in place as the last step: a failure changes nothing, and if that
    step is interrupted, the same command completes it.
    """
    restored = restore_lab(file, replace=replace, say=whisper)
    newer = f", then {restored.migrated} migrations" if restored.migrated else ""
    out.print(
        Text(
            f"restored the lab of {restored.made_at}: {restored.rows:,} rows, {restored.files:,} files{newer}"
        ),
        soft_wrap=True,
    )
