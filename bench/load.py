# SPDX-License-Identifier: GPL-2.0-or-later
"""Fifty people browse a store of 1,000 experiments and a million samples while a kernel builds: how long pages take.

    python -m bench.load [--users 50] [--seconds 120] [--home DIR] [--idle]

The pages come from the production server (gunicorn, two workers) on the loopback address; locust plays the people, who
read one to three seconds between clicks. Beside the pages, the API's lists are asked for the same rows as a plain
ModelSerializer service writes them (bench/load_urls.py), in random order. The build is a real one, of Debian's 6.1
without a base, as the lab runs it; --idle leaves it out. The goal: 100 ms in 95 of 100 cases.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GOAL_MS = 100.0
_ROW = "{:<34} {:>8} {:>7} {:>7} {:>7} {:>7}"
_BUILD = """
import sys
from pathlib import Path
from kernels.builds.builder import Builder, BuildRequest
from kernels.configs.request import ConfigRequest, load_fragment
from kernels.builds.toolchain import detect_toolchain
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve
home = Path(sys.argv[1])
tree = import_archive("debian-6.1", DEFAULT_ARCHIVES["debian-6.1"], home / "trees")
base = resolve(tree, "")
request = BuildRequest(tree, base, base, ConfigRequest("tiny", (load_fragment("guest"),)), detect_toolchain())
print("building", flush=True)
Builder(home).build(request)
"""


def main() -> int:
    """Print one row for each page; 1 if any request failed."""
    options = _options()
    home = Path(options.home)
    environment = {**os.environ, "KPERFLAB_HOME": str(home)}
    subprocess.run([sys.executable, "-m", "bench.load_store"], env=environment, check=True)
    port = _free_port()
    with _server(port, environment), _build(idle=options.idle):
        rows = _browse(port, users=options.users, seconds=options.seconds)
    build = "no build beside it" if options.idle else "a kernel building beside it"
    print(f"\n{options.users} people for {options.seconds} s, {build}; milliseconds:\n")
    print(_ROW.format("page", "requests", "p50", "p95", "p99", "errors"))
    for row in rows:
        print(
            _ROW.format(
                row["Name"][:34],
                *(row[key] for key in ("Request Count", "50%", "95%", "99%", "Failure Count")),
            )
        )
    whole = rows[-1]
    print(f"\np95 of all: {whole['95%']} ms (goal {GOAL_MS:.0f}); errors: {whole['Failure Count']}")
    _compare_lists(rows)
    return int(whole["Failure Count"] != "0")


def _compare_lists(rows: list[dict[str, str]]) -> None:
    """Ours beside the plain service's, in medians of the same run."""
    median = {row["Name"]: float(row["50%"]) for row in rows}
    for name in ("experiments", "comparisons", "runs", "samples"):
        ours, plain = median.get(f"/api/v1/{name}/"), median.get(f"/plain/{name}/")
        if ours and plain:
            print(f"list of {name}: ours {ours:.0f} ms, plain {plain:.0f} ms ({plain / ours:.1f} times)")


def _browse(port: int, *, users: int, seconds: int) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder) / "load"
        argv = [sys.executable, "-m", "locust", "--headless", "--only-summary", "--loglevel", "ERROR"]
        argv += ["-f", "bench/load_users.py", "-u", str(users), "-r", "10", "-t", f"{seconds}s"]
        argv += ["--host", f"http://127.0.0.1:{port}", "--csv", str(stem), "--reset-stats"]
        subprocess.run(argv, check=False, stdout=subprocess.DEVNULL)
        with Path(f"{stem}_failures.csv").open(newline="") as file:
            for failure in csv.DictReader(file):
                print(f"{failure['Occurrences']} times {failure['Name']}: {failure['Error'][:200]}")
        with Path(f"{stem}_stats.csv").open(newline="") as file:
            return list(csv.DictReader(file))


@contextmanager
def _server(port: int, environment: dict[str, str]) -> Iterator[None]:
    gunicorn = Path(sys.executable).with_name("gunicorn")
    argv = [str(gunicorn), "--bind", f"127.0.0.1:{port}", "--workers", "2", "--threads", "4"]
    argv += ["--keep-alive", "75", "--log-level", "warning", "web.wsgi"]
    server = subprocess.Popen(argv, env={**environment, "DJANGO_SETTINGS_MODULE": "bench.load_settings"})
    try:
        _wait_for(port)
        yield
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def _build(*, idle: bool) -> Iterator[None]:
    """A kernel compiling from nothing, in a home of its own that goes away."""
    if idle:
        yield
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as home:
        argv = [sys.executable, "-c", _BUILD, home]
        build = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        assert build.stdout is not None
        build.stdout.readline()
        try:
            yield
            if build.poll() is not None:
                print("load: the build was over before the browsing", file=sys.stderr)
        finally:
            if build.poll() is None:
                os.killpg(build.pid, signal.SIGINT)
            build.wait(60)


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("load: the server does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--home", default=str(Path(tempfile.gettempdir()) / "kperflab-load"))
    parser.add_argument("--idle", action="store_true", help="no kernel builds beside it")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
