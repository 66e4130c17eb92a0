# SPDX-License-Identifier: GPL-2.0-or-later
"""docker-compose.yml: images are built, everything comes up closed as it says, an experiment goes through, nothing is left.

The Debian, PostgreSQL and Redis below are made here, since tests reach no image registry.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from kernels.processes.stats import read_process
from workers.tests import smoke
from workers.tests.debianbase import ROOT, caches_held
from workers.tests.emptymachine import free_port
from workers.tests.engine import Engine, engine
from workers.tests.live import LiveKernel
from workers.tests.machines import await_true

pytestmark = [
    pytest.mark.containers,
    pytest.mark.skipif(
        shutil.which("podman") is None, reason="podman is missing: ./bootstrap dev installs it"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="podman's networks here need root"),
]

SERVICES = ("postgres", "redis", "web", "beat", "upkeep", "builds", "guest")
CHECKED = ("postgres", "redis", "web")
HOME = "/var/lib/kperflab"
PRETEND = f"{HOME}/pretend"
AGAIN_S = 400.0
# A chore that beat alone sends, once a minute, and upkeep does where it is due.
DUE = """
from lab.models import Chore
from django.utils import timezone
Chore.objects.filter(name="forget_silent_workers").update(done_at=None)
print(timezone.now().isoformat())
"""
# The kinds of queues whose workers began since a time; and "chore", if the one above was done since another.
AT_WORK = """
from lab.models import Chore, Worker
kinds = {{queue.partition(".")[0] for row in Worker.objects.filter(started_at__gt="{since}") for queue in row.queues}}
done = Chore.objects.filter(name="forget_silent_workers", done_at__gt="{due}").exists()
print(*sorted(kinds | ({{"chore"}} if done else set())))
"""
# The target that every lab begins with.
GUEST = "guest"
# Some boots of a real kernel by emulation; where the build is not kept, compiling it comes before.
REAL_S = 3000.0
REAL = """
from lab.models import Tree
Tree.objects.get_or_create(name="debian-6.1", defaults=dict(kind="git", location="{location}", default_revision="{base}"))
"""
BOOTED = """
import json
from lab.models import Run
rows = Run.objects.filter(target__name="guest").select_related("variant__build")
print(json.dumps([[one.state, one.problem, one.variant.build.release, one.environment] for one in rows]))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Everything up, on a port of its own."""
    secrets = tmp_path_factory.mktemp("secrets") / "lab"
    subprocess.run([ROOT / "containers/secrets-once", secrets], check=True, timeout=30)
    port = str(free_port())
    up = engine(
        f"kperflabtest{os.getpid()}",
        LAB_SECRETS=str(secrets),
        LAB_PORT=port,
        LAB_URL=f"http://127.0.0.1:{port}",
        LAB_TARGETS=f"{smoke.TARGET} {GUEST}",
        KPERFLAB_LOCAL_PATHS="1",
        PARTS="build",
        POSTGRES_IMAGE="localhost/kperflab-postgres",
        REDIS_IMAGE="localhost/kperflab-redis",
    )
    up.environment["BASE"] = base = up.base()
    with caches_held():
        up.build("kperflab-postgres", "containers/postgres", base)
        up.build("kperflab-redis", "containers/redis", base)
        # One after the other: podman-compose would build both at once, and apt locks what it fetched.
        for service in ("prepare", "guest"):
            up.compose("build", service)
    try:
        up.compose("up", "--detach", "--no-build")
        smoke.wait_for_page(up.environment["LAB_URL"] + "/health/", 400)
        yield up
    finally:
        logs = [f"--- {name}\n{log(up, name)}" for name in ("prepare", *SERVICES)]
        up.compose("down", "--volumes", "--timeout=10", check=False)
        print("\n".join(logs))
    assert up.left() == []


def name_of(lab: Engine, service: str) -> str:
    return f"{lab.project}_{service}_1"


def log(lab: Engine, service: str) -> str:
    return lab.log(name_of(lab, service))


def inside(lab: Engine, service: str, command: str, stdin: bytes = b"") -> str:
    return lab.podman("exec", "-i", name_of(lab, service), "sh", "-c", command, stdin=stdin)


def await_healthy(lab: Engine, service: str) -> None:
    """Wait until a service is well by its own check. podman leaves the timers of checks to systemd, which is not here."""
    deadline = time.monotonic() + AGAIN_S
    while True:
        try:
            lab.podman("healthcheck", "run", name_of(lab, service))
            return
        except AssertionError:
            assert time.monotonic() < deadline, log(lab, service)
            time.sleep(1)


def first_process(lab: Engine, service: str) -> int:
    """Return the number of a container's first process; 0 if it does not run."""
    return int(lab.podman("inspect", "--format={{.State.Pid}}", name_of(lab, service)))


def shell(lab: Engine, program: str) -> str:
    """Run a program in the lab's own Python; return the last line that it prints."""
    return inside(lab, "web", "python3 /opt/kperflab/manage.py shell", program.encode()).splitlines()[-1]


