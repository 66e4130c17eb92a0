# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab status`: the lab on one screen."""

from __future__ import annotations

import shutil
from importlib.metadata import version

import typer
from django.conf import settings
from rich.table import Table
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.lab_faults import corrupt_artifacts_ever, lab_faults, late_answers
from lab.operations.last_hour import deliveries_waiting, experiments_by_state
from lab.operations.readiness import checked_now
from lab.profiles.exports.data import as_data
from lab.runs.open_claims import open_claims
from lab.runs.queue_list import queue_lines
from lab.runs.workers import WorkerLine, worker_lines
from lab.targets.health_overview import TargetHealth, target_healths
from workers.ctl.clients.base import Json
from workers.ctl.clients.local import api_here
from workers.ctl.options import EXIT_LAB, EXIT_OK, JSON, TABLE, Format, out, print_json
from workers.ctl.plaintext import plain_line

_GIB = 1 << 30


def register(cli: typer.Typer) -> None:
    """Add the command to the group."""
    cli.command("status")(show)


def show(form: Format = TABLE) -> None:
    """Show on one screen what waits, who works, what boots where and what lacks; exits with 3 where the lab cannot work."""
    checks = checked_now()
    if form == JSON:
        ready = all(check.ok for check in checks)
        print_json({"checks": as_data(checks)} | (_document() if ready else {}))
        raise typer.Exit(EXIT_OK if ready else EXIT_LAB)
    out.print(Text(f"kperflab {version('kperflab')} in {settings.HOME}"), soft_wrap=True)
    for check in checks:
        out.print(
            Text(f"  {'ok ' if check.ok else 'NOT'}  {check.name}: {plain_line(check.said)}"), soft_wrap=True
        )
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_LAB)
    experiments = ", ".join(f"{number} {state}" for state, number in experiments_by_state().items() if number)
    room = shutil.disk_usage(settings.HOME)
    out.print(f"experiments: {experiments or 'none'}; events to tell: {deliveries_waiting()}")
    out.print(f"disk: {room.free / _GIB:.1f} of {room.total / _GIB:.1f} GiB free")
    seen = worker_lines()
    for table in (_queues(seen), _targets(), _claims(), _workers(seen)):
        if table.row_count:
            out.print(table)
    faults, late = lab_faults(), late_answers()
    out.print(
        f"faults of the lab in a week: {len(faults)}{'+' if len(faults) >= 20 else ''}; late answers: {len(late)};"
        f" corrupt artifacts: {corrupt_artifacts_ever()}"
    )
    for fault in faults[:3]:
        out.print(
            Text(
                f"  {fault.kind} {fault.id} on {plain_line(fault.place)}: {plain_line(fault.problem)[:200]}"
            ),
            soft_wrap=True,
        )


def _document() -> Json:
    """Return the status as JSON; its lists are the API's."""
    api, room = api_here(), shutil.disk_usage(settings.HOME)
    lists = ("queues", "targets", "claims", "workers", "late-answers")
    return {
        "experiments": experiments_by_state(),
        "deliveries_waiting": deliveries_waiting(),
        "disk": {"free_bytes": room.free, "total_bytes": room.total},
        **{name.replace("-", "_"): api.rows(f"{name}/") for name in lists},
        "faults": as_data(lab_faults()),
        "corrupt_artifacts": corrupt_artifacts_ever(),
    }


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _add(table: Table, *cells: str) -> None:
    """A row of what is text, whatever it looks like."""
    table.add_row(*map(Text, cells))


def _queues(seen: tuple[WorkerLine, ...]) -> Table:
    table = _table("Queues", "queue", "waiting", "running", "oldest", "workers")
    for queue_line in queue_lines(seen):
        takers = str(len(queue_line.workers)) + (
            f" (+{len(queue_line.paused)} idle)" if queue_line.paused else ""
        )
        oldest = f"{queue_line.oldest_s:.0f} s" if queue_line.oldest_s else ""
        _add(
            table,
            plain_line(queue_line.name),
            str(queue_line.waiting),
            str(queue_line.running),
            oldest,
            "NOBODY" if queue_line.forsaken else takers,
        )
    return table


def _targets() -> Table:
    table = _table("Targets", "target", "state", "boots in a day", "waiting", "why")
    for target_health in target_healths():
        _add(
            table,
            plain_line(target_health.name),
            _state(target_health),
            str(target_health.finished),
            str(target_health.waiting),
            plain_line("; ".join(target_health.complaints)),
        )
    return table


def _state(one: TargetHealth) -> str:
    if one.quarantined_at:
        return "quarantine"
    if not one.enabled:
        return "disabled"
    if one.complaints:
        return "ill"
    return "busy" if one.running else "well"


def _claims() -> Table:
    table = _table("Claims", "work", "worker", "lease")
    for open_claim in open_claims():
        lease = f"ran out {-open_claim.left_s:.0f} s ago" if open_claim.over else f"{open_claim.left_s:.0f} s"
        _add(table, f"{open_claim.kind} {open_claim.id}", plain_line(open_claim.claimed_by), lease)
    return table


def _workers(seen: tuple[WorkerLine, ...]) -> Table:
    table = _table("Workers", "worker", "state", "heard of", "queues")
    for one in seen:
        _add(
            table,
            plain_line(one.name),
            plain_line(_said(one)),
            f"{one.silent_s:.0f} s ago",
            plain_line(", ".join(one.queues)),
        )
    return table


def _said(one: WorkerLine) -> str:
    if one.gone:
        return "gone"
    return f"idle: {one.idle_reason}" if one.idle_reason else "takes work"
