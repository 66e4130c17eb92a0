# SPDX-License-Identifier: GPL-2.0-or-later
"""Restore a backup: check all of it, load it beside the existing lab, and replace the lab at the end.

Until the last step nothing of this machine's lab is touched; an earlier failure leaves it unchanged. A process that is killed in
the last step leaves a draft that names its backup: restoring that backup again replaces what the killed process put in place.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from kernels.errors import LockBusy
from kernels.files.scratch import locked
from lab.errors import BackupRefused
from lab.leases.version import Key, known_migrations, replaced_migrations, too_old
from lab.models import Build, Experiment, Tree, User, Worker
from lab.operations.backup.archive import SECRET, Manifest, Reader, reading
from lab.operations.backup.tables import analyze, load, number_on

Say = Callable[[str], None]
_SCHEMA, _BEFORE = "kperflab_restoring", "kperflab_before"
# The folder of unpacked files, and in it, from the last step on, the digest of the backup's manifest.
_DRAFT, _REPLACES = ".restoring", "replaces"
_LOCK = ".restore.lock"
# Space beyond the archive's contents, such as for the indexes of tables.
_ROOM = 1 << 30
_ALIVE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Restored:
    """The restored data and its date; migrated: the number of later migrations that were applied."""

    made_at: str
    version: str
    rows: int
    files: int
    migrated: int


def restore(file: Path, *, replace: bool, say: Say) -> Restored:
    """Replace this machine's lab with the backup. replace: even if a lab exists. Raises BackupRefused."""
    with _alone(), reading(file) as archive:
        manifest, draft = archive.manifest, settings.HOME / _DRAFT
        digest = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()
        _fits(file, manifest)
        _has_room(file, manifest)
        _is_free(replace or _replaced(draft) == digest)
        say(
            f"backup of {manifest.made_at} by kperflab {manifest.version}; {archive.verify():,} bytes are intact"
        )
        shutil.rmtree(draft, ignore_errors=True)
        try:
            number = _unpack(archive, draft)
            with _beside() as commit:
                missing = _load(archive, manifest)
                say(f"{len(manifest.tables)} tables; {missing} newer migrations")
                (draft / _REPLACES).write_text(digest)
                commit()
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _put_in_place(draft, archive)
        shutil.rmtree(draft)
    rows = sum(table.rows for table in manifest.tables.values())
    return Restored(manifest.made_at, manifest.version, rows, number, missing)


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other restores into this home out, whose drafts have the same names. Raises BackupRefused."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(settings.HOME / _LOCK, seconds=0))
        except LockBusy as exc:
            raise BackupRefused(
                f"another restore into {settings.HOME} is under way: wait for it, or end it"
            ) from exc
        yield


def _replaced(draft: Path) -> str:
    """Return the digest of the backup by which a killed process was replacing the lab; "" without such a process."""
    place = draft / _REPLACES
    return place.read_text() if place.exists() else ""


def _fits(file: Path, manifest: Manifest) -> None:
    if manifest.vendor != connection.vendor:
        raise BackupRefused(
            f"{file} is of a lab on {manifest.vendor}, this one is set to {connection.vendor}: "
            + (
                "unset KPERFLAB_DATABASE"
                if manifest.vendor == "sqlite"
                else "set KPERFLAB_DATABASE=postgres://…"
            )
        )
    applied = _keys(manifest)
    if newer := sorted(applied - known_migrations() - replaced_migrations().keys()):
        raise BackupRefused(
            f"{file} is of newer code, kperflab {manifest.version} with {'.'.join(newer[-1])[:100]}: update this machine first"
        )
    if why := too_old(applied):
        raise BackupRefused(f"{file} is of older code, {why}, where the backup was made")
    if manifest.tables.keys() != {
        name.removeprefix("tables/") for name in manifest.members if name.startswith("tables/")
    }:
        raise BackupRefused(f"{file}: its tables are not those of its manifest")


def _has_room(file: Path, manifest: Manifest) -> None:
    needed = sum(member.size for member in manifest.members.values())
    free = shutil.disk_usage(settings.HOME).free
    if needed + _ROOM > free:
        raise BackupRefused(
            f"{file} unpacks to {needed:,} bytes, and {settings.HOME} has {free:,}: make room first, or set KPERFLAB_HOME"
        )


