# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl`: the lab from a terminal, over REST; with --local everything happens in this one process.

A command's module is imported when the command is called: `--help`, completion and what goes over REST
need neither Django nor libvirt.
"""

from functools import partial
from typing import Any

from workers.ctl.lazy_commands import LateGroup, late_group
from workers.ctl.options import EXIT_LAB as EXIT_LAB
from workers.ctl.options import EXIT_OK as EXIT_OK
from workers.ctl.options import EXIT_USAGE as EXIT_USAGE
from workers.ctl.program import run_program

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
            "withdraw-trust": "trustctl",
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


main = partial(run_program, cli, "labctl")


if __name__ == "__main__":
    main()
