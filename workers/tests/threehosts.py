# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet of three hosts: a server that builds too, and drives a machine; and two that boot guests.

Each has a systemd, an address and files of its own, the two a libvirt too. The machine is a stand-in beside them with a BMC.
"""

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

from bench.faults.real_kernel import RealKernel
from lab.tests.stores import BUCKET, KEYS
from workers.tests import smoke
from workers.tests.emptymachine import Machine, empty_machine, free_port
from workers.tests.machines import StandIn
from workers.tests.provisioned import LAB, Fleet, commit_of_what_is_here, reached, written

# The machine finds the server on QEMU's user network, where the loopback address of all that is here is 10.0.2.2.
ADDRESSES = {"lab": "127.0.0.1", "bench1": "127.0.1.2", "bench2": "127.0.1.3"}
FROM_MACHINES = "10.0.2.2"
BENCHES = ("bench1", "bench2")
MACHINE = "metal1"
# A folder that all three mount.
STORE = Path("/srv/store")
LEASE_S = 8
GROUP = "benches"
# Guests are emulated, beside whatever else this machine does.
DEADLINE_S = 1500.0
REPOSITORY = "/srv/pretend"
MEMORY_MIB = 512
DESCRIPTION = """driver = "metal"
vcpus = 1
memory_mib = {memory}
[access]
mac = "{mac}"
fragments = []
[access.power]
kind = "{kind}"
address = "{address}"
user = "{user}"
password_file = "/etc/kperflab/secrets/bmc-{name}"
system = "{system}"
verify = false
"""
# Run by the lab's own `manage.py shell`: targets, a tree, and an operator. Prints the token last.
SEED = """
import json
from lab.models import Target, Tree, User
from lab.people.tokens import issue_token
for name in {names!r}:
    Target.objects.create(name=name, driver="libvirt", group={group!r}, vcpus=1, memory_mib={memory})
