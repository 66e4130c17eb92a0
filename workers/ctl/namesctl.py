# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl trees`, `targets`, `workloads` and `patches`: what a description may name."""

from collections.abc import Mapping

from rich.text import Text

from workers.ctl.clients.base import Kind
from workers.ctl.clients.client import Client
from workers.ctl.options import JSON, TABLE, Format, err, out, print_json, through_client
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import plain_rows


@through_client
def trees(client: Client, form: Format = TABLE) -> None:
    """List the trees that kernels can be built from."""
    _listed(client, "trees", {"name": "tree", "default_revision": "default base", "location": "from"}, form)


@through_client
def targets(client: Client, form: Format = TABLE) -> None:
    """List the machines that kernels can boot on."""
    columns = {
        "name": "target",
        "driver": "driver",
        "vcpus": "vCPUs",
        "memory_mib": "MiB",
        "enabled": "enabled",
    }
    _listed(client, "targets", columns, form)


@through_client
def workloads(client: Client, form: Format = TABLE) -> None:
    """List the workloads and their presets."""
    _listed(client, "workloads", {"name": "workload", "presets": "presets", "summary": "what it does"}, form)


@through_client
def patches(client: Client, form: Format = TABLE) -> None:
    """List the switches of the catalogue, which a description names with `catalog = `."""
    _listed(client, "patches", {"name": "catalog", "title": "title", "trees": "trees"}, form)


def _listed(client: Client, kind: Kind, columns: Mapping[str, str], form: str) -> None:
    """Print a row each; columns: fields with their heads."""
    rows = client.names(kind)
    if form == JSON:
        print_json(rows)
        return
    if not rows:
        err.print(Text(f"no {kind} on {client.where} yet"))
        return
    # Leave out columns that are empty in every row.
    heads = {field: head for field, head in columns.items() if any(_cell(row.get(field)) for row in rows)}
    table = plain_rows(*heads.values())
    for row in rows:
        table.add_row(*(Text(_cell(row.get(field))) for field in heads))
    out.print(table)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(plain_line(part["name"] if isinstance(part, dict) else part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else plain_line(value)
