# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure what each page and list reads and takes on a large lab, beside the same on one of a hundredth of its size.

Each size is measured in a process of its own: rows and pages of 8 KiB that PostgreSQL looks at (EXPLAIN ANALYZE of every SELECT), CPU time of
this process and time by the clock, over Django's client.
"""

import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.tests.postgres import start_cluster

# Everything divided by a hundred.
SMALL = {"experiments": 100, "samples": 100_000, "profiles": 1000, "targets": 10}
LARGE = {name: 100 * number for name, number in SMALL.items()}


@dataclass(frozen=True, slots=True)
class Row:
    """One address. sent: statements; rows, pages: what they looked at; cpu_ms, p50_ms, p95_ms: of one answer; kb: its size."""

    name: str
    address: str
    status: int
    sent: int
    rows: int
    pages: int
    cpu_ms: float
    p50_ms: float
    p95_ms: float
    kb: float


def main(rounds: int = 40, small: str = "", large: str = "", only: str = "") -> None:
    """Measure every page and list of a large lab. small, large: URLs of filled databases, which are created and filled if not given."""
    by_size = {
        size: _measured(url, wanted, rounds, only)
        for size, url, wanted in (("small", small, SMALL), ("large", large, LARGE))
    }
    print(
        f"{'':<66}{'statements':>10}{'rows':>9}{'of 1 %':>8}{'pages':>8}{'of 1 %':>8}{'cpu ms':>8}{'p50':>7}{'p95':>7}{'of 1 %':>8}{'kB':>7}"
    )
    for name, row in sorted(by_size["large"].items(), key=lambda pair: -pair[1].p95_ms):
        other = by_size["small"].get(name)
        if other is None or row.status >= 400:
            continue
        print(
            f"{name[:64]:<66}{row.sent:>10}{row.rows:>9}{_ratio(row.rows, other.rows):>8}{row.pages:>8}"
            f"{_ratio(row.pages, other.pages):>8}{row.cpu_ms:>8.1f}{row.p50_ms:>7.1f}{row.p95_ms:>7.1f}"
            f"{_ratio(row.p50_ms, other.p50_ms):>8}{row.kb:>7.0f}"
        )


def _ratio(large: float, small: float) -> str:
    return f"{large / small:.1f}×" if small else "–"


def _measured(url: str, wanted: dict[str, int], rounds: int, only: str) -> dict[str, Row]:
    """Fill a database where there is none, and measure in a process whose settings name it."""
    with tempfile.TemporaryDirectory(prefix="kperflab-scale-") as folder:
        environment = {**os.environ, "KPERFLAB_HOME": folder, "KPERFLAB_HOSTS": "testserver"}
        environment["KPERFLAB_DATABASE"] = url or start_cluster()
        if not url:
            options = [part for name, number in wanted.items() for part in (f"--{name}", str(number))]
            subprocess.run([sys.executable, "-m", "bench.load_store", *options], env=environment, check=True)
        to = Path(folder) / "measured.json"
        command = [sys.executable, "-m", "bench.service.scale", str(rounds), str(to), only]
        subprocess.run(command, env=environment, check=True)
        return {row["name"]: Row(**row) for row in json.loads(to.read_text())}


def _measure_here(rounds: int, to: Path, only: str) -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    django.setup()
    from django.conf import settings

    from lab.models import User
    from web.tests.conftest import signed_in
    from web.tests.large_addresses import read_addresses

    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    operator, _ = User.objects.get_or_create(username="operator", role=User.Role.OPERATOR)
    client = signed_in(operator)
    client.get("/")
    # As each process of the service does (web/serving.py).
    gc.collect()
    gc.freeze()
    rows = [
        asdict(_row(client, name, address, rounds))
        for name, address in read_addresses()
        if only in name and name not in _LEFT_OUT
    ]
    to.write_text(json.dumps(rows))


# Signs out; asks other servers.
_LEFT_OUT = {"logout"}


def _row(client: Any, name: str, address: str, rounds: int) -> Row:
    from lab.tests.plans import explained

    with explained() as explanation:
        answer = client.get(address)
    body = b"".join(answer) if answer.streaming else answer.content
    times, cpu = [], 0.0
    for _ in range(rounds if answer.status_code < 400 else 0):
        began, at = time.process_time(), time.perf_counter()
        answer = client.get(address)
        body = b"".join(answer) if answer.streaming else answer.content
        times.append(1000 * (time.perf_counter() - at))
        cpu += 1000 * (time.process_time() - began)
    times.sort()
    # By nearest rank: of twenty the nineteenth, not the worst.
    p50, p95 = (times[math.ceil(share * len(times)) - 1] if times else 0.0 for share in (0.5, 0.95))
    each = cpu / max(1, len(times))
    print(
        f"{name[:60]:<62}{answer.status_code:>5}{explanation.sent:>4}{explanation.rows:>10}{explanation.pages:>8}{p50:>8.1f}",
        file=sys.stderr,
        flush=True,
    )
    return Row(
        name,
        address,
        answer.status_code,
        explanation.sent,
        explanation.rows,
        explanation.pages,
        each,
        p50,
        p95,
        len(body) / 1000,
    )


if __name__ == "__main__":
    _measure_here(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