def test_services_become_healthy_by_their_own_checks(lab: Engine) -> None:
    for service in CHECKED:
        await_healthy(lab, service)


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_runs_as_root_has_a_capability_or_may_write_its_own_files(lab: Engine, service: str) -> None:
    assert inside(lab, service, "id -u").strip() != "0"
    status = dict(line.split(":", 1) for line in inside(lab, service, "cat /proc/self/status").splitlines())
    assert {
        name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")
    } == dict.fromkeys(("CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    assert status["NoNewPrivs"].strip() == "1"
    roots = [
        line.split()
        for line in inside(lab, service, "cat /proc/mounts").splitlines()
        if line.split()[1] == "/"
    ]
    assert "ro" in roots[-1][3].split(",")


def test_the_passwords_are_in_no_environment_and_no_arguments(lab: Engine) -> None:
    secrets = Path(lab.environment["LAB_SECRETS"])
    passwords = [(secrets / name).read_text().strip() for name in ("postgres_password", "redis_password")]
    assert len(set(passwords)) == 2
    for service in SERVICES:
        seen = inside(lab, service, "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' ' '; true")
        assert not [password for password in passwords if password in seen], service


def test_the_database_is_reached_from_the_labs_network_alone(lab: Engine) -> None:
    published = lab.podman("ps", "--format={{.Names}} {{.Ports}}").splitlines()
    assert {line.split()[0] for line in published if "->" in line} == {name_of(lab, "web")}


def test_libvirts_session_answers_where_guests_boot(lab: Engine) -> None:
    assert "QEMU" in inside(lab, "guest", "virsh -c qemu:///session version")


def kill(lab: Engine, service: str) -> int:
    """Kill a service's program; return the number of its container's first process, the engine's init, which ends with it."""
    first = first_process(lab, service)
    numbers = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    children = [child for number in numbers if (child := read_process(int(number)))]
    assert children, log(lab, service)
    # It starts one program; later ones are processes whose parents ended, which it adopts.
    os.kill(min(children, key=lambda child: child.started).pid, signal.SIGKILL)
    return first


def await_another(lab: Engine, service: str, ended: int) -> None:
    """Wait until a container runs with another first process."""
    await_true(lambda: first_process(lab, service) not in (0, ended), f"{service} runs again", AGAIN_S)


def test_a_service_whose_program_is_killed_is_started_again_and_answers(lab: Engine) -> None:
    """The experiments below are carried out by the restarted services."""
    since = shell(lab, DUE)
    for service in SERVICES:
        await_another(lab, service, kill(lab, service))
        if service in CHECKED:
            await_healthy(lab, service)
    smoke.wait_for_page(lab.environment["LAB_URL"] + "/ready/", AGAIN_S)
    program, whole = AT_WORK.format(since=since, due=shell(lab, DUE)), "build chore target upkeep"
    await_true(lambda: shell(lab, program) == whole, f"at work: {whole}", AGAIN_S)


def test_an_experiment_goes_through_the_containers(lab: Engine, tmp_path: Path) -> None:
    kernel = LiveKernel(tmp_path)
    body = smoke.description(kernel)
    packed = subprocess.run(
        ["tar", "-c", "-C", str(kernel.work), ".git"], check=True, capture_output=True, timeout=60
    ).stdout
    inside(lab, "web", f"mkdir -p {PRETEND} && tar -x --no-same-owner -C {PRETEND}", packed)
    program = smoke.seed(kernel, f"{PRETEND}/.git").encode()
    token = inside(lab, "web", "python3 /opt/kperflab/manage.py shell", program).split()[-1]
    experiment = smoke.carried_out(lab.environment["LAB_URL"], token, body)
    assert experiment["state"] == "done", experiment
    assert experiment["exit_code"] in (0, 1, 2), experiment


def test_a_real_kernel_boots_in_the_guests_container(lab: Engine) -> None:
    tree = settings.HOME / "trees/debian-6.1.git"
    if not tree.exists():
        pytest.skip("no real kernel is kept here: `make kernel` imports and builds one")
    base = subprocess.run(
        ["git", f"--git-dir={tree}", "rev-parse", "main"], check=True, capture_output=True, timeout=60
    )
    commit = base.stdout.decode().strip()
    _hand_over(lab, "web", f"{HOME}/real", tree, ["."])
    # What was built here is built there: the keys are those of equal inputs.
    _hand_over(lab, "builds", HOME, settings.HOME, ["objects/configs", "keys", *_kernels_of(commit)])
    program = REAL.format(location=f"{HOME}/real", base=commit) + smoke.TOKEN
    token = inside(lab, "web", "python3 /opt/kperflab/manage.py shell", program.encode()).split()[-1]
    body = {
        "name": "a real kernel",
        # As here: a kernel made of one tree is not that of another.
        "tree": "debian-6.1",
        "base": commit,
        "target": GUEST,
        "cases": [{"workload": "showgids", "preset": "smoke", "profile": False}],
        "measure": {"boots": 2, "iterations": 2, "warmup": 1},
    }
    experiment = smoke.carried_out(lab.environment["LAB_URL"], token, body, seconds=REAL_S)
    assert experiment["state"] == "done", experiment
    said = inside(lab, "web", "python3 /opt/kperflab/manage.py shell", BOOTED.encode())
    rows = json.loads(said.splitlines()[-1])
    assert len(rows) >= 2
    for state, problem, release, environment in rows:
        assert (state, problem) == ("done", ""), rows
        assert environment["guest"]["release"] == release
        assert environment["host"]["accelerator"] == "tcg"


def _kernels_of(commit: str) -> list[str]:
    """The artifacts of this revision alone, by their place below the home."""
    paths = (settings.HOME / "artifacts").glob("*/metadata.json")
    return [
        f"artifacts/{path.parent.name}"
        for path in paths
        if json.loads(path.read_text())["metadata"]["revision"] == commit
    ]


def _hand_over(lab: Engine, service: str, there: str, here: Path, names: list[str]) -> None:
    """Copy files of this machine into a container's volume."""
    packed = subprocess.run(
        ["tar", "-c", "-C", str(here), *names], check=True, capture_output=True, timeout=300
    )
    inside(lab, service, f"mkdir -p {there} && tar -x --no-same-owner -C {there}", packed.stdout)
