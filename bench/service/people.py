# SPDX-License-Identifier: GPL-2.0-or-later
"""Response times of pages for fifty people who browse 1,000 experiments and a million samples while a kernel builds.

The pages come from the production server (gunicorn, two workers) on the loopback address; locust plays the people, who
read one to three seconds between clicks. The build is a real one, of Debian's 6.1 without a base, as the lab runs it.
"""

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

from lab.tests.postgres import start_cluster

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


def main(users: int, seconds: int, build: bool) -> None:
    """Print one row for each page. Raises SystemExit if any request failed."""
    with tempfile.TemporaryDirectory(prefix="kperflab-load-") as home:
        environment = {**os.environ, "KPERFLAB_HOME": home, "KPERFLAB_DATABASE": start_cluster()}
        subprocess.run([sys.executable, "-m", "bench.load_store"], env=environment, check=True)
        port = _free_port()
        with _server(port, environment), _build(idle=not build):
            rows = _browse(port, users=users, seconds=seconds)
    beside = "a kernel building beside it" if build else "no build beside it"
    print(f"{users} people for {seconds} s, {beside}; milliseconds:\n")
    print(_ROW.format("page", "requests", "p50", "p95", "p99", "errors"))
    for row in rows:
        cells = (row[key] for key in ("Request Count", "50%", "95%", "99%", "Failure Count"))
        print(_ROW.format(row["Name"][:34], *cells))
    whole = rows[-1]
    print(f"\np95 of all: {whole['95%']} ms (goal {GOAL_MS:.0f}); errors: {whole['Failure Count']}")
    if whole["Failure Count"] != "0":
        raise SystemExit(1)


def _browse(port: int, *, users: int, seconds: int) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder) / "load"
        argv = [sys.executable, "-m", "locust", "--headless", "--only-summary", "--loglevel", "ERROR"]
        argv += ["-f", "bench/service/reader.py", "-u", str(users), "-r", "10", "-t", f"{seconds}s"]
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
    server = subprocess.Popen(argv, env=environment)
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
                print("people: the build was over before the browsing", file=sys.stderr)
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
    raise SystemExit("people: the server does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
