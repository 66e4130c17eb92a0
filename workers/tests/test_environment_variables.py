# SPDX-License-Identifier: GPL-2.0-or-later
"""Every documented variable of the environment does what it says, in a process that starts with it; no other is read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.tests.fresh_python import run_python

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"KPERFLAB_[A-Z][A-Z0-9_]*[A-Z0-9]")
# Where people read of variables, and where the lab reads them.
DOCUMENTS: tuple[str, ...] = (
    "README.md",
    "SECURITY.md",
    "GLOSSARY.md",
    "CONTRIBUTING.md",
    "docs/**/*",
    "ansible/**/*",
)
DOCUMENTS += ("docker-compose*.yml", "containers/**/*", "lab/settings.py")
CODE = (
    "kernels/**/*.py",
    "workloads/**/*.py",
    "lab/**/*.py",
    "web/**/*.py",
    "workers/**/*.py",
    "docs/ci/*.sh",
)

PRELUDE = """
import json, sys
import workers.app
from django.conf import settings
from pathlib import Path
from django.test import RequestFactory
request = RequestFactory().get("/", REMOTE_ADDR="10.1.2.3", HTTP_X_FORWARDED_FOR="192.0.2.7, 198.51.100.9")
def refused(call):
    try:
        call()
    except Exception as exc:
        return str(exc)
    return ""
