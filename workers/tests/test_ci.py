# SPDX-License-Identifier: GPL-2.0-or-later
"""The pieces of docs/ci, run as a forge would run them, against a live service with fake guests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from django.core.cache import cache
from django.db import connections

from lab.errors import KeyBusy
from lab.models import Experiment, Target, Tree, User
from lab.people.tokens import issue_token
from lab.submission.duplicates import submit_under_key
from lab.tests.factories import make_user
from lab.tests.fetchers import a_fetcher
from workers import work
from workers.tests.conftest import FakeLab, opens

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")


@pytest.fixture
def token(db: None) -> str:
    return issue_token(user=make_user("ci"), name="ci", scopes=["read", "submit"])[1]


@pytest.fixture
def checkout(fake_lab: FakeLab, live_server: Any, settings: Any, tmp_path: Path) -> Path:
    """A clone of the pretend tree with ci/ in it and a lab that knows the tree; a loop that works on what comes."""
    cache.clear()
    settings.PUBLIC_URL = live_server.url
    Target.objects.get_or_create(name="guest", defaults={"driver": "libvirt", "vcpus": 2, "memory_mib": 1024})
    kernel = fake_lab.kernel
    Tree.objects.create(
        name="pretend", kind="git", location=str(kernel.work), default_revision=kernel.base.commit
    )
    place = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", str(kernel.work), str(place)], check=True)
    (place / "ci").mkdir()
    shutil.copy(CI / "kperflab.sh", place / "ci")
    description = json.loads((CI / "kperflab.json").read_text()) | {
        "tree": "pretend",
        "base": kernel.base.commit,
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 5, "iterations": 2, "warmup": 1},
    }
    (place / "ci" / "kperflab.json").write_text(json.dumps(description))
    return place


@pytest.fixture
def worker(checkout: Path) -> Iterator[None]:
    stopped = Event()

    def works() -> None:
        work.work(stopped)
        connections.close_all()

    thread = Thread(target=works)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.fixture(autouse=True)
def fetcher(checkout: Path) -> Iterator[None]:
    """The tree is one of git, so a worker looks at it before a description is taken."""
    with a_fetcher():
        yield


@pytest.fixture
def series(fake_lab: FakeLab, checkout: Path) -> str:
    """A range of one commit, whose kernel's guests behave as the test says by the name of its switch."""
    commit = fake_lab.kernel.edited("fs/inode.c", "\tWARN_HERE();\n", "").commit
    subprocess.run(["git", "fetch", "--quiet", "origin", commit], cwd=checkout, check=True)
    return f"{fake_lab.kernel.base.commit}..{commit}"


