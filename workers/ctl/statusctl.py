# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab status`: the lab on one screen."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
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
from lab.runs.open_claims import ClaimLine, open_claims
from lab.runs.queue_list import QueueLine, queue_lines
from lab.runs.workers import ReportedWorker, reported_workers
from lab.targets.fleet import read_fleet
from workers.ctl.clients.base import Json
from workers.ctl.clients.local import api_here
from workers.ctl.options import EXIT_LAB, EXIT_OK, JSON, TABLE, Format, out, print_json
from workers.ctl.plaintext import plain_line

_GIB = 1 << 30
# Rows of each list on a screen, those that need a person first; JSON has all.
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
    seen, fleet = reported_workers(), read_fleet()
    state = fleet_state(seen, fleet)
    states = _counts(state.states)
    out.print(f"targets: {len(state.targets)}{f': {states}' if states else ''}")
    for title, heads, rows in _lists(state, queue_lines(seen, fleet), seen):
        if rows:
            _print_list(title, heads, rows)
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


def _print_list(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print as many rows as a screen holds, each cell as text, whatever it looks like."""
    whole = title if len(rows) <= _ROWS else f"{title}, {_ROWS} of {len(rows)}"
    table = Table(*heads, title=whole, title_justify="left", box=None, pad_edge=False)
    for row in rows[:_ROWS]:
        table.add_row(*(Text(plain_line(cell)) for cell in row))
    out.print(table)


def _lists(
    state: FleetState, queues: Sequence[QueueLine], seen: Sequence[ReportedWorker]
) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[object]]]]:
    """Yield title, heads and rows of each list; in each, what needs a person comes first."""
    groups = [
        (group.group or "(none)", group.targets, _counts(group.states), group.waiting, group.finished)
        for group in state.groups
    ]
    yield "Groups", ("group", "targets", "states", "waiting", "boots in 24 h"), groups if groups[1:] else ()
    queues = sorted(
        queues,
        key=lambda queue: (not queue.forsaken, queue.name.startswith("target."), queue.name),
    )
    yield (
        "Queues",
        ("queue", "waiting", "running", "oldest", "workers"),
        [(queue.name, queue.waiting, queue.running, _oldest(queue), _takers(queue)) for queue in queues],
    )
    yield (
        "Targets",
        ("target", "state", "boots in 24 h", "waiting", "why"),
        [
            (health.row.name, target.state, health.finished, health.waiting, "; ".join(health.complaints))
            for target in state.targets
            for health in [target.health]
        ],
    )
    claims = sorted(open_claims(), key=lambda claim: claim.left_s)
    yield (
        "Claims",
        ("work", "worker", "lease"),
        [(f"{claim.kind} {claim.id}", claim.claimed_by, _lease(claim)) for claim in claims],
    )
    workers = sorted(seen, key=lambda worker: (not worker.gone, not worker.idle_reason, worker.name))
    yield (
        "Workers",
        ("worker", "state", "last report", "queues"),
        [
            (worker.name, _worker_state(worker), f"{worker.silent_s:.0f} s ago", ", ".join(worker.queues))
            for worker in workers
        ],
    )


def _counts(states: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in states.items())


def _oldest(queue: QueueLine) -> str:
    return f"{queue.oldest_s:.0f} s" if queue.oldest_s else ""


def _takers(queue: QueueLine) -> str:
    idle = f" (+{len(queue.paused)} idle)" if queue.paused else ""
    return "NOBODY" if queue.forsaken else f"{len(queue.workers)}{idle}"


def _lease(claim: ClaimLine) -> str:
    return f"expired {-claim.left_s:.0f} s ago" if claim.over else f"{claim.left_s:.0f} s"


def _worker_state(worker: ReportedWorker) -> str:
    if worker.gone:
        return "gone"
    return f"idle: {worker.idle_reason}" if worker.idle_reason else "takes work"