"""


@dataclass(frozen=True)
class Effect:
    """A value of a variable, an expression over the lab's own code, and its value then; by default it is another one.

    also: further variables. refused: the expression is empty where nothing is refused, as it is without the variable.
    """

    value: str
    expression: str
    expected: object
    imports: str = ""
    also: tuple[tuple[str, str], ...] = ()
    refused: bool = False


UP = "from workers.service.up import service_options"
PLACES = "from lab.submission.git_addresses import checked_location; from lab.models import User"
SUBMITTER = "User(username='a', role='submitter')"

EFFECTS: dict[str, Effect] = {
    "KPERFLAB_HOME": Effect("{tmp}/elsewhere", "settings.HOME.name", "elsewhere"),
    "KPERFLAB_DATABASE": Effect(
        "postgres://me@db.example:5433/lab?sslmode=disable",
        "[connection.vendor, *(str(connection.settings_dict[k]) for k in ('HOST', 'PORT', 'NAME', 'USER'))]",
        ["postgresql", "db.example", "5433", "lab", "me"],
        "from django.db import connection",
    ),
    "KPERFLAB_REDIS": Effect(
        "redis://:pw@r.example:6380/0",
        "refused(workers.app.over_the_broker) or workers.app.app.conf.broker_url",
        "redis://:pw@r.example:6380/0",
    ),
    "KPERFLAB_CHECK_HOURS": Effect("7", "settings.CHECK_HOURS", 7.0),
    "KPERFLAB_CHECK_KERNEL": Effect(
        "a" * 64,
        "refused(lambda: known_kernel(None)) or known_kernel(None)",
        "a" * 64,
        "from lab.targets.health_checks import known_kernel",
    ),
    "KPERFLAB_LEASE_S": Effect("33", "lease_seconds()", 33.0, "from lab.runs.claiming import lease_seconds"),
    "KPERFLAB_DISK_GIB": Effect(
        "7", "least_free(1 << 40, builds=True)", 7 << 30, "from workers.readiness import least_free"
    ),
    "KPERFLAB_TARGETS": Effect(
        "guest, none-such",
        "(call_command('migrate', verbosity=0), Target.objects.create(name='other'), targets_here())[2]",
        ["guest"],
        "from django.core.management import call_command; from lab.models import Target; "
        "from workers.service.targets import targets_here",
    ),
    "KPERFLAB_STATIC": Effect(
        "{tmp}/static",
        "[str(settings.STATIC_ROOT)[-7:], type(storages['staticfiles']).__name__]",
        ["/static", "CompressedManifestStaticFilesStorage"],
        "from django.core.files.storage import storages",
    ),
    "KPERFLAB_HOSTS": Effect(
        "a.example,lab.example",
        "refused(lambda: RequestFactory().get('/', HTTP_HOST='lab.example').get_host()) or 'answered'",
        "answered",
    ),
    "KPERFLAB_PRIVATE": Effect(
        "1",
        "may(AnonymousUser(), 'read')",
        False,
        "from django.contrib.auth.models import AnonymousUser; from lab.people.permissions import may",
    ),
    "KPERFLAB_LOCAL_PATHS": Effect(
        "1",
        f"'only operators' in refused(lambda: checked_location('/srv/linux', {SUBMITTER}))",
        False,
        PLACES,
    ),
    "KPERFLAB_PRIVATE_ADDRESSES": Effect(
        "1",
        f"refused(lambda: checked_location('https://127.0.0.1/linux.git', {SUBMITTER}))",
        "",
        PLACES,
        refused=True,
    ),
    "KPERFLAB_LORE": Effect(
        "",
        "refused(lambda: check_message('x@example.org'))[:26]",
        "this site cannot reach lor",
        "from lab.submission.received_series import check_message",
    ),
    "KPERFLAB_PROXIES": Effect(
        "1", "client_address(request)", "198.51.100.9", "from web.addresses import client_address"
    ),
    "KPERFLAB_DEBUG": Effect("1", "settings.DEBUG", True),
    "KPERFLAB_URL": Effect(
        "https://lab.example/",
        "[settings.PUBLIC_URL, settings.SESSION_COOKIE_SECURE, 'lab.example' in settings.ALLOWED_HOSTS]",
        ["https://lab.example", True, True],
    ),
    "KPERFLAB_NETBOOT_URL": Effect(
        "http://10.20.0.1:8000",
        "refused(netboot_url) or netboot_url()",
        "http://10.20.0.1:8000",
        "from lab.targets.netboot.address import netboot_url",
    ),
    "KPERFLAB_HOOKS_PRIVATE": Effect(
        "1",
        "refused(lambda: check_url('http://127.0.0.1/hook', private=settings.HOOKS_PRIVATE))",
        "",
        "from lab.hooks.outgoing_http import check_url",
        refused=True,
    ),
    "KPERFLAB_SMTP": Effect(
        "smtp://me:pw@mail.example:2525",
        "[getattr(sends, name, '') for name in ('host', 'port', 'username', 'password')]",
        ["mail.example", 2525, "me", "pw"],
        "from django.core.mail import get_connection; sends = get_connection()",
    ),
    "KPERFLAB_MAIL_FROM": Effect(
        "lab@example.org",
        "EmailMessage().from_email",
        "lab@example.org",
        "from django.core.mail import EmailMessage",
    ),
    "KPERFLAB_STORE": Effect(
        "{tmp}",
        "lab_store().address if settings.STORAGES.get('artifacts') or lab_store() else ''",
        "{tmp}",
        "from lab.storage.store import lab_store",
    ),
    "KPERFLAB_FRONT": Effect("0", "settings.FRONT", False),
    "KPERFLAB_VOUCHED": Effect(
        "https://lab.example/linux.git refs/heads/master refs/tags/v6.* /srv/linux refs/tags/ours-*",
        "{address: list(refs) for address, refs in settings.VOUCHED.items()}",
        {
            "https://lab.example/linux.git": ["refs/heads/master", "refs/tags/v6.*"],
            "/srv/linux": ["refs/tags/ours-*"],
        },
    ),
    "KPERFLAB_CACHE_GIB": Effect(
        "3", "most_bytes(settings.HOME)", 3 << 30, "from workers.artifact_transfer import most_bytes"
    ),
    "KPERFLAB_KEEP_DAYS": Effect("17", "settings.KEEP_DAYS", 17.0),
    "KPERFLAB_LOG": Effect(
        "json",
        "type(logging.getLogger().handlers[0].formatter).__name__",
        "OneObject",
        "import logging; from lab.operations.logs import set_up; set_up()",
    ),
    "KPERFLAB_METRICS_FROM": Effect(
        "10.1.0.0/16,fd00::/8", "_from_a_network(request)", True, "from web.access import _from_a_network"
    ),
    "KPERFLAB_LISTEN": Effect("192.0.2.5", "service_options(8000).database.address", "192.0.2.5", UP),
    "KPERFLAB_POSTGRES_PORT": Effect("55432", "service_options(8000).database.port", 55432, UP),
    "KPERFLAB_REDIS_PORT": Effect("56379", "service_options(8000).redis.port", 56379, UP),
    "KPERFLAB_BIND": Effect("127.0.0.2", "service_options(8000).bind", "127.0.0.2", UP),
    "KPERFLAB_PLAIN": Effect(
        "1",
        "refused(lambda: service_options(8000))[:71]",
        "",
        UP,
        (("KPERFLAB_BIND", "192.0.2.1"),),
        refused=True,
    ),
}
# Read by a script for continuous integration, whose tests start it with them.
OF_CI = dict.fromkeys(
    ("KPERFLAB_SERVER", "KPERFLAB_TOKEN", "KPERFLAB_MINUTES", "KPERFLAB_POLL"), "workers/tests/test_ci.py"
)
# Read by the tests themselves, as their documentation says.
OF_TESTS = {"KPERFLAB_TEST_DATABASE": "lab/tests/state_root.py"}
# Set by the service for its own processes, never by people.
INTERNAL = {"KPERFLAB_SERVICE"}


def names_in(*patterns: str) -> set[str]:
    """Return the variables that files name, without the _FILE that any may have after its name."""
    files = {file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file()}
    texts = [
        file.read_text(errors="replace") for file in files if "tests" not in file.relative_to(ROOT).parts
    ]
    return {name.removesuffix("_FILE") for text in texts for name in NAME.findall(text)}


def read_names() -> set[str]:
    """Return the variables that the lab's code reads: settings.py by its code, not by its documentation."""
    settings = (ROOT / "lab/settings.py").read_text().split('"""', 2)[2]
    elsewhere = names_in(*(pattern for pattern in CODE if pattern != "lab/**/*.py"))
    lab = {
        name.removesuffix("_FILE")
        for file in ROOT.glob("lab/**/*.py")
        if "tests" not in file.relative_to(ROOT).parts and file.name != "settings.py"
        for name in NAME.findall(file.read_text())
    }
    return elsewhere | lab | set(NAME.findall(settings))


