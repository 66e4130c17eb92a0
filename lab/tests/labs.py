# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole labs for tests of backups: a home and a database each, asked by commands of their own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dj_database_url
import psycopg
import psycopg.conninfo

from lab.tests.fresh_python import run_python

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("KPERFLAB_", "LABCTL_"))}
PAGES = (
    "/",
    "/experiments/",
    "/experiments/3/",
    "/experiments/3/comparison/",
    "/experiments/3/runs/",
    "/runs/KEPT/",
    "/runs/KEPT/console.txt",
    "/trends/",
    "/regressions/?state=all",
    "/api/v1/runs/?page_size=50",
    "/api/v1/samples/?page_size=100",
    "/api/v1/comparisons/",
    "/api/v1/targets/",
)
ASK = """
import re, sys, django; django.setup()
from django.conf import settings; from django.test import Client; settings.ALLOWED_HOSTS.append("testserver")
from lab.models import Run
kept = str(Run.objects.filter(experiment=3).order_by("pk")[0].pk)
for path in sys.argv[1:]:
    answer = Client().get(path.replace("KEPT", kept))
    body = b"".join(answer) if answer.streaming else answer.content
    # The pages were not read at the same second.
    print(path, answer.status_code, re.sub(rb">[^<>]*(ago|now)<", b"><", body))
"""
FILL = """
import django; django.setup()
from django.conf import settings; from lab.models import Experiment, Run, Profile, Build, User
from lab.people.tokens import issue_token
Experiment.objects.filter(pk=3).update(kept=True)
for run in Run.objects.filter(experiment__in=(3, 4)):
    folder = settings.HOME / "runs" / f"{run.pk}-1"; folder.mkdir(parents=True)
    (folder / "console.log").write_text(f"Linux of run {run.pk}\\n"); (folder / "perf.data").write_bytes(bytes(range(256)))
    Run.objects.filter(pk=run.pk).update(directory=f"runs/{run.pk}-1", console=f"runs/{run.pk}-1/console.log")
first = Run.objects.order_by("pk")[0]
Profile.objects.create(run=first, samples=1, lost=0, tree=bytes(range(256)) + b"\\n\\\\N\\t")
Run.objects.filter(pk=first.pk).update(problem="tab\\tand\\nline \\\\N \\u2028 \\U0001f427", extras={"a": [1.5e-300, None, "\\\\"]})
(settings.HOME / "artifacts" / "abc").mkdir(parents=True); (settings.HOME / "artifacts" / "abc" / "vmlinux").write_bytes(b"k" * 9999)
Build.objects.filter(variants__experiment=3).update(artifact_key="abc", log="logs/abc.log")
issue_token(user=User.objects.order_by("pk")[0], name="ci", scopes=["read"], days=30)
"""


@dataclass(frozen=True)
class Lab:
    """A lab on a machine: its home, and its database."""

    home: Path
    url: str

    def run(self, *command: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {
            "KPERFLAB_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "KPERFLAB_DATABASE": self.url,
        }
        environment |= {
            "DJANGO_SETTINGS_MODULE": "lab.settings",
            "KPERFLAB_SMTP": "smtp://lab:s3cr3t-pw@mail",
        }
        done = run_python(command, CLEAN | environment, ROOT)
        assert not ok or done.returncode == 0, done.stderr[-3000:]
        return done

    def labctl(self, *command: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "workers.labctl", "lab", *command, ok=ok)

    def pages(self) -> list[str]:
        return self.run("-c", ASK, *PAGES).stdout.splitlines()

    def rows(self, *, besides: str = "") -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table but that of migrations; besides: a column that is left out."""

        def values(cursor: Any) -> list[tuple[Any, ...]]:
            kept = [at for at, column in enumerate(cursor.description) if column[0] != besides]
            return sorted((tuple(row[at] for at in kept) for row in cursor.fetchall()), key=repr)

        if not self.url:
            with sqlite3.connect(self.home / "kperflab.sqlite3") as open_lite:
                names = [
                    name
                    for (name,) in open_lite.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                    if name != "django_migrations" and not name.startswith("sqlite_")
                ]
                return {name: values(open_lite.execute(f'SELECT * FROM "{name}"')) for name in names}
        with psycopg.connect(connecting(self.url)) as postgres:
            tables = postgres.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()
            return {
                name: values(postgres.execute(f'SELECT * FROM "{name}"'))
                for (name,) in tables
                if name != "django_migrations"
            }


def connecting(url: str) -> str:
    about = dj_database_url.parse(url)
    return psycopg.conninfo.make_conninfo(
        host=str(about["HOST"]), user=str(about["USER"]), dbname=str(about["NAME"])
    )


def filled(home: Path, url: str) -> Lab:
    lab = Lab(home, url)
    lab.run("-m", "bench.load_store", "--experiments", "6", "--samples", "3600")
    lab.run("-c", FILL)
    return lab


def first_difference(page: str, other: str) -> str:
    """Return the first difference of two pages, with its surroundings."""
    place = next(
        (n for n, (a, b) in enumerate(zip(page, other, strict=False)) if a != b), min(len(page), len(other))
    )
    around = slice(max(0, place - 100), place + 60)
    return f"{page.split()[0]}: {page[around]} | {other[around]}"


def edited(file: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy whose manifest was changed."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest).encode()
            new.writestr(name, data)
    return to