Tree.objects.create(name="pretend", kind="git", location="{repository}/.git", default_revision="{base}")
olga = User.objects.create_user("olga", password=None, role=User.Role.OPERATOR)
print(json.dumps(issue_token(user=olga, name="tests", scopes=["read", "submit", "operate"])[1]))
"""
RUNS = """
import json
from lab.models import Run
print(json.dumps([
    dict(
        id=run.pk, state=run.state, problem=run.problem, attempt=run.attempt, target=run.target.name if run.target else "",
        release=run.variant.build.release, environment=run.environment,
        place=[run.variant_id, run.case_id, run.purpose, run.block, run.retake], samples=run.samples.count(),
    )
    for run in Run.objects.filter(experiment={number}).select_related("target", "variant__build").order_by("id")
]))
"""


@dataclass(frozen=True)
class Client:
    """An operator who uses REST."""

    http: httpx.Client
    kernel: RealKernel

    def ask(self, address: str) -> Any:
        """Return what the API answers, as JSON."""
        answer = self.http.get(f"/api/v1/{address}")
        assert answer.is_success, f"{answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def submit(self, name: str, boots: int = 3, target: str = GROUP) -> int:
        """Submit an experiment on the group, or on another target, with a kernel of its own; return its number."""
        own = smoke.description(self.kernel, f'\tconst char *told = "{name}";\n')
        return smoke.submitted(
            self.http, own | {"name": name, "target": target, "measure": own["measure"] | {"boots": boots}}
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
    """The fleet, its hosts by name, and the machine that the server drives."""

    fleet: Fleet
    hosts: dict[str, Machine]
    machine: StandIn

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

    def guests(self, name: str) -> list[str]:
        """Return the QEMU processes of a host."""
        return self.hosts[name].run("grep -als ^qemu-system /proc/[0-9]*/comm; true").split()

    def left_of_guests(self) -> list[str]:
        """Return what the benches still have of guests: processes, and files of boots."""
        files = [self.hosts[name].run("ls /var/lib/kperflab/overlays").split() for name in BENCHES]
        return [left for names in (*map(self.guests, BENCHES), *files) for left in names]

    @contextmanager
    def client(self, kernel: RealKernel) -> Iterator[Client]:
        """Seed the lab with targets, and a tree of which the server alone has the repository; an operator of it."""
        packed = ["tar", "-c", "-C", str(kernel.work), ".git"]
        bundle = subprocess.run(packed, check=True, capture_output=True, timeout=60).stdout
        place = f"mkdir -p {REPOSITORY} && tar -x -C {REPOSITORY} && chown -R kperflab: {REPOSITORY}"
        subprocess.run([*self.lab.ssh, place], input=bundle, check=True, timeout=60)
        seeds = {"names": BENCHES, "group": GROUP, "memory": MEMORY_MIB, "repository": REPOSITORY}
        token = self.ask(SEED.format(base=kernel.base.commit, **seeds))
        headers = {"Authorization": f"Token {token}"}
        with httpx.Client(
            base_url=self.fleet.url, headers=headers, timeout=60, trust_env=False, follow_redirects=True
        ) as http:
            yield Client(http, kernel)


@contextmanager
def three_hosts(folder: Path, moto: str) -> Iterator[ThreeHosts]:
    """Three empty hosts, a machine that is off, and the inventory of a fleet to be. moto: the address of its S3 server."""
    shared, port = folder / "store", free_port()
    shared.mkdir(mode=0o755)
    with ExitStack() as stack:
        # KVM starts no guest in most namespaces, and the lab would try it again with each kernel.
        hosts = {
            name: stack.enter_context(empty_machine(name, address, {STORE: shared}, has_kvm=False))
            for name, address in ADDRESSES.items()
        }
        script = f"http://{FROM_MACHINES}:{port}/netboot/${{mac}}.ipxe"
        machine = stack.enter_context(StandIn(folder, bootfile=script, memory_mib=MEMORY_MIB))
        yield ThreeHosts(_fleet(hosts, folder, moto, port, _described(machine, folder)), hosts, machine)


def _described(machine: StandIn, folder: Path) -> dict[str, str]:
    """Start the machine's BMC; return what an inventory says of the machine."""
    power = machine.redfish()
    file = folder / f"{MACHINE}.toml"
    file.write_text(DESCRIPTION.format(mac=machine.mac, name=MACHINE, memory=MEMORY_MIB, **power))
    return {"name": MACHINE, "file": str(file), "mac": machine.mac, "bmc_password": machine.password}


def _fleet(hosts: dict[str, Machine], folder: Path, moto: str, port: int, described: dict[str, str]) -> Fleet:
    server, revision = hosts["lab"], commit_of_what_is_here(folder)
    variables = {
        "lab_server_address": server.address,
        "lab_revision": revision,
        "lab_port": port,
        # Other sessions have the network too: nothing listens but on the server's own addresses.
        "lab_bind": server.address,
        "lab_worker_networks": ["127.0.0.0/8"],
        "lab_listen_addresses": [server.address],
        "lab_postgres_port": free_port(),
        "lab_redis_port": free_port(),
        "lab_user_id": 931,
        "lab_netboot_url": f"http://{FROM_MACHINES}:{port}",
        "lab_machines": [described],
        "lab_store": f"s3://{BUCKET}/fleet?endpoint={moto}",
        "lab_store_key_id": KEYS["AWS_ACCESS_KEY_ID"],
        "lab_store_key": KEYS["AWS_SECRET_ACCESS_KEY"],
        "lab_settings": {"KPERFLAB_LOCAL_PATHS": "1", "KPERFLAB_LEASE_S": str(LEASE_S)},
    }
    groups = {
        "all": {"vars": variables, "hosts": {name: reached(host) for name, host in hosts.items()}},
        "lab_server": {"hosts": {"lab": {}}},
        "build_workers": {"hosts": {"lab": {}}},
        "metal_hosts": {"hosts": {"lab": {}}},
        "libvirt_hosts": {"hosts": {name: {"lab_targets": [name]} for name in BENCHES}},
    }
    url = f"http://{server.address}:{port}"
    return Fleet(server, written(groups, folder), url, url, port, True, revision)
