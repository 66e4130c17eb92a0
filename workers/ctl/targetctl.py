# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl target …`: add, change, show and switch machines, on the lab's own machine."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.errors import FieldRefused
from lab.models import Target
from lab.targets.access_schema import read_access
from lab.targets.changes import (
    CHANGEABLE,
    TargetFields,
    add_target,
    change_target,
    named_target,
    remove_target,
    set_target_enabled,
)
from lab.targets.drivers import MACHINES
from lab.targets.health_checks import known_kernel
from lab.targets.quarantine import release_target
from lab.validation_messages import nearest
from workers.ctl.clients.local import api_here
from workers.ctl.options import EXIT_LAB, JSON, TABLE, Format, err, out, print_json, whisper
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import plain_rows
from workers.health import check_target
from workers.power.apart import power_of

SWITCHES = ("status", "on", "off", "network")

Name = Annotated[str, typer.Argument(metavar="TARGET", help="its name")]
File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="a TOML file: driver, group, vcpus, memory_mib, remark, access, tuning"
    ),
]
Tune = Annotated[
    list[str],
    typer.Option("--tune", metavar="KEY=VALUE", help="KEY=VALUE, a tuning setting; KEY= removes it"),
]
Group = Annotated[str | None, typer.Option(help="group of equal targets; - for none")]


def list_targets(form: Format = TABLE) -> None:
    """List the machines and their health."""
    if form == JSON:
        print_json(api_here().rows("targets/"))
        return
    rows = [_as_shown(row) for row in Target.objects.order_by("name")]
    table = plain_rows("target", "driver", "group", "vCPUs", "MiB", "state")
    for row in rows:
        cells = (row["name"], row["driver"], row["group"], row["vcpus"], row["memory_mib"], row["state"])
        table.add_row(*(Text(plain_line(cell)) for cell in cells))
    out.print(table)


def show(name: Name, form: Format = TABLE) -> None:
    """Show one machine: its access, tuning and health."""
    row = named_target(name)
    if form == JSON:
        print_json(api_here().document(f"targets/{row.pk}/"))
        return
    for key, value in _as_shown(row, whole=True).items():
        text = json.dumps(value, indent=2) if isinstance(value, dict) else plain_line(value)
        if text not in {"", "{}"}:
            out.print(Text(f"{key}: {text}"), soft_wrap=True)


def add(name: Name, file: File = None, group: Group = None, tune: Tune = []) -> None:  # noqa: B006
    """Add a machine."""
    chosen = _settings(file, group, {}, tune)
    if chosen.get("name", name) != name:
        raise FieldRefused(
            "name",
            f'{file}: name is "{chosen["name"]:.70}", the command adds "{name}"; take it out of the file',
        )
    row = add_target(by=None, wanted=TargetFields(**{"name": name} | chosen))
    test = f"power {row.name} status" if row.driver in MACHINES else f"check {row.name}"
    out.print(Text(f"{row.name} was added; test it with: labctl target {test}"))


def change(name: Name, file: File = None, group: Group = None, tune: Tune = []) -> None:  # noqa: B006
    """Change a machine; access and tuning of the file replace the existing ones."""
    row = named_target(name)
    chosen = _settings(file, group, row.tuning, tune)
    if not chosen:
        raise typer.BadParameter("nothing to change: give a FILE, --group or --tune")
    changed = change_target(by=None, target_id=row.pk, changes=chosen)
    out.print(
        Text(f"{changed.name}: {', '.join(sorted(chosen))} changed; the next boot uses the new settings")
    )


def remove(name: Name) -> None:
    """Remove a machine on which nothing was ever booted."""
    out.print(Text(f"{remove_target(by=None, target_id=named_target(name).pk)} is forgotten"))


def enable(name: Name) -> None:
    """Enable a machine."""
    out.print(
        Text(f"{set_target_enabled(by=None, target_id=named_target(name).pk, enabled=True).name} boots")
    )


def disable(name: Name) -> None:
    """Disable a machine; its current boot finishes."""
    row = set_target_enabled(by=None, target_id=named_target(name).pk, enabled=False)
    out.print(Text(f"{row.name} is disabled: its current boot finishes, no new boot starts"))


