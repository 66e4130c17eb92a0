# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl`: the lab from a terminal, over REST; with --local everything happens in this one process.

A command's module is imported when the command is called: `--help`, completion and what goes over REST
need neither Django nor libvirt.
"""

import sys
from collections.abc import Callable

import typer
from rich.text import Text

from workers.ctl.lazy_commands import CommandPlace, LateGroup, announce
from workers.ctl.options import EXIT_LAB as EXIT_LAB
from workers.ctl.options import EXIT_OK as EXIT_OK
from workers.ctl.options import EXIT_USAGE as EXIT_USAGE
from workers.ctl.options import err

# One line a paragraph: the terminal folds them.
EPILOG = """
Which lab: --local or --server; else LABCTL_LOCAL=1 or LABCTL_SERVER; else `local` or `server` in \
~/.config/labctl/config.toml. Whose token: LABCTL_TOKEN, else what `labctl login` kept for that server.

Defaults of submit (tree, base, target, workload, preset, design, clock, boots, profile): an option, else the table \
`defaults` of .labctl.toml at the top of the current git tree, else that of config.toml. `labctl config` shows them.

Exit codes of submit --wait, watch and compare: 0 no regression, 1 a regression, 2 the data cannot tell, 3 the lab \
failed, 64 the input was wrong.
"""


COMMANDS: dict[str, dict[str, CommandPlace]] = {
    "Experiments": {
        "submit": CommandPlace("submitctl", "Submit an experiment: a file, a series, or a branch."),
        "preview": CommandPlace(
            "submitctl", "Show what an experiment would build, boot, take and be able to tell; queue nothing."
        ),
        "b4-check": CommandPlace(
            "b4ctl", "Check a patch or cover letter on standard input for b4 review; print what b4 reads."
        ),
        "watch": CommandPlace(
            "watchctl", "Follow an experiment to its end, print its comparison, and exit with the verdict."
        ),
        "list": CommandPlace("watchctl", "List experiments, newest first."),
        "show": CommandPlace("watchctl", "Show how an experiment stands, or how it ended."),
        "compare": CommandPlace("reportctl", "Print the comparison; the exit code is the verdict."),
        "profile": CommandPlace(
            "profilectl",
            "Print who calls the symbols a workload watches, and what certainly moved, all variants side by side.",
        ),
        "reply": CommandPlace(
            "reportctl",
            "Print a reply to the list: the conclusion, the tables, method and environment.",
        ),
        "export": CommandPlace("reportctl", "Write results to a file."),
        "log": CommandPlace("watchctl", "Print a build's log or a run's console."),
        "notes": CommandPlace("watchctl", "Show what people wrote about an experiment, or write to it."),
        "rerun": CommandPlace("submitctl", "Submit an experiment's description once more."),
        "priority": CommandPlace(
            "submitctl", "Say how urgent an experiment is while it is open; the higher goes first."
        ),
        "keep": CommandPlace(
            "submitctl",
            "Keep an experiment's logs, profiles and kernels, whatever the retention policy says.",
        ),
        "unkeep": CommandPlace(
            "submitctl",
            "Leave an experiment's logs, profiles and kernels to the retention policy again; numbers and verdicts stay.",
        ),
        "cancel": CommandPlace(
            "submitctl", "Cancel what is still open of an experiment; what is measured stays."
        ),
    },
    "What a description may name": {
        "trees": CommandPlace("namesctl", "List the trees kernels can be built from."),
        "targets": CommandPlace("namesctl", "List the machines kernels can boot on."),
        "workloads": CommandPlace("namesctl", "List what can be run, with its presets."),
        "patches": CommandPlace(
            "namesctl", "List the switches of the catalogue, which a description names with `catalog = `."
        ),
    },
    "A server": {
        "login": CommandPlace(
            "loginctl", "Get a token from a server and keep it, in a file that only you can read."
        ),
        "logout": CommandPlace(
            "loginctl",
            "Forget the token kept for a server, and end it there.",
        ),
        "whoami": CommandPlace("loginctl", "Show whom the server takes you for, and what you may do."),
        "config": CommandPlace(
            "loginctl", "Show the server and the defaults in force, and which file or variable says so."
        ),
    },
    "This machine": {
        "run": CommandPlace(
            "submitctl", "Build, boot and compare what is still open of an experiment, on this machine."
        ),
        "trend": CommandPlace("trendctl", "List the trends, show one, or measure revisions for them."),
        "bisect": CommandPlace(
            "trendctl",
            "Find the commit that changed a metric; the same command after a crash goes on where it stopped.",
        ),
        "work": CommandPlace(
            "workctl",
            "Build and boot whatever is queued, until Ctrl-C or SIGTERM; both give back what is being worked on.",
        ),
        "serve": CommandPlace(
            "servectl", "Serve the pages on this machine, with a worker beside them, until interrupted."
        ),
        "target": CommandPlace("targetctl", "Add, change, list and power target machines."),
        "lab": CommandPlace(
            "labgroup",
            "Maintain a lab on its own machine. Settings come from the environment.",
        ),
        "sign-in": CommandPlace("servectl", "Print a link that signs you in, in a browser on this machine."),
    },
}


class Commands(LateGroup):
    """All of labctl's."""

    places = {name: place for places in COMMANDS.values() for name, place in places.items()}  # noqa: RUF012


cli = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Measure what kernel patches do to performance, on real kernels.",
    epilog=EPILOG,
)
for _panel, _places in COMMANDS.items():
    announce(cli, _places, _panel)


def main() -> None:
    """Run the command line; an expected error is one line, its detail below."""
    try:
        # Not standalone: typer would exit with 2 for a wrong call, which means "cannot tell" here.
        sys.exit(cli(standalone_mode=False) or EXIT_OK)
    except (KeyboardInterrupt, typer.Abort):
        err.print("\nstopped; the same command goes on from here")
        sys.exit(EXIT_LAB)
    except BrokenPipeError:
        # Whoever read us has enough, such as head. Python would complain once more at exit.
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
