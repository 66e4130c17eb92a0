# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a backup of this lab: its tables at one moment, its secret key, and the files asked for."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from lab.environment import all_variables
from lab.errors import BackupRefused
from lab.models import Build, Run
from lab.operations.backup.archive import PIECE, SECRET, Manifest, TableDump, Writer, writing
from lab.operations.backup.tables import snapshot
from lab.operations.logs import escaped

Files = Literal["none", "kept", "all"]
Say = Callable[[str], None]
ROOTS = ("runs", "artifacts", "profiles")
# They hold passwords, or are of this machine alone.
_NOT_TOLD = ("KPERFLAB_DATABASE", "KPERFLAB_REDIS", "KPERFLAB_SMTP", "KPERFLAB_HOME")
# A line of progress after this many files.
_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Made:
    """The contents of a backup."""

    size: int
    rows: int
    files: int


def back_up(file: Path, *, files: Files = "none", say: Say) -> Made:
    """Write a backup while the lab goes on working; there is a whole file or none. Raises BackupRefused."""
    if file.is_dir():
        raise BackupRefused(f"{file} is a folder: give the name of a file for the backup")
    with writing(file.absolute()) as archive:
        # The server ends a transaction in which nothing happens for a minute: files are added after it.
        with snapshot() as (columns, rows):
            applied = MigrationRecorder(connection).applied_migrations()
            tables = {}
            for name, named in columns.items():
                counting = _Counting(rows(name))
                archive.add(f"tables/{name}", counting)
                tables[name] = TableDump(columns=named, rows=counting.lines)
        total = sum(table.rows for table in tables.values())
        say(f"{len(tables)} tables with {total:,} rows")
        archive.add(SECRET, [settings.SECRET_KEY.encode()])
        number = _add_files(archive, files, say)
        manifest: Manifest = archive.finish(
            made_at=timezone.now().isoformat(),
            version=version("kperflab"),
            vendor=connection.vendor,
            home=str(settings.HOME),
            migrations=sorted(f"{app}.{name}" for app, name in applied),
            settings=_settings(),
            tables=tables,
        )
    return Made(file.stat().st_size, sum(table.rows for table in manifest.tables.values()), number)


class _Counting:
    """Pieces, with the number of their lines."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.lines = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.lines += piece.count(b"\n")
            yield piece


def _settings() -> dict[str, str]:
    """Return the lab's settings without secrets, for setting it up again."""
    variables = sorted(all_variables("KPERFLAB_").items())
    return {name: escaped(value)[:1000] for name, value in variables if name not in _NOT_TOLD}


def _add_files(archive: Writer, files: Files, say: Say) -> int:
    if files == "none":
        return 0
    number = 0
    for path in _chosen(files):
        name = f"files/{path.relative_to(settings.HOME)}"
        if _add_file(archive, name, path):
            number += 1
            if number % _EVERY == 0:
                say(f"{number:,} files …")
    say(f"{number:,} files")
    return number


def _add_file(archive: Writer, name: str, path: Path) -> bool:
    """Add a plain file; False for one that went away meanwhile, or is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        archive.add(name, iter(lambda: file.read(PIECE), b""))
    return True


def _chosen(files: Files) -> Iterator[Path]:
    """The files of runs and artifacts, of kept experiments or of all, in order."""
    if files == "all":
        folders: list[Path] = [settings.HOME / root for root in ROOTS]
    else:
        runs = Run.objects.filter(experiment__kept=True).exclude(directory="")
        names = [Path(name).name for name in runs.values_list("directory", flat=True)]
        keys = Build.objects.filter(variants__experiment__kept=True).exclude(artifact_key="")
        folders = [settings.HOME / "runs" / name for name in sorted(set(names))]
        folders += [
            settings.HOME / "artifacts" / key
            for key in sorted(set(keys.values_list("artifact_key", flat=True)))
        ]
    for folder in folders:
        yield from _files_below(folder)


def _files_below(top: Path) -> Iterator[Path]:
    """Yield plain files in order. Folders may be removed meanwhile; hidden files and folders are still being written."""
    for folder, inside, names in os.walk(top):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        paths = [Path(folder) / name for name in sorted(names) if not name.startswith(".")]
        yield from (path for path in paths if path.is_file() and not path.is_symlink())
