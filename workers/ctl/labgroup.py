# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab …`: what operators do on the lab's own machine."""

import typer

from workers.ctl.lazy_commands import CommandPlace, LateGroup, announce


class LabCommands(LateGroup):
    """All of `labctl lab`."""

    places = {  # noqa: RUF012
        "status": CommandPlace(
            "statusctl", "Show on one screen what waits, who works, what boots where and what lacks."
        ),
        "backup": CommandPlace(
            "backupctl", "Write a backup of tables, key and files, while the lab goes on working."
        ),
        "expire": CommandPlace(
            "expirectl", "Remove what the retention policy lets go; --dry-run shows it first."
        ),
        "restore": CommandPlace(
            "backupctl", "Make this machine's lab what a backup is of; the lab is stopped meanwhile."
        ),
    }


def register(cli: typer.Typer) -> None:
    """Add the group to labctl."""
    group = typer.Typer(
        cls=LabCommands,
        no_args_is_help=True,
        help="Maintain a lab on its own machine. Settings come from the environment.",
    )
    announce(group, LabCommands.places)
    cli.add_typer(group, name="lab")
