# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a service on one machine: all below the state root but its sockets, whose paths must be short."""

import fcntl
import hashlib
import os
import pwd
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernels.files.scratch import place_synced
from workers.errors import MachineUnfit

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """The folders and files of the service of one state root."""

    home: Path

    @property
    def folder(self) -> Path:
        """Return the folder of all its files but sockets."""
        return self.home / "service"

    @property
    def logs(self) -> Path:
        """Return the folder of the programs' logs."""
        return self.folder / "logs"

    @property
    def static(self) -> Path:
        """Return the pages' files, collected and compressed."""
        return self.folder / "static"

    @property
    def cluster(self) -> Path:
        """Return the folder of PostgreSQL's data."""
        return self.folder / "postgres"

    @property
    def configuration(self) -> Path:
        """Return supervisord's file."""
        return self.folder / "supervisord.conf"

    @property
    def targets(self) -> Path:
        """Return supervisord's file that depends on the lab's targets."""
        return self.folder / "targets.conf"

    @property
    def environment(self) -> Path:
        """Return the environment that every process of this home adopts while the service is up; lab/environment.py reads it."""
        return self.folder / "environment.json"

    @property
    def sockets(self) -> Path:
        """Return a folder of this home's own, and short: a socket's path has at most 107 bytes."""
        name = f"kperflab-{hashlib.sha256(bytes(self.home.resolve())).hexdigest()[:8]}-service"
        base = (
            Path("/run")
            if os.geteuid() == 0
            else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        )
        return base / name

    def password(self, name: str) -> str:
        """Return the password of the lab's role in the database, or of Redis where other machines may connect; made once."""
        path = self.folder / f"{name}.password"
        # An empty file is what a power cut leaves, and an empty password none.
        if not path.exists() or not path.stat().st_size:
            write(path, secrets.token_urlsafe(32))
        return path.read_text()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the service, to change what runs; a second caller waits."""
        with (self.folder / "up.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def make(self) -> None:
        """Make the folders; only their owner reads what is in them, but others' programs may pass through."""
        for path, mode in (
            (self.folder, 0o711),
            (self.logs, 0o700),
            (self.static, 0o755),
            (self.sockets, 0o711),
        ):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)


def account(name: str) -> pwd.struct_passwd | None:
    """Return the user that a program runs as; None if all run as the current user. Raises MachineUnfit.

    Root starts each as the user that Debian's package made: PostgreSQL refuses to run as root.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(name)
    except KeyError as exc:
        raise MachineUnfit(f'the system user "{name}" is missing; run: ./bootstrap run') from exc


def folder_of(path: Path, owner: pwd.struct_passwd | None) -> None:
    """Make a folder that only this user may look into. Raises MachineUnfit if the user cannot even reach it."""
    path.mkdir(exist_ok=True)
    path.chmod(0o700)
    if owner is None:
        return
    os.chown(path, owner.pw_uid, owner.pw_gid)
    for above in path.parents:
        if not above.stat().st_mode & 0o001:
            raise MachineUnfit(
                f'{above} is closed to the user "{owner.pw_name}", who runs a part of the service: '
                f"chmod o+x {above}, or give another KPERFLAB_HOME"
            )


def write(path: Path, text: str, owner: pwd.struct_passwd | None = None) -> None:
    """Replace a file in one step, also in a power cut. Only its owner can read it, by default the user that runs this program."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text)
    if owner is not None:
        os.chown(draft, owner.pw_uid, owner.pw_gid)
    place_synced(draft, path)
