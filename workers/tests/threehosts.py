# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet of three hosts: a server that builds too, and two that boot. Each has a systemd, an address and files of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lab.tests.stores import BUCKET, KEYS
from workers.tests import smoke
from workers.tests.emptymachine import Machine, empty_machine, free_port
from workers.tests.live import LiveKernel
from workers.tests.provisioned import LAB, Fleet, commit_of_what_is_here, reached, written

ADDRESSES = {"lab": "127.0.1.1", "bench1": "127.0.1.2", "bench2": "127.0.1.3"}
BENCHES = ("bench1", "bench2")
# A folder that all three mount.
STORE = Path("/srv/store")
LEASE_S = 8
GROUP = "benches"
# What a fake target takes for a boot: time enough to cut its host's power in.
BOOT_S = 8.0
DEADLINE_S = 600.0
REPOSITORY = "/srv/pretend"
# Run by the lab's own `manage.py shell`: targets, a tree, and an operator. Prints the token last.
SEED = """
import json
from lab.models import Target, Tree, User
from lab.people.tokens import issue_token
for name in {names!r}:
    Target.objects.create(name=name, driver="fake", group={group!r}, access=dict(seconds={seconds!r}))
Tree.objects.create(name="pretend", kind="git", location="{repository}/.git", default_revision="{base}")
olga = User.objects.create_user("olga", password=None, role=User.Role.OPERATOR)
print(json.dumps(issue_token(user=olga, name="tests", scopes=["read", "submit", "operate"])[1]))
"""
RUNS = """
import json
from lab.models import Run
print(json.dumps([
    dict(
        id=run.pk, state=run.state, attempt=run.attempt, target=run.target.name if run.target else "",
        place=[run.variant_id, run.case_id, run.purpose, run.block, run.retake], samples=run.samples.count(),
    )
    for run in Run.objects.filter(experiment={number}).select_related("target").order_by("id")
]))
"""


@dataclass(frozen=True)
class Client:
    """An operator who uses REST."""

    http: httpx.Client
    kernel: LiveKernel

    def ask(self, address: str) -> Any:
        """Return what the API answers, as JSON."""
        answer = self.http.get(f"/api/v1/{address}")
        assert answer.is_success, f"{answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def submit(self, name: str, boots: int = 3) -> int:
        """Submit an experiment on the group, with a kernel of its own; return its number."""
        own = smoke.description(self.kernel, f'\tconst char *told = "{name}";\n')
        return smoke.submitted(
            self.http, own | {"name": name, "target": GROUP, "measure": own["measure"] | {"boots": boots}}
        )

    def ended(self, number: int) -> dict[str, Any]:
        """Return an experiment once it is over."""
        row: dict[str, Any] = self._once(
            lambda: self.ask(f"experiments/{number}/"), lambda experiment: experiment["exit_code"] is not None
        )
        return row

    def boot_on(self, target: str) -> dict[str, Any]:
        """Return the claim of a boot on a target, once there is one."""
        claims = self._once(
            lambda: [claim for claim in self.ask("claims/") if claim["target"] == target],
            lambda listed: listed,
        )
        claim: dict[str, Any] = claims[0]
        return claim

    def await_end_of(self, claim: dict[str, Any]) -> None:
        """Wait until nobody, or somebody else, holds what was claimed."""
        held = ("kind", "id", "claimed_by")
        wanted = [claim[name] for name in held]
        self._once(
            lambda: [[other[name] for name in held] for other in self.ask("claims/")],
            lambda others: wanted not in others,
        )

    def console(self, run: int) -> str:
        """Return a boot's console as the server has it."""
        answer = self.http.get(f"/api/v1/runs/{run}/console/", headers={"Accept": "text/plain"})
        assert answer.is_success, f"{answer.status_code} {answer.text[:2000]}"
        return answer.text

    def _once(self, look: Callable[[], Any], enough: Callable[[Any], Any]) -> Any:
        deadline = time.monotonic() + DEADLINE_S
        while not enough(answer := look()):
            assert time.monotonic() < deadline, answer
            time.sleep(0.3)
        return answer