def run(command: str, checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=checkout,
        env=inherited | {"KPERFLAB_POLL": "0.5", "no_proxy": "*"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def behaves(fake_lab: FakeLab, ns: float | None) -> None:
    def script(_request: object) -> object:
        wild = 700.0 if len(fake_lab.driver.requests) % 2 else 1400.0
        return opens(wild if ns is None else ns + len(fake_lab.driver.requests) % 3)

    fake_lab.scripts["series"] = script  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("ns", "code"),
    [
        pytest.param(800.0, 0, marks=pytest.mark.thorough),
        (1250.0, 1),
        pytest.param(None, 2, marks=pytest.mark.thorough),
    ],
)
def test_the_script_ends_with_the_verdict_and_leaves_reports(
    ns: float | None,
    code: int,
    fake_lab: FakeLab,
    checkout: Path,
    series: str,
    worker: None,
    live_server: Any,
    token: str,
) -> None:
    behaves(fake_lab, ns)
    command = f"sh ci/kperflab.sh {series} ci/kperflab.json"
    done = run(command, checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN=token)
    assert done.returncode == code, done.stderr
    experiment = Experiment.objects.get()
    assert (experiment.submitter, experiment.state) == (User.objects.get(username="ci"), "done")
    assert f"{live_server.url}/experiments/{experiment.pk}/" in done.stderr
    assert "ns_per_open" in done.stdout
    assert (checkout / "kperflab.md").read_text() == done.stdout
    assert ET.parse(checkout / "kperflab.junit.xml").getroot().tag == "testsuites"


def test_a_mbox_is_taken_as_well_and_a_lab_that_fails_is_3(
    fake_lab: FakeLab,
    checkout: Path,
    series: str,
    worker: None,
    live_server: Any,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("workers.loop.build_claimed", fails)
    command = (
        f"git format-patch -q --stdout {series} >topic.mbox; sh ci/kperflab.sh topic.mbox ci/kperflab.json"
    )
    done = run(command, checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN=token)
    assert done.returncode == 3, done.stderr
    assert "failed" in done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tree": "pretent"}, "pretend"),
        ({"cases": [{"workload": "showgid"}]}, "showgids"),
        ({"base": "nowhere"}, "nowhere"),
    ],
)
def test_what_the_lab_does_not_take_is_64_with_its_reason(
    change: dict[str, Any], said: str, checkout: Path, series: str, live_server: Any, token: str
) -> None:
    place = checkout / "ci" / "kperflab.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    command = f"sh ci/kperflab.sh {series} ci/kperflab.json"
    done = run(command, checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN=token)
    assert done.returncode == 64
    assert said in done.stderr
    assert not Experiment.objects.exists()


