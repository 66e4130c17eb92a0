# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples at the end of each command's `--help`, by the command's path."""

from collections.abc import Mapping
from typing import Any

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "submit": (
        "labctl submit fix.patch --tree debian-6.1 --workload showgids --wait",
        "git format-patch --stdout -3 | labctl submit - --tree debian-6.1 --workload showgids --preset small",
        "labctl submit experiment.toml --priority low",
        "labctl submit --branch work --base v6.1 --workload stat-walk --each --local",
    ),
    "preview": (
        "labctl preview experiment.toml",
        "labctl preview fix.patch --tree debian-6.1 --workload showgids --boots auto",
    ),
    "b4-check": ("labctl b4-check < patch.mbox --tree debian-6.1 --workload showgids --wait",),
    "watch": ("labctl watch 41", "labctl watch 41 --notify && git push"),
    "list": (
        "labctl list --state running",
        "labctl list --verdict regression --tree debian-6.1 -n 10 --format json",
    ),
    "show": ("labctl show 41", "labctl show 41 --format json | jq .state"),
    "compare": ("labctl compare 41", "labctl compare 41 --format markdown >> $GITHUB_STEP_SUMMARY"),
    "profile": ("labctl profile 41", "labctl profile 41 --symbols 'down_read up_read' --format json"),
    "reply": (
        "labctl reply 41 --for iattr-global > reply.txt",
        "labctl reply 41 --sign me",
    ),
    "export report": ("labctl export report 41 --format junit --out report.xml",),
    "export profile": ("labctl export profile 41 --format folded --variant base --out base.folded",),
    "log": ("labctl log --build 7 -f", "labctl log --run 1024"),
    "notes": ("labctl notes 41", "labctl notes 41 --add 'the host was busy on Monday'"),
    "rerun": ("labctl rerun 41 --wait",),
    "priority": ("labctl priority 41 high",),
    "keep": ("labctl keep 41",),
    "unkeep": ("labctl unkeep 41",),
    "cancel": ("labctl cancel 41",),
    "trees": ("labctl trees", "labctl trees --format json"),
    "targets": ("labctl targets",),
    "workloads": ("labctl workloads", "labctl workloads --format json | jq '.[].name'"),
    "patches": ("labctl patches",),
    "login": (
        "labctl login --server https://lab.example.org",
        "labctl login --server https://lab.example.org --with-token < token",
    ),
    "logout": ("labctl logout --server https://lab.example.org",),
    "whoami": ("labctl whoami",),
    "config": ("labctl config",),
    "run": ("labctl run 41 --local",),
    "trend": (
        "labctl trend --local",
        "labctl trend --local --tree debian-6.1 --revisions v6.1.100..v6.1.120 --case showgids:small",
    ),
    "bisect": (
        "labctl bisect --local --tree debian-6.1 --good v6.1.100 --bad v6.1.120 --workload showgids --metric ns_per_open",
    ),
    "work": ("labctl work --builds", "labctl work --target guest"),
    "serve": ("labctl serve --local --port 8000",),
    "target list": ("labctl target list",),
    "target show": ("labctl target show guest --format json",),
    "target add": ("labctl target add bench-1 target.toml --group bench",),
    "target set": ("labctl target set bench-1 target.toml",),
    "target remove": ("labctl target remove bench-1",),
    "target enable": ("labctl target enable bench-1",),
    "target disable": ("labctl target disable bench-1",),
    "target release": ("labctl target release bench-1",),
    "target check": ("labctl target check bench-1",),
    "target power": ("labctl target power bench-1 on",),
    "lab status": ("labctl lab status",),
    "lab backup": ("labctl lab backup lab.tar --files kept",),
    "lab expire": ("labctl lab expire --dry-run",),
    "lab restore": ("labctl lab restore lab.tar --replace",),
    "sign-in": ("labctl sign-in --local",),
}


def add_examples(command: Any, path: str) -> Any:
    """Put a command's examples at the end of its help, once; returns the command."""
    # Typer folds a paragraph into one line, so each example is one.
    examples = "\n\n".join(("Examples:", *(f"  {line}" for line in EXAMPLES.get(path, ()))))
    if path in EXAMPLES and examples not in (command.epilog or ""):
        command.epilog = f"{command.epilog}\n\n{examples}" if command.epilog else examples
    return command