def release(name: Name) -> None:
    """End a machine's quarantine."""
    row = named_target(name)
    if row.quarantined_at is None:
        whisper(f"{row.name} is not in quarantine")
        return
    release_target(target_id=row.pk, by=None)
    out.print(Text(f"{row.name} boots again; it was in quarantine for: {plain_line(row.quarantine_reason)}"))


def check(name: Name) -> None:
    """Check a machine's health now: a known-good kernel, a calibration workload."""
    row = named_target(name)
    known_kernel(row)
    health = check_target(name, force=True)
    if health is None:
        raise typer.BadParameter(f"{name} is booting now: try again when the boot has finished")
    if not health.ok:
        err.print(Text(f"{name} is not well: {plain_line(health.problem)}", style="red"), soft_wrap=True)
        raise typer.Exit(EXIT_LAB)
    out.print(Text(f"{name} is well: {health.metric} {health.value:g} {health.environment.get('unit', '')}"))


def power(
    name: Name,
    switch: Annotated[str, typer.Argument(metavar="|".join(SWITCHES), help="power command")] = "status",
) -> None:
    """Query or switch a machine's power: status, on, off, network (boot from it once)."""
    row = named_target(name)
    if switch not in SWITCHES:
        raise typer.BadParameter(f'"{switch}" is not valid; {nearest(switch, SWITCHES)}')
    if row.driver not in MACHINES:
        raise typer.BadParameter(
            f"{row.name} is a {row.driver} target: only {' and '.join(MACHINES)} has a BMC"
        )
    bmc = power_of(read_access(row.access))
    if switch == "on":
        bmc.turn_on()
    elif switch == "off":
        bmc.turn_off()
    elif switch == "network":
        bmc.boot_from_network()
        out.print(Text(f"{row.name} boots from the network next"))
        return
    out.print(Text(f"{row.name} is {'on' if bmc.is_on() else 'off'}"))


def _settings(
    file: Path | None, group: str | None, tuning: Mapping[str, Any], tune: list[str]
) -> dict[str, Any]:
    """Return the settings of a target from the command: its file's tables, then its options."""
    settings = _read(file) if file is not None else {}
    if group is not None:
        settings["group"] = "" if group == "-" else group
    if tune:
        settings["tuning"] = dict(settings.get("tuning", tuning))
        for pair in tune:
            key, equals, value = pair.partition("=")
            if not equals:
                raise typer.BadParameter(f'--tune "{pair}": write KEY=VALUE, such as governor=performance')
            settings["tuning"].pop(key, None)
            if value:
                settings["tuning"][key] = {"true": True, "false": False}.get(value, value)
    return settings


# The types of a machine file's fields, in words.
_KINDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", dict: "a table"}


def _read(file: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(file.read_text())
    except OSError as exc:
        raise typer.BadParameter(f'cannot read "{file}": {exc.strerror}') from exc
    except (ValueError, RecursionError) as exc:
        raise typer.BadParameter(f"{file}: {exc}") from exc
    for key in settings:
        if key not in CHANGEABLE:
            raise FieldRefused(key, f'{file}: there is no field "{key}"; {nearest(key, CHANGEABLE)}')
    for key, kind in {
        "name": str,
        "driver": str,
        "group": str,
        "remark": str,
        "vcpus": int,
        "memory_mib": int,
        "enabled": bool,
        "access": dict,
        "tuning": dict,
    }.items():
        if key in settings and type(settings[key]) is not kind:
            raise FieldRefused(key, f"{file}: {key} must be {_KINDS[kind]}, not {settings[key]!r:.60}")
    return settings


def _as_shown(row: Target, *, whole: bool = False) -> dict[str, Any]:
    state = "well" if row.enabled else "disabled"
    if row.quarantined_at is not None:
        state = f"in quarantine since {row.quarantined_at:%Y-%m-%d %H:%M}"
    fields: dict[str, Any] = {
        name: getattr(row, name) for name in CHANGEABLE if name not in {"access", "tuning"}
    }
    fields |= {"state": state, "faults": row.faults, "quarantine_reason": row.quarantine_reason}
    return fields | ({"access": row.access, "tuning": row.tuning} if whole else {})
