# SPDX-License-Identifier: GPL-2.0-or-later
"""A service as `make up` brings it up, whose targets and builders are simulated: trees, people, targets and the processes that play them."""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg

from bench.faults.lab import Lab, LabSetup, bring_up, take_down
from bench.fleet.day import Submission
from kernels.tests.pretend import FAKELINUX
from workers.service import postgres
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor

PROCESSES = 2
RACK = 50
BUILDERS = 25
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Fleet:
    """A lab with simulated workers. tokens: of its people, by name; farms: the processes that play the workers."""

    lab: Lab
    targets: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    farms: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def place(self) -> ServicePlace:
        """Return where its service is."""
        return ServicePlace(self.lab.home)

    def rack(self, place: float) -> str:
        """Return the group of targets that a number from 0 to 1 falls upon."""
        return f"rack{int(place * self.targets) // RACK}"

    def end_farms(self) -> None:
        """Stop the simulated workers, and wait until each has written its tallies."""
        for farm in self.farms:
            farm.terminate()
        for farm in self.farms:
            farm.wait(60)
        self.look_at_farms()
        self.farms = []

    def look_at_farms(self) -> None:
        """Raise SystemExit where simulated workers have failed: nothing that is measured after it counts."""
        for farm in self.farms:
            if farm.poll():
                raise SystemExit(
                    f"a process of the fleet ended with {farm.returncode}; its log is below {self.lab.home}"
                )


@contextmanager
def simulated(home: Path, port: int) -> Iterator[Fleet]:
    """Bring a service up for the block, without targets and workers yet; Django is set up inside."""
    os.environ |= {
        "KPERFLAB_HOME": str(home),
        "KPERFLAB_STORE": str(home / "store"),
        "KPERFLAB_LEASE_S": "15",
        "KPERFLAB_DISK_GIB": "1",
        "KPERFLAB_CHECK_HOURS": "0",
        # No worker of this machine: those of the targets are simulated.
        "KPERFLAB_TARGETS": "none",
    }
    (home / "store").mkdir()
    lab = Lab(LabSetup(home, machine=False), port, dict(os.environ))
    fleet = Fleet(lab)
    try:
        lab.service("stores", "--port", str(port))
        _count_statements(ServicePlace(home))
        bring_up(lab)
        Supervisor(ServicePlace(home)).end(["builds", "targets"])
        import workers.app  # noqa: F401  Django is set up with the lab's environment

        yield fleet
    finally:
        for farm in fleet.farms:
            if farm.poll() is None:
                farm.kill()
                farm.wait()
        take_down(lab)


def superuser(place: ServicePlace, database: str = postgres.NAME) -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection to the service's PostgreSQL that may see and set everything."""
    return psycopg.connect(
        host=str(place.sockets / "postgres"),
        user=postgres.USER,
        password=(place.folder / "postgres.password").read_text(),
        dbname=database,
        autocommit=True,
    )


def _count_statements(place: ServicePlace) -> None:
    """Have PostgreSQL count its statements; it reads which libraries it loads when it starts."""
    with superuser(place) as connection:
        connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    supervisor = Supervisor(place)
    supervisor.end(["postgres"])
    supervisor.begin(["postgres"])
    postgres._connect(place, postgres.PostgresNetwork()).close()
    with superuser(place) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")


def grow(fleet: Fleet, count: int) -> None:
    """Give the fleet so many targets, in racks of equal ones."""
    from lab.models import Target

    Target.objects.bulk_create(
        Target(name=target_name(number), group=f"rack{number // RACK}", driver="fake", vcpus=16)
        for number in range(fleet.targets, count)
    )
    fleet.targets = count


def target_name(number: int) -> str:
    """Return the name of a target."""
    return f"sim-{number:04}"


def prepare(fleet: Fleet, day: Sequence[Submission]) -> None:
    """Import the trees of a day and give its submitters accounts."""
    from kernels.trees.tree import import_archive
    from lab.models import Tree, User
    from lab.people.tokens import issue_token

    root = fleet.lab.home / "trees"
    for tree in sorted({submission.tree for submission in day}):
        if Tree.objects.filter(name=f"tree{tree}").exists():
            continue
        archive = _archive(fleet.lab.home / f"tree{tree}.tar", tree)
        imported = import_archive(f"tree{tree}", archive, root)
        Tree.objects.create(
            name=f"tree{tree}",
            kind="archive",
            location=str(archive),
            default_revision=imported.default_revision,
        )
    people = {
        submission.submitter: submission.priority == "high"
        for submission in day
        if submission.submitter not in fleet.tokens
    }
    for name, urgent in sorted(people.items()):
        role = User.Role.OPERATOR if urgent else User.Role.SUBMITTER
        user = User.objects.create(username=name, role=role, finish_mails=False)
        fleet.tokens[name] = issue_token(user=user, name="day", scopes=["read", "submit"])[1]


def _archive(path: Path, tree: int) -> Path:
    """Pack the pretend kernel, with a file that tells this tree from the others."""
    with tarfile.open(path, "w") as tar:
        tar.add(FAKELINUX, "linux")
        info = tarfile.TarInfo(f"linux/localversion-{tree}")
        tar.addfile(info)
    return path


def start_farms(fleet: Fleet, speed: float, seed: int) -> list[Path]:
    """Start the processes that play the workers, and wait until they work; return the files that their tallies will be in."""
    from bench.fleet.farm import Share

    count = min(PROCESSES, fleet.targets)
    builders = max(count, fleet.targets // BUILDERS)
    for number in range(count):
        names = tuple(target_name(place) for place in range(number, fleet.targets, count))
        file = fleet.lab.home / f"farm-{number}.json"
        share = Share(
            number,
            names,
            builders // count,
            speed,
            seed,
            str(fleet.lab.home / "hosts"),
            str(file.with_suffix(".result")),
        )
        file.write_text(json.dumps(asdict(share)))
        fleet.farms.append(_start(fleet, file))
    for farm in fleet.farms:
        assert farm.stdout
        if not farm.stdout.readline().startswith("ready"):
            raise SystemExit(f"a process of the fleet did not start; its log is below {fleet.lab.home}")
    return [fleet.lab.home / f"farm-{number}.result" for number in range(count)]


def _start(fleet: Fleet, file: Path) -> subprocess.Popen[str]:
    with file.with_suffix(".log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.fleet.farm", str(file)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=fleet.lab.environment,
        )
