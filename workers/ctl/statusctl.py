# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab status`: the lab on one screen."""

import shutil
from importlib.metadata import version

import typer
from django.conf import settings
from rich.table import Table
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.fleet_state import FleetState, fleet_state
from lab.operations.lab_faults import corrupt_artifacts_ever, lab_faults, late_answers
from lab.operations.last_hour import deliveries_waiting, experiments_by_state
from lab.operations.readiness import checked_now
from lab.profiles.exports.data import as_data
from lab.runs.open_claims import open_claims
from lab.runs.queue_list import queue_lines
from lab.runs.workers import ReportedWorker, reported_workers
from workers.ctl.clients.base import Json
from workers.ctl.clients.local import api_here
from workers.ctl.options import EXIT_LAB, EXIT_OK, JSON, TABLE, Format, out, print_json
from workers.ctl.plaintext import plain_line

_GIB = 1 << 30
# Of each list on a screen, what needs a person first; JSON has all.
_ROWS = 50


def show(form: Format = TABLE) -> None:
    """Show queues, workers, boots and problems on one screen; exits with 3 if the lab cannot work."""
    checks = checked_now()
    if form == JSON:
        ready = all(check.ok for check in checks)
        print_json({"checks": as_data(checks)} | (_document() if ready else {}))
        raise typer.Exit(EXIT_OK if ready else EXIT_LAB)
    out.print(Text(f"kperflab {version('kperflab')} in {settings.HOME}"), soft_wrap=True)
    for check in checks:
        out.print(
            Text(f"  {'ok ' if check.ok else 'NOT'}  {check.name}: {plain_line(check.message)}"),
            soft_wrap=True,
        )
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_LAB)
    experiments = ", ".join(f"{number} {state}" for state, number in experiments_by_state().items() if number)
    room = shutil.disk_usage(settings.HOME)
    out.print(f"experiments: {experiments or 'none'}; events to deliver: {deliveries_waiting()}")
    out.print(f"disk: {room.free / _GIB:.1f} of {room.total / _GIB:.1f} GiB free")
    seen = reported_workers()
    fleet = fleet_state(seen)
    told = ", ".join(f"{number} {state}" for state, number in fleet.states.items())
    out.print(f"targets: {len(fleet.targets)}{f': {told}' if told else ''}")
    for table in (_groups(fleet), _queues(seen), _targets(fleet), _claims(), _workers(seen)):
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
        "fleet": api.document("fleet/"),
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


def _queues(seen: tuple[ReportedWorker, ...]) -> Table:
    table = _table("Queues", "queue", "waiting", "running", "oldest", "workers")
    ordered = sorted(
        queue_lines(seen), key=lambda one: (not one.forsaken, one.name.startswith("target."), one.name)
    )
    for queue_line in ordered[:_ROWS]:
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


def _groups(fleet: FleetState) -> Table:
    """Return a row a group, where there is more than one."""
    table = _table("Groups", "group", "targets", "states", "waiting", "boots in 24 h")
    for one in fleet.groups if len(fleet.groups) > 1 else ():
        states = ", ".join(f"{number} {state}" for state, number in one.states.items())
        name = plain_line(one.group) or "(none)"
        _add(table, name, str(one.targets), states, str(one.waiting), str(one.finished))
    return table


def _targets(fleet: FleetState) -> Table:
    """Return what needs a person first, so many that a screen holds them."""
    title = "Targets" if len(fleet.targets) <= _ROWS else f"Targets, {_ROWS} of {len(fleet.targets)}"
    table = _table(title, "target", "state", "boots in 24 h", "waiting", "why")
    for row in fleet.targets[:_ROWS]:
        _add(
            table,
            plain_line(row.health.row.name),
            row.state,
            str(row.health.finished),
            str(row.health.waiting),
            plain_line("; ".join(row.health.complaints)),
        )
    return table


def _claims() -> Table:
    table = _table("Claims", "work", "worker", "lease")
    for open_claim in sorted(open_claims(), key=lambda one: one.left_s)[:_ROWS]:
        lease = f"expired {-open_claim.left_s:.0f} s ago" if open_claim.over else f"{open_claim.left_s:.0f} s"
        _add(table, f"{open_claim.kind} {open_claim.id}", plain_line(open_claim.claimed_by), lease)
    return table


def _workers(seen: tuple[ReportedWorker, ...]) -> Table:
    table = _table("Workers", "worker", "state", "last report", "queues")
    for one in sorted(seen, key=lambda one: (not one.gone, not one.idle_reason, one.name))[:_ROWS]:
        _add(
            table,
            plain_line(one.name),
            plain_line(_worker_state(one)),
            f"{one.silent_s:.0f} s ago",
            plain_line(", ".join(one.queues)),
        )
    return table


def _worker_state(one: ReportedWorker) -> str:
    if one.gone:
        return "gone"
    return f"idle: {one.idle_reason}" if one.idle_reason else "takes work"
