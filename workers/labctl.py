# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl`: the lab from a terminal, over REST; with --local everything happens in this one process.

A command's module is imported when the command is called: `--help`, completion and what goes over REST
need neither Django nor libvirt.
"""

import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.text import Text

from workers.ctl.lazy_commands import LateGroup, late_group
from workers.ctl.options import EXIT_LAB as EXIT_LAB
from workers.ctl.options import EXIT_OK as EXIT_OK
from workers.ctl.options import EXIT_USAGE as EXIT_USAGE
from workers.ctl.options import err

# One line a paragraph: the terminal folds them.
EPILOG = """
The lab: --local or --server; else LABCTL_LOCAL=1 or LABCTL_SERVER; else `local` or `server` in \
~/.config/labctl/config.toml. The token: LABCTL_TOKEN, else the token that `labctl login` stored for that server.

Defaults of submit (tree, base, target, workload, preset, design, clock, boots, profile): an option, else the table \
`defaults` of .labctl.toml at the top of the current git tree, else that of config.toml. `labctl config` shows them.

Exit codes of submit --wait, watch and compare: 0 no regression, 1 a regression, 2 inconclusive, 3 the lab \
failed, 64 the input was wrong.
"""


class Exports(LateGroup):
    """`export 17 --format x` is short for `export report 17 --format x`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command to run for these arguments."""
        return super().resolve_command(ctx, ["report", *args] if args and args[0].isdigit() else args)


EXPORT = late_group(
    {None: {"report": "reportctl:export_report", "profile": "profilectl:export_profile"}},
    Exports,
    help="Write results to a file.",
)
TARGET = late_group(
    {
        None: {
            "list": "targetctl:list_targets",
            "show": "targetctl",
            "add": "targetctl",
            "set": "targetctl:change",
            "remove": "targetctl",
            "enable": "targetctl",
            "disable": "targetctl",
            "release": "targetctl",
            "check": "targetctl",
            "power": "targetctl",
        }
    },
    help="Add, change, list and power target machines.\n\n"
    "On the lab's own machine: its settings are read from the environment.",
)
LAB = late_group(
    {
        None: {
            "status": "statusctl:show",
            "backup": "backupctl",
            "expire": "expirectl:show_or_expire",
            "restore": "backupctl",
        }
    },
    help="Maintain a lab on its own machine. Settings come from the environment.",
)
cli = late_group(
    {
        "Experiments": {
            "submit": "submitctl",
            "preview": "submitctl",
            "b4-check": "b4ctl",
            "watch": "watchctl",
            "list": "watchctl:list_experiments",
            "show": "watchctl",
            "compare": "reportctl",
            "profile": "profilectl",
            "reply": "reportctl",
            "export": EXPORT,
            "log": "watchctl",
            "notes": "watchctl",
            "rerun": "submitctl",
            "priority": "submitctl",
            "keep": "submitctl",
            "unkeep": "submitctl",
            "cancel": "submitctl",
        },
        "Names for descriptions": dict.fromkeys(("trees", "targets", "workloads", "patches"), "namesctl"),
        "A server": dict.fromkeys(("login", "logout", "whoami", "config"), "loginctl"),
        "This machine": {
            "run": "submitctl",
            "trend": "trendctl",
            "bisect": "trendctl",
            "work": "workctl:work_until_stopped",
            "serve": "servectl:serve_pages",
            "target": TARGET,
            "lab": LAB,
            "sign-in": "servectl",
        },
    },
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Measure what kernel patches do to performance, on real kernels.",
    epilog=EPILOG,
)


def main() -> None:
    """Run the command line; an expected error is one line, its detail below."""
    try:
        # Not standalone: typer would exit with 2 for a wrong call, which means "cannot tell" here.
        sys.exit(cli(standalone_mode=False) or EXIT_OK)
    except (KeyboardInterrupt, typer.Abort):
        err.print("\nstopped; the same command continues from here")
        sys.exit(EXIT_LAB)
    except BrokenPipeError:
        # The reader of the output, such as head, has closed the pipe. Python would complain again at exit.
        sys.stdout = None
        sys.exit(EXIT_OK)
    except Exception as exc:
        sys.exit(_explain(exc))


def _explain(exc: Exception) -> int:
    """Print an error somebody expected; returns the exit code. Raises any other again."""
    # Typer keeps its click to itself: what a wrong call raises is known by how it formats itself.
    format_message: Callable[[], str] | None = getattr(exc, "format_message", None)
    blame = getattr(exc, "blame", None)
    if (away := _database_away(exc)) and format_message is None:
        err.print(Text(f"labctl: {away}", style="red"), soft_wrap=True)
        return EXIT_LAB
    if format_message is None and blame is None:
        raise exc
    lines: Callable[[], list[str]] | None = getattr(exc, "lines", None)
    said = format_message().removeprefix("Invalid value: ") if format_message else str(exc)
    for line in lines() if lines else [said]:
        err.print(Text(f"labctl: {line}", style="red"), soft_wrap=True)
    if detail := getattr(exc, "detail", ""):
        err.print(Text(detail, style="dim"))
    return EXIT_LAB if blame in {"lab", "kernel"} else EXIT_USAGE


def _database_away(exc: Exception) -> str:
    """A line for a database that does not answer; "" for any other error. Django is not imported for this."""
    kind = type(exc)
    if (kind.__module__, kind.__name__) != ("django.db.utils", "OperationalError"):
        return ""
    reason = (str(exc).strip().splitlines() or ["it says nothing"])[0]
    return f"the lab's database does not answer ({reason[:300]}); where it is this machine's service: make status, make up"


if __name__ == "__main__":
    main()
