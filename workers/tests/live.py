# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole service of this machine for tests: PostgreSQL, Redis, pages, beat and workers in a home of its own, on fake targets.

    with live_service() as lab:
        number = lab.submission.submit(lab.experiments.spec())
        assert lab.wait(number)["state"] == "done"

Everything is reached as people reach it: `make up`'s own program, REST, signals. `lab.python(code)` runs code in the service's
surroundings for what has no other door.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from kernels.tests.pretend import PretendKernel
from workers.service.leftover_processes import processes
from workers.service.place import ROOT, ServicePlace
from workers.service.supervising import MARK, State, Supervisor

# Starting Django takes each program seconds of a processor that others use too.
UP_S, DONE_S = 400.0, 300.0
OPEN = {"queued", "running"}


def known_symbols() -> list[str]:
    """Every symbol that the lab's own fragments name."""
    # Django is ready where this is called, not where it is imported.
    from lab.submission.prepare import _base_fragments

    text = "\n".join(fragment.text for fragment in _base_fragments())
    return sorted(set(re.findall(r"^(?:# )?CONFIG_(\w+)", text, re.MULTILINE)))


class LiveKernel(PretendKernel):
    """The pretend kernel, which also knows whatever the lab's own fragments ask for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        own = {"EXPERT", "MODULES", "BLOCK", "INODES", "FAST_INODES", "DUMMY", "HZ"}
        more = [name for name in known_symbols() if name not in own]
        (self.work / "scripts/kconfig/known").write_text(" ".join(more) + "\n")
        with (self.work / "Kconfig").open("a") as file:
            file.writelines(f'\nconfig {name}\n\tbool "{name}"\n' for name in more)
        self.base = self._commit("v6.1.7 with more symbols")

    def edited(self, name: str, old: str, new: str) -> Any:
        """See PretendKernel; of this tree's own base."""
        text = self._git("show", f"{self.base.commit}:{name}") + "\n"
        assert text.count(old) == 1
        return self.variant({name: text.replace(old, new)})


@dataclass
class Live:
    """A service that is up. variables: of the environment it was brought up with."""

    home: Path
    port: int
    kernel: LiveKernel
    variables: dict[str, str] = field(default_factory=dict)
    token: str = ""

    @property
    def url(self) -> str:
        """Return the URL of the pages."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> ServicePlace:
        """Return the service's directories."""
        return ServicePlace(self.home)

    def control(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`make up` and its like."""
        command = [sys.executable, "-m", "workers.service.control", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment(), capture_output=True, text=True, timeout=UP_S
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def python(self, code: str, *, check: bool = True) -> str:
        """Run Python code with Django set up on the service's tables; return its output."""
        done = subprocess.run(
            [sys.executable, "-c", f"import workers.app\n{code}"],
            cwd=ROOT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def states(self) -> dict[str, State]:
        """Return the state of each program by name."""
        return {state.name: state for state in Supervisor(self.place).states()}

    def pid(self, program: str) -> int:
        """The process of a program, once it runs."""
        end = monotonic() + UP_S
        while monotonic() < end:
            if pid := self.states()[program].pid:
                return pid
            sleep(0.2)
        raise AssertionError(f"{program} does not run: {self.log(program)[-2000:]}")

    def kill(self, program: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to a program's process; returns which it was."""
        pid = self.pid(program)
        os.kill(pid, number)
        return pid

    def log(self, program: str) -> str:
        """Return a program's log."""
        path = self.place.logs / f"{program}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def processes(self) -> dict[int, str]:
        """Every process that belongs to the service."""
        return processes(self.place)

    def worker_of_other_code(self, code: Path, log: Path, *options: str) -> subprocess.Popen[bytes]:
        """`labctl work` with these options, run from a copy of the sources, as on another host of this lab."""
        with log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "workers.labctl", "work", *options],
                cwd=code,
                env=self._environment() | {"PYTHONPATH": str(code), MARK: str(self.home)},
                stdout=out,
                stderr=out,
            )

    def redis(self) -> Any:
        """A client of the service's Redis."""
        from redis import Redis

        kept = json.loads(self.place.environment.read_text())
        return Redis.from_url(kept["KPERFLAB_REDIS"])

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """The JSON that the API answers; an answer that is none, or says no, fails the test."""
        answer = httpx.request(
            method,
            f"{self.url}/api/v1/{path}",
            headers={"Authorization": f"Token {self.token}"},
            timeout=60,
            follow_redirects=True,
            **more,
        )
        assert answer.is_success, f"{answer.status_code}: {answer.text[:2000]}"
        return answer.json()

    def page(self, path: str) -> str:
        """A page as an operator sees it, who came by the link of this machine's terminal."""
        secret = self.python("from lab.people.sign_in import issue_secret; print(issue_secret())")
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=60) as browser:
            browser.get(f"/sign-in/here/{secret}").raise_for_status()
            return browser.get(path).raise_for_status().text

    def spec(self, patches: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """A description over the pretend kernel: patches by name, as texts; none is a look at the base alone."""
        return {
            "name": "pretend",
            "git": str(self.kernel.work),
            "base": self.kernel.base.commit,
            "target": "fake",
            "patches": [{"name": name, "text": text} for name, text in (patches or {}).items()],
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 2, "iterations": 2, "warmup": 1},
            **more,
        }

    def diff(self, name: str, old: str, new: str) -> str:
        """A patch that replaces one place of one file of the pretend kernel."""
        return self.kernel.diff(self.kernel.edited(name, old, new))

    def submit(self, spec: Mapping[str, Any]) -> int:
        """Submit over REST; returns the experiment's number."""
        return int(self.ask("POST", "experiments/", json=dict(spec))["id"])

    def experiment(self, number: int) -> dict[str, Any]:
        """Return an experiment from the API."""
        experiment: dict[str, Any] = self.ask("GET", f"experiments/{number}/")
        return experiment

    def wait(self, number: int, seconds: float = DONE_S) -> dict[str, Any]:
        """An experiment that has come to an end; pages that do not answer meanwhile are retried."""
        end = monotonic() + seconds
        experiment: dict[str, Any] = {"state": "not reported"}
        while monotonic() < end:
            with suppress(AssertionError, httpx.HTTPError):
                experiment = self.experiment(number)
                if experiment["state"] not in OPEN:
                    return experiment
            sleep(0.3)
        logs = "\n".join(
            f"== {path.name}\n{path.read_text()[-1500:]}" for path in self.place.logs.glob("*.log")
        )
        raise AssertionError(
            f"experiment {number} is still {experiment['state']} after {seconds:.0f} s\n{logs}"
        )

    def _environment(self) -> dict[str, str]:
        mine = {
            key: value for key, value in os.environ.items() if not key.startswith(("KPERFLAB_", "LABCTL_"))
        }
        return mine | {"KPERFLAB_HOME": str(self.home), "PYTHONPATH": str(ROOT)} | self.variables


