# SPDX-License-Identifier: GPL-2.0-or-later
"""The version of this code and of the lab's; a worker of another version takes no work until it is updated.

Migrations: those of this code, those that one of them replaces, and the databases that are too old for it.
"""

import hashlib
from collections.abc import Collection
from functools import cache
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from lab.models import Deployment

# The packages that decide what a worker builds, boots and writes. The pages may differ: they only read.
PACKAGES = ("kernels", "workloads", "lab", "workers")
SUFFIXES = frozenset({".py", ".c", ".cc", ".h", ".sh", ".toml", ".tsv", ".config", ".patch", ".bt"})
# Makefiles of kernel modules.
NAMES = frozenset({"Kbuild"})
ROOT = Path(__file__).resolve().parents[2]
# As a part of other statements.
LAB_VERSION = "SELECT version FROM lab_deployment ORDER BY id DESC LIMIT 1"


@cache
def code_version(root: Path = ROOT) -> str:
    """12 hex digits over the sources that this process runs; equal sources are equal wherever they came from."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            counts = path.suffix in SUFFIXES or path.name in NAMES
            if counts and "tests" not in path.relative_to(root).parts:
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def lab_version() -> str:
    """The version that was deployed last, "" where none ever was: then every worker may work."""
    return Deployment.objects.order_by("-pk").values_list("version", flat=True).first() or ""


def deploy(version: str) -> bool:
    """Make this the lab's version; False if it is already."""
    if lab_version() == version:
        return False
    Deployment.objects.create(version=version)
    return True


def other_version(own: str, lab: str | None = None) -> str:
    """Return why a worker of this version may take no work; "" if it may. lab: the lab's version, read if None."""
    wanted = lab_version() if lab is None else lab
    if not wanted or wanted == own:
        return ""
    return f"it runs version {own}, the lab {wanted}: update it, then restart it"


Key = tuple[str, str]
# The last commit that has the replaced migrations.
LAST_WITH_REPLACED = "b6b374f"


@cache
def known_migrations() -> frozenset[Key]:
    """Return the migrations that this code brings."""
    return frozenset(MigrationLoader(None).disk_migrations)


@cache
def replaced_migrations() -> dict[Key, Key]:
    """Return the migration that replaces each one whose file is gone."""
    files = MigrationLoader(None).disk_migrations
    return {old: new for new, migration in files.items() for old in migration.replaces if old not in files}


def too_old(applied: Collection[Key]) -> str:
    """Return why this code cannot migrate a database with these migrations applied; empty where it can."""
    replaced = replaced_migrations()
    missing = sorted(replaced.keys() - set(applied))
    if not missing or len(missing) == len(replaced):
        return ""
    names = ".".join(missing[0])
    return f"without {names}: run manage.py migrate with the code of commit {LAST_WITH_REPLACED} first"