def _is_free(replace: bool) -> None:
    """Refuse if data would be lost, or if the lab is running. Raises BackupRefused."""
    tables = set(connection.introspection.table_names())
    if Worker._meta.db_table in tables:
        alive = Worker.objects.filter(seen_at__gt=timezone.now() - _ALIVE).values_list("name", flat=True)
        if working := list(alive):
            raise BackupRefused(
                f"{working[0]} is running for this lab: stop the workers, the web server and beat first"
            )
    if replace:
        return
    for model in (Experiment, User, Build, Tree):
        if model._meta.db_table in tables and model._default_manager.exists():
            raise BackupRefused(
                f"this lab has {model._meta.verbose_name_plural} already: restore elsewhere, or give --replace to lose them"
            )


@contextmanager
def _beside() -> Iterator[Callable[[], None]]:
    """Connect to empty tables; the yielded function replaces the lab's tables with them."""
    done: list[bool] = []
    inner = _beside_file if connection.vendor == "sqlite" else _beside_schema
    with inner(done):
        yield lambda: done.append(True)


@contextmanager
def _beside_file(done: list[bool]) -> Iterator[None]:
    place = Path(connection.settings_dict["NAME"])
    draft = place.with_name(f".{place.name}.restoring")
    _forget(draft)
    connection.close()
    connection.settings_dict["NAME"] = str(draft)
    try:
        yield
        if done:
            with connection.cursor() as cursor:
                # Only a single file, without a log beside it, can be put in place in one step.
                cursor.execute("PRAGMA journal_mode=DELETE")
    finally:
        connection.close()
        connection.settings_dict["NAME"] = str(place)
        if done and draft.exists():
            for end in ("-wal", "-shm"):
                place.with_name(place.name + end).unlink(missing_ok=True)
            draft.replace(place)
        _forget(draft)


def _forget(draft: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        draft.with_name(draft.name + end).unlink(missing_ok=True)


@contextmanager
def _beside_schema(done: list[bool]) -> Iterator[None]:
    plain: dict[str, Any] = dict(connection.settings_dict["OPTIONS"])
    _say_sql(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE", f"CREATE SCHEMA {_SCHEMA}")
    connection.close()
    options = f"{plain.get('options', '')} -c search_path={_SCHEMA}".strip()
    connection.settings_dict["OPTIONS"] = plain | {"options": options}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = plain
        if done:
            _say_sql(
                "BEGIN",
                f"ALTER SCHEMA public RENAME TO {_BEFORE}",
                f"ALTER SCHEMA {_SCHEMA} RENAME TO public",
                f"DROP SCHEMA {_BEFORE} CASCADE",
                "COMMIT",
            )
        else:
            _say_sql(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")


def _say_sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _load(archive: Reader, manifest: Manifest) -> int:
    """Create the backup's tables, fill them, and migrate them to this code; returns the number of migrations."""
    try:
        MigrationExecutor(connection).migrate(_leaves(manifest))
        load(manifest.tables, lambda name: archive.pieces(f"tables/{name}"))
        # Before newer migrations: those number what they add.
        number_on()
        call_command("migrate", verbosity=0, interactive=False)
        analyze()
    except (DatabaseError, IntegrityError, ValueError) as exc:
        raise BackupRefused(f"{archive.file} cannot be loaded: {' '.join(str(exc).split())[:300]}") from exc
    return len(known_migrations() - _reached(manifest))


def _keys(manifest: Manifest) -> set[Key]:
    parts = (migration.partition(".") for migration in manifest.migrations)
    return {(app, name) for app, _, name in parts}


def _reached(manifest: Manifest) -> set[Key]:
    """Return the migrations that the backup had, with the replacement in place of each replaced one."""
    return {replaced_migrations().get(key, key) for key in _keys(manifest)}


def _leaves(manifest: Manifest) -> list[tuple[str, str]]:
    """The last migrations of each app that the backup had."""
    graph = MigrationExecutor(connection).loader.graph
    had = _reached(manifest)
    return sorted(
        key
        for key in had
        if not any(child.key in had and child.key[0] == key[0] for child in graph.node_map[key].children)
    )


def _unpack(archive: Reader, draft: Path) -> int:
    """Write the files into a folder of our own; returns how many."""
    names = list(archive.files())
    draft.mkdir(mode=0o700)
    for name in names:
        place = draft / name.removeprefix("files/")
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            for piece in archive.pieces(name):
                file.write(piece)
    return len(names)


def _put_in_place(draft: Path, archive: Reader) -> None:
    """Move the key and the files to their places; a run or artifact that exists there is replaced."""
    for folder in sorted(draft.glob("*/*")):
        place = settings.HOME / folder.relative_to(draft)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        # Not a rename alone: runs or artifacts may be on a disk of their own.
        shutil.move(folder, place)
    key = draft / SECRET
    key.touch(mode=0o600)
    key.write_bytes(b"".join(archive.pieces(SECRET)))
    key.replace(settings.HOME / SECRET)
