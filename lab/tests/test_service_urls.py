# SPDX-License-Identifier: GPL-2.0-or-later
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as NotConnected

from lab.environment import open_secrets, read_flag, read_number, read_variable
from lab.errors import SettingWrong
from lab.operations.cache import ForgivingClient, ForgivingRedis
from lab.service_urls import caches, database, mail_server
from lab.tests.fresh_python import run_python
from lab.tests.template_database import begin_with_template

ROOT = Path(__file__).parents[2]


def manage(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    mine = {key: value for key, value in os.environ.items() if not key.startswith("KPERFLAB_")}
    return run_python(["manage.py", *arguments], mine | {"KPERFLAB_HOME": str(home)} | variables, ROOT)


def test_a_secret_may_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "url").write_text("postgres://somewhere/lab\n")
    monkeypatch.setenv("KPERFLAB_X_FILE", str(tmp_path / "url"))
    assert read_variable("KPERFLAB_X") == "postgres://somewhere/lab"


def test_a_variable_and_its_file_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPERFLAB_X", "a")
    monkeypatch.setenv("KPERFLAB_X_FILE", "/b")
    with pytest.raises(SettingWrong, match="KPERFLAB_X and KPERFLAB_X_FILE are both set"):
        read_variable("KPERFLAB_X")


def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPERFLAB_X_FILE", str(tmp_path / "gone"))
    with pytest.raises(SettingWrong, match="gone, which cannot be read: No such file"):
        read_variable("KPERFLAB_X")


def test_an_empty_variable_says_nothing_and_a_missing_one_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KPERFLAB_X", "")
    assert read_variable("KPERFLAB_X", "default") == ""
    assert read_variable("KPERFLAB_Y", "default") == "default"
    assert read_number("KPERFLAB_X", 15) == 15
    assert not read_flag("KPERFLAB_X")
    assert read_flag("KPERFLAB_X", default=True)
    monkeypatch.setenv("KPERFLAB_X", "0")
    assert not read_flag("KPERFLAB_X", default=True)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_what_is_no_sensible_number_is_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPERFLAB_X", text)
    with pytest.raises(SettingWrong, match="KPERFLAB_X"):
        read_number("KPERFLAB_X", 15, least=1)


def test_without_a_url_the_tables_are_in_the_home(tmp_path: Path) -> None:
    assert database("", tmp_path)["NAME"] == str(tmp_path / "kperflab.sqlite3")


def test_a_database_is_reached_over_a_socket_or_the_network(tmp_path: Path) -> None:
    over_socket = database("postgres://lab@%2Frun%2Fpg/lab", tmp_path)
    assert (over_socket["HOST"], over_socket["NAME"], over_socket["USER"]) == ("/run/pg", "lab", "lab")
    assert over_socket["CONN_HEALTH_CHECKS"] is True
    over_network = database("postgres://lab:p%40ss@db.example:5433/lab?sslmode=require", tmp_path)
    assert (over_network["HOST"], over_network["PORT"], over_network["PASSWORD"]) == (
        "db.example",
        5433,
        "p@ss",
    )
    assert over_network["OPTIONS"]["sslmode"] == "require"
    assert over_network["OPTIONS"]["connect_timeout"] == 5


@pytest.mark.parametrize(
    "url", ["mysql://u:hidden@h/db", "hidden", "postgres://u:hidden@h", "postgres://u:hidden@h:x/db"]
)
def test_a_wrong_database_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingWrong, match="KPERFLAB_DATABASE") as raised:
        database(url, tmp_path)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["mail.example:25", "hidden", "http://hidden@h", "smtp://u:hidden@", "smtp://u:hidden@h:x"]
)
def test_a_wrong_mail_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingWrong, match="KPERFLAB_SMTP") as raised:
        mail_server(url)
    assert "hidden" not in str(raised.value)


def test_a_wrong_cache_is_refused_without_its_password() -> None:
    with pytest.raises(SettingWrong, match="KPERFLAB_REDIS") as raised:
        caches("http://:hidden@h/0")
    assert "hidden" not in str(raised.value)


def test_without_redis_the_cache_is_empty_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForgivingClient, "_away_until", 0.0)
    about = caches(f"unix://{tmp_path}/none.sock")["default"]
    cache = ForgivingRedis(about["LOCATION"], about)
    cache.set("a", 1)
    assert cache.get("a", "nothing") == "nothing"
    assert cache.add("a", 1)
    assert cache.get_or_set("a", lambda: 5) == 5
    assert cache.get_many(["a"]) == {}
    assert not cache.delete("a")
    cache.set_many({"a": 1})
    assert not cache.has_key("a")
    with pytest.raises(ValueError, match="not found"):
        cache.incr("a")