@dataclass(frozen=True)
class ThreeHosts:
    """The fleet, and its hosts by name."""

    fleet: Fleet
    hosts: dict[str, Machine]

    @property
    def lab(self) -> Machine:
        """Return the server."""
        return self.hosts["lab"]

    def ask(self, program: str) -> Any:
        """Run a program in the lab's own Python on the server; what it prints last, as JSON."""
        return json.loads(self.lab.run(f"{LAB} python3 manage.py shell", program).splitlines()[-1])

    def runs(self, number: int) -> list[dict[str, Any]]:
        """Return the rows of an experiment's boots."""
        rows: list[dict[str, Any]] = self.ask(RUNS.format(number=number))
        return rows

    @contextmanager
    def client(self, kernel: LiveKernel) -> Iterator[Client]:
        """Seed the lab with targets, and a tree of which the server alone has the repository; an operator of it."""
        packed = ["tar", "-c", "-C", str(kernel.work), ".git"]
        bundle = subprocess.run(packed, check=True, capture_output=True, timeout=60).stdout
        place = f"mkdir -p {REPOSITORY} && tar -x -C {REPOSITORY} && chown -R kperflab: {REPOSITORY}"
        subprocess.run([*self.lab.ssh, place], input=bundle, check=True, timeout=60)
        seeds = {"names": BENCHES, "group": GROUP, "seconds": BOOT_S, "repository": REPOSITORY}
        token = self.ask(SEED.format(base=kernel.base.commit, **seeds))
        headers = {"Authorization": f"Token {token}"}
        with httpx.Client(
            base_url=self.fleet.url, headers=headers, timeout=60, trust_env=False, follow_redirects=True
        ) as http:
            yield Client(http, kernel)


@contextmanager
def three_hosts(folder: Path, moto: str) -> Iterator[ThreeHosts]:
    """Three empty machines and the inventory of a fleet to be. moto: the address of its S3 server."""
    shared = folder / "store"
    shared.mkdir(mode=0o755)
    with ExitStack() as stack:
        hosts = {
            name: stack.enter_context(empty_machine(name, address, {STORE: shared}))
            for name, address in ADDRESSES.items()
        }
        yield ThreeHosts(_fleet(hosts, folder, moto), hosts)


def _fleet(hosts: dict[str, Machine], folder: Path, moto: str) -> Fleet:
    server, port, revision = hosts["lab"], free_port(), commit_of_what_is_here(folder)
    variables = {
        "lab_server_address": server.address,
        "lab_revision": revision,
        "lab_port": port,
        # Other sessions have the network too: nothing listens but on the server's own addresses.
        "lab_bind": server.address,
        "lab_worker_networks": ["127.0.0.0/8"],
        "lab_listen_addresses": ["127.0.0.1", server.address],
        "lab_postgres_port": free_port(),
        "lab_redis_port": free_port(),
        "lab_user_id": 931,
        "lab_store": f"s3://{BUCKET}/fleet?endpoint={moto}",
        "lab_store_key_id": KEYS["AWS_ACCESS_KEY_ID"],
        "lab_store_key": KEYS["AWS_SECRET_ACCESS_KEY"],
        "lab_settings": {"KPERFLAB_LOCAL_PATHS": "1", "KPERFLAB_LEASE_S": str(LEASE_S)},
    }
    groups = {
        "all": {"vars": variables, "hosts": {name: reached(host) for name, host in hosts.items()}},
        "lab_server": {"hosts": {"lab": {}}},
        "build_workers": {"hosts": {"lab": {}}},
        "libvirt_hosts": {"hosts": {name: {"lab_targets": [name]} for name in BENCHES}},
    }
    url = f"http://{server.address}:{port}"
    return Fleet(server, written(groups, folder), url, url, port, True, revision)