def answers(code: str, variables: Mapping[str, str]) -> object:
    """Return what a fresh process prints as JSON at its end, started with these variables of the lab and no others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KPERFLAB_")}
    done = run_python(["-c", PRELUDE + code], clean | dict(variables), ROOT)
    assert done.returncode == 0, done.stderr
    printed: object = json.loads(done.stdout.splitlines()[-1])
    return printed


def test_every_documented_variable_has_a_test_of_its_effect() -> None:
    assert names_in(*DOCUMENTS) - set(EFFECTS) - set(OF_CI) - set(OF_TESTS) - INTERNAL == set()


def test_every_documented_variable_is_read() -> None:
    assert names_in(*DOCUMENTS) - read_names() - set(OF_TESTS) == set()


def test_every_variable_that_is_read_is_documented() -> None:
    assert read_names() - names_in(*DOCUMENTS) - INTERNAL == set()


@pytest.mark.parametrize(("name", "file"), sorted((OF_CI | OF_TESTS).items()))
def test_a_variable_of_a_script_is_set_where_its_tests_start_it(name: str, file: str) -> None:
    assert name in (ROOT / file).read_text()


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_a_variable_takes_effect_in_a_fresh_process(name: str, tmp_path: Path) -> None:
    effect = EFFECTS[name]
    code = f"{effect.imports}\nprint(json.dumps({effect.expression}))"
    home = {"KPERFLAB_HOME": str(tmp_path / "home")} | dict(effect.also)
    value = effect.value.format(tmp=tmp_path)
    expected = effect.expected
    if isinstance(expected, str):
        expected = expected.format(tmp=tmp_path)
    assert answers(code, home | {name: value}) == expected
    assert not effect.refused or answers(code, home) != expected


@pytest.mark.parametrize("name", ["KPERFLAB_DATABASE", "KPERFLAB_KEEP_DAYS"])
def test_a_variable_may_be_in_a_file(name: str, tmp_path: Path) -> None:
    effect = EFFECTS[name]
    file = tmp_path / "value"
    file.write_text(effect.value + "\n")
    code = f"{effect.imports}\nprint(json.dumps({effect.expression}))"
    home = {"KPERFLAB_HOME": str(tmp_path / "home")}
    assert answers(code, home | {f"{name}_FILE": str(file)}) == effect.expected