def test_a_first_request_that_the_lab_still_works_on_is_waited_for(
    fake_lab: FakeLab,
    checkout: Path,
    series: str,
    worker: None,
    live_server: Any,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a proxy that gave up on the first request."""
    in_progress = iter([True, True])

    def under_key(**arguments: Any) -> Any:
        if next(in_progress, False):
            raise KeyBusy("the first request with this key is in progress; try again in a moment")
        return submit_under_key(**arguments)

    monkeypatch.setattr("web.api.submission.submit_under_key", under_key)
    behaves(fake_lab, 1250.0)
    command = f"sh ci/kperflab.sh {series} ci/kperflab.json"
    done = run(command, checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN=token)
    assert done.returncode == 1, done.stderr
    assert Experiment.objects.get().state == "done"


def test_the_labctl_line_of_the_guide_submits_as_it_stands(
    checkout: Path, series: str, live_server: Any, token: str
) -> None:
    guide = (CI.parent / "howto" / "ci.md").read_text()
    (line,) = re.findall(r"^\$ (labctl submit .*)$", guide, re.MULTILINE)
    base, _, tip = series.partition("..")
    for command in (f"checkout --quiet {tip}", f"update-ref refs/remotes/origin/main {base}"):
        subprocess.run(["git", *command.split()], cwd=checkout, check=True)
    # This lab has one tree, whose base has no tag.
    line = line.replace("debian-6.1", "pretend").replace("v6.1.192", base).removesuffix(" --wait")
    variables = {"LABCTL_SERVER": live_server.url, "LABCTL_TOKEN": token}
    done = run(f"{Path(sys.executable).parent}/{line}", checkout, PYTHONPATH=str(ROOT), **variables)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == Experiment.objects.get().pk


def test_a_wrong_token_an_unknown_range_and_nobody_there_are_told(
    checkout: Path, series: str, live_server: Any, token: str
) -> None:
    command = "sh ci/kperflab.sh {} ci/kperflab.json"
    done = run(command.format(series), checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN="wrong")
    assert done.returncode == 64
    assert "token" in done.stderr.lower()
    done = run(
        command.format("nowhere..else"), checkout, KPERFLAB_SERVER=live_server.url, KPERFLAB_TOKEN=token
    )
    assert done.returncode == 64
    done = run(command.format(series), checkout, KPERFLAB_SERVER="http://127.0.0.1:9", KPERFLAB_TOKEN=token)
    assert done.returncode == 3


@pytest.mark.parametrize(("status", "code"), [(429, 3), (503, 3), (422, 64)])
def test_a_lab_that_is_busy_is_not_an_input_that_is_wrong(
    series: str, checkout: Path, tmp_path: Path, status: int, code: int
) -> None:
    """Its curl has retried by then: the script gets only the last answer."""
    (tmp_path / "curl").write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
        f'echo \'{{"detail": "too many at once"}}\' >"$2"; printf {status}\n'
    )
    (tmp_path / "curl").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    address = {"KPERFLAB_SERVER": "http://lab.example", "KPERFLAB_TOKEN": "t", "PATH": path}
    done = run(f"sh ci/kperflab.sh {series} ci/kperflab.json", checkout, **address)
    assert done.returncode == code, done.stderr
    assert "too many at once" in done.stderr


def test_who_waits_too_long_is_told_and_the_experiment_goes_on(
    checkout: Path, series: str, live_server: Any, token: str
) -> None:
    """Nobody works on it here."""
    command = f"sh ci/kperflab.sh {series} ci/kperflab.json"
    variables = {"KPERFLAB_SERVER": live_server.url, "KPERFLAB_TOKEN": token, "KPERFLAB_MINUTES": "0"}
    done = run(command, checkout, **variables)
    assert done.returncode == 3
    assert "takes too long" in done.stderr
    assert Experiment.objects.get().state == "queued"


@pytest.mark.parametrize(("ns", "code"), [(1250.0, 1), pytest.param(None, 0, marks=pytest.mark.thorough)])
def test_githubs_step_runs_as_it_stands(
    ns: float | None,
    code: int,
    fake_lab: FakeLab,
    checkout: Path,
    series: str,
    worker: None,
    live_server: Any,
    token: str,
) -> None:
    behaves(fake_lab, ns)
    base, _, head = series.partition("..")
    known = {
        "vars.KPERFLAB_SERVER": live_server.url,
        "secrets.KPERFLAB_TOKEN": token,
        "github.event.pull_request.base.sha": base,
        "github.event.pull_request.head.sha": head,
    }
    steps = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["compare"]["steps"]
    assert set(EXPRESSION.findall(json.dumps(steps))) == set(known)
    (step,) = [step for step in steps if "run" in step]
    environment = {
        name: EXPRESSION.sub(lambda match: known[match[1]], str(value)) for name, value in step["env"].items()
    }
    done = run(step["run"], checkout, GITHUB_STEP_SUMMARY=str(checkout / "summary"), **environment)
    assert done.returncode == code, done.stderr
    assert (checkout / "summary").read_text() == (checkout / "kperflab.md").read_text()
    assert ("::warning::" in done.stdout) is (ns is None)


@pytest.mark.parametrize(("ns", "code"), [(800.0, 0), pytest.param(None, 2, marks=pytest.mark.thorough)])
def test_gitlabs_script_runs_as_it_stands(
    ns: float | None,
    code: int,
    fake_lab: FakeLab,
    checkout: Path,
    series: str,
    worker: None,
    live_server: Any,
    token: str,
) -> None:
    behaves(fake_lab, ns)
    base, _, head = series.partition("..")
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["kperflab"]
    environment = {
        "KPERFLAB_SERVER": live_server.url,
        "KPERFLAB_TOKEN": token,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_COMMIT_SHA": head,
        **{name: str(value) for name, value in job["variables"].items()},
    }
    done = run("\n".join(job["script"]), checkout, **environment)
    assert done.returncode == code, done.stderr
    assert job["allow_failure"]["exit_codes"] == 2
    for name in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (checkout / name).is_file()


def test_the_example_is_a_description_the_lab_takes() -> None:
    from lab.experiments.spec import spec_from_mapping

    spec = spec_from_mapping(json.loads((CI / "kperflab.json").read_text()))
    assert spec.tree == "debian-6.1"