def copied_code(folder: Path) -> Path:
    """The lab's own sources once more."""
    left_out = shutil.ignore_patterns("tests", "__pycache__", "node_modules", "built")
    for package in ("kernels", "workloads", "lab", "workers", "web"):
        shutil.copytree(ROOT / package, folder / package, ignore=left_out)
    return folder


def free_port() -> int:
    """A port that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


TARGETS = """
from lab.models import Target
import json
Target.objects.filter(name="guest").delete()
for name, fields in json.loads({given!r}).items():
    Target.objects.update_or_create(name=name, defaults={{"driver": "fake", **fields}})
"""
OPERATOR = """
from lab.models import User
from lab.people.tokens import issue_token
user = User.objects.create_user("olga", password=None, role=User.Role.OPERATOR)
print(issue_token(user=user, name="tests", scopes=["read", "submit", "operate"])[1])
"""


@contextmanager
def live_service(
    targets: Mapping[str, Mapping[str, Any]] | None = None, *, home: Path | None = None, **variables: str
) -> Iterator[Live]:
    """Bring a service up, with fake targets of these names and fields, and down afterwards.

    home: where; else a folder that other users may pass through, as PostgreSQL's must, removed at the end.
    """
    own = home or Path(tempfile.mkdtemp(prefix="kperflab-live-", dir="/var/tmp"))
    own.chmod(0o755)
    (own / "kernel").mkdir()
    environment = {"KPERFLAB_LOCAL_PATHS": "1", "KPERFLAB_DISK_GIB": "1", "WEB_CONCURRENCY": "1", **variables}
    lab = Live(own, free_port(), LiveKernel(own / "kernel"), environment)
    try:
        lab.control("stores", "--port", str(lab.port))
        lab.python(TARGETS.format(given=json.dumps(dict(targets or {"fake": {}}))))
        lab.token = lab.python(OPERATOR)
        lab.control("up", "--port", str(lab.port))
        yield lab
    finally:
        lab.control("down", check=False)
        left = lab.processes()
        if home is None:
            shutil.rmtree(own, ignore_errors=True)
        assert left == {}, f"make down left {left}"


def programs(names: Sequence[str]) -> list[str]:
    """The programs that a service with targets of these names has."""
    return sorted(
        [
            "postgres",
            "redis",
            "web",
            "beat",
            "upkeep",
            "builds",
            "targets",
            *(f"target-{name}" for name in names),
        ]
    )