def test_a_redis_that_is_away_is_not_asked_for_each_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForgivingClient, "_away_until", 0.0)
    asked: list[Any] = []

    def refuse(self: object, *arguments: object) -> None:
        asked.append(arguments)
        raise NotConnected("away")

    monkeypatch.setattr("django.core.cache.backends.redis.RedisCacheClient.get", refuse)
    about = caches(f"unix://{tmp_path}/none.sock")["default"]
    cache = ForgivingRedis(about["LOCATION"], about)
    for _ in range(5):
        cache.get("a")
    assert len(asked) == 1


@pytest.mark.process
@pytest.mark.parametrize("url", ["https://lab.example", "http://127.0.0.1:8000"])
def test_the_deployment_check_is_clean(url: str, tmp_path: Path) -> None:
    around = {"KPERFLAB_PROXIES": "1", "KPERFLAB_SMTP": "smtp://mail.example"}
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", KPERFLAB_URL=url, **around)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.thorough
@pytest.mark.process
def test_plain_http_for_others_is_remarked_upon(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", KPERFLAB_URL="http://lab.example")
    assert done.returncode != 0
    assert "lab.W001" in done.stderr


@pytest.mark.process
def test_a_wrong_setting_is_one_line_at_the_command_line(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", KPERFLAB_DATABASE="mysql://u:hidden@h/db")
    assert done.returncode != 0
    assert "hidden" not in done.stderr
    assert done.stderr.startswith("manage.py: KPERFLAB_DATABASE is not a PostgreSQL URL")


@pytest.mark.thorough
@pytest.mark.process
def test_with_https_cookies_and_redirects_are_secure(tmp_path: Path) -> None:
    code = (
        "from django.test import Client\n"
        "answer = Client().get('/sign-in/', headers={'host': 'lab.example'})\n"
        "print(answer.status_code, answer.get('location'))\n"
        "answer = Client().get('/sign-in/', secure=True, headers={'host': 'lab.example'})\n"
        "print(answer.get('strict-transport-security'), answer.cookies['csrftoken']['secure'])\n"
    )
    begin_with_template(tmp_path)
    assert manage(tmp_path, "migrate", "--verbosity", "0").returncode == 0
    done = manage(tmp_path, "shell", "--no-imports", "-c", code, KPERFLAB_URL="https://lab.example")
    assert done.stdout.splitlines() == ["301 https://lab.example/sign-in/", "max-age=31536000 True"], (
        done.stderr
    )


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("where", "mode"),
    [
        ("db.example:5432/lab", "verify-full"),
        ("10.1.2.3/lab", "verify-full"),
        ("[2001:db8::1]/lab", "verify-full"),
        ("db.example/lab?sslmode=require", "require"),
        ("db.example/lab?sslmode=disable", "disable"),
        ("127.0.0.1/lab", None),
        ("localhost/lab", None),
        ("%2Frun%2Fpg/lab", None),
    ],
)
def test_a_database_over_the_network_proves_its_name_unless_the_url_says_otherwise(
    where: str, mode: str | None, tmp_path: Path
) -> None:
    assert database(f"postgres://lab:pw@{where}", tmp_path)["OPTIONS"].get("sslmode") == mode


TABLES = """
import django, sys
django.setup()
from django.db import connection
connection.ensure_connection()
connection.cursor().execute("CREATE TABLE IF NOT EXISTS mine (a int)")
"""


@pytest.mark.process
@pytest.mark.hostile
@pytest.mark.parametrize("was", [None, 0o644, 0o666, 0o640])
def test_the_tables_of_one_machine_are_read_by_their_owner_alone(was: int | None, tmp_path: Path) -> None:
    file = tmp_path / "kperflab.sqlite3"
    if was:
        file.touch()
        file.chmod(was)
    environment = {
        "PATH": "/usr/bin",
        "KPERFLAB_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "lab.settings",
    }
    done = run_python(["-c", f"import os; os.umask(0o022)\n{TABLES}"], environment, ROOT)
    assert done.returncode == 0, done.stderr
    kept = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob("kperflab.sqlite3*")}
    assert kept[file.name] == 0o600
    assert set(kept.values()) == {0o600}


@pytest.mark.hostile
@pytest.mark.parametrize("name", ["KPERFLAB_SMTP", "KPERFLAB_DATABASE", "AWS_SECRET_ACCESS_KEY"])
def test_a_file_with_a_password_that_others_may_read_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("smtp://lab:hidden@mail")
    file.chmod(0o644)
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{name}_FILE", str(file))
    assert [line for line in open_secrets() if name in line] == [
        f"{name}_FILE names {file}, which other users may read (0644): chmod 600 {file}"
    ]
    file.chmod(0o600)
    assert not [line for line in open_secrets() if name in line]
