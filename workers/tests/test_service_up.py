# SPDX-License-Identifier: GPL-2.0-or-later
"""Decisions of `make up` before anything starts, and its errors."""

from __future__ import annotations

import configparser
import json
import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.environment import adopt, read_variable
from lab.errors import SettingWrong
from workers.errors import MachineUnfit, ServiceDown, ServiceFailed
from workers.service import leftover_processes as left
from workers.service import postgres, programs, redis, up
from workers.service.place import ServicePlace, folder_of
from workers.service.programs import Program, ServiceOptions
from workers.service.supervising import MARK, State, Supervisor, environment

OPTIONS = ServiceOptions("127.0.0.1", 8000, True, True, postgres.PostgresNetwork(), redis.RedisNetwork())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServicePlace:
    """A place whose sockets are below the test's own folder, and where everybody runs as ourselves."""
    monkeypatch.setattr(ServicePlace, "sockets", property(lambda self: self.home / "run"))
    for module in ("postgres", "redis"):
        monkeypatch.setattr(f"workers.service.{module}.account", lambda name: None)
    service = ServicePlace(tmp_path / "home")
    service.home.mkdir()
    service.make()
    return service


def a_version(folder: Path, version: str) -> None:
    (folder / version / "bin").mkdir(parents=True)
    (folder / version / "bin/postgres").touch()


def test_the_newest_postgresql_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path)
    for version in ("9.6", "15", "16"):
        a_version(tmp_path, version)
    assert postgres.programs(tmp_path / "none") == tmp_path / "16/bin"


def test_a_cluster_is_served_by_the_version_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path)
    for version in ("15", "16"):
        a_version(tmp_path, version)
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert postgres.programs(tmp_path) == tmp_path / "15/bin"
    (tmp_path / "PG_VERSION").write_text("13\n")
    with pytest.raises(MachineUnfit, match="apt-get install postgresql-13"):
        postgres.programs(tmp_path)


def test_without_postgresql_or_redis_the_package_is_named(
    place: ServicePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path / "nowhere")
    with pytest.raises(MachineUnfit, match="apt-get install postgresql"):
        postgres.make_cluster(place)
    monkeypatch.setattr("workers.service.redis.shutil.which", lambda name: None)
    with pytest.raises(MachineUnfit, match="apt-get install redis-server"):
        redis.command(place, redis.RedisNetwork())


@pytest.mark.process
def test_a_cluster_whose_making_was_killed_is_made_again(
    place: ServicePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path / "programs")
    a_version(tmp_path / "programs", "15")
    initdb = tmp_path / "programs/15/bin/initdb"
    initdb.write_text(
        '#!/bin/sh\necho 15 >"$2/PG_VERSION"\n[ -e "$0.killed" ] || { : >"$0.killed"; kill -9 $$; }\n: >"$2/whole"\n'
    )
    initdb.chmod(0o755)
    with pytest.raises(ServiceFailed, match="could not be made"):
        postgres.make_cluster(place)
    postgres.make_cluster(place)
    assert {path.name for path in place.cluster.iterdir()} == {"PG_VERSION", "whole"}
    assert [path.name for path in place.cluster.parent.glob("*.begun")] == []


@pytest.mark.process
def test_a_cluster_that_takes_too_long_to_make_is_an_error_of_its_own(
    place: ServicePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(postgres, "_INITDB_S", 0.05)
    a_version(tmp_path / "programs", "15")
    initdb = tmp_path / "programs/15/bin/initdb"
    initdb.write_text("#!/bin/sh\nexec sleep 60\n")
    initdb.chmod(0o755)
    with pytest.raises(ServiceFailed, match="could not be made"):
        postgres.make_cluster(place)


def test_a_disk_that_is_nearly_full_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.service.up.shutil.disk_usage", lambda path: SimpleNamespace(free=100 << 20))
    with pytest.raises(MachineUnfit, match="100 MiB free"):
        up.bring_up(ServicePlace(tmp_path / "home"), OPTIONS, print)
    assert not (tmp_path / "home").exists()


def test_a_home_that_the_database_cannot_reach_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    owner = pwd.getpwuid(os.getuid())
    with pytest.raises(MachineUnfit, match="chmod o\\+x"):
        folder_of(closed / "postgres", owner)


def test_a_port_that_cannot_be_had_is_refused(place: ServicePlace) -> None:
    unbindable = ServiceOptions(
        "192.0.2.1", 8000, True, True, postgres.PostgresNetwork(), redis.RedisNetwork()
    )
    with pytest.raises(MachineUnfit, match="PORT=8001 make up"):
        up._need_port(unbindable, Supervisor(place))


def test_secrets_are_read_by_their_owner_alone(place: ServicePlace) -> None:
    up._write_environment(place, OPTIONS)
    postgres.url(place, postgres.PostgresNetwork())
    place.password("redis")
    for path in (place.environment, place.folder / "database.password", place.folder / "redis.password"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.process
def test_a_power_cut_leaves_no_cluster_whose_password_is_lost(
    place: ServicePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """initdb syncs what it makes; the service could never sign in to a cluster with another password."""
    synced, sync = [], os.fsync

    def note(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path / "programs")
    a_version(tmp_path / "programs", "15")
    initdb = tmp_path / "programs/15/bin/initdb"
    initdb.write_text('#!/bin/sh\necho 15 >"$2/PG_VERSION"\n')
    initdb.chmod(0o755)
    postgres.make_cluster(place)
    up._write_environment(place, OPTIONS)
    for path in (place.folder / "postgres.password", place.environment):
        assert (path.stat().st_ino, path.stat().st_size) in synced, path


def test_a_password_that_a_power_cut_left_empty_is_made_anew(place: ServicePlace) -> None:
    (place.folder / "redis.password").touch()
    assert len(place.password("redis")) > 30
    assert place.password("redis") == place.password("redis")


def test_what_the_environment_says_is_kept_and_what_it_does_not_is_made(
    place: ServicePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_SMTP", "smtp://user:p%40ss@mail")
    monkeypatch.setenv("KPERFLAB_HOME", "/elsewhere")
    up._write_environment(place, OPTIONS)
    kept = json.loads(place.environment.read_text())
    assert kept["KPERFLAB_SMTP"] == "smtp://user:p%40ss@mail"
    assert kept["KPERFLAB_DATABASE"].startswith("postgres://kperflab:")
    assert kept["KPERFLAB_REDIS"] == f"unix://{place.sockets}/redis/redis.sock"
    assert kept["KPERFLAB_URL"] == "http://127.0.0.1:8000"
    assert "KPERFLAB_HOME" not in kept


class Running(Supervisor):
    """A supervisord under which some programs run; `ended` is what was stopped, with the settings on disk at that time."""

    def __init__(self, place: ServicePlace, names: list[str]) -> None:
        super().__init__(place)
        self.names, self.ended = list(names), dict[str, str]()

    def start(self) -> None:
        pass

    def alive(self) -> bool:
        return True

    def states(self) -> list[State]:
        return [State(name, "RUNNING", 1, 1, "") for name in self.names]

    def begin(self, names: Iterable[str]) -> None:
        pass

    def end(self, names: Iterable[str]) -> None:
        written = self._place.environment.read_text()
        self.ended |= dict.fromkeys(names, written)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the answers of the service's tables."""
    answer: dict[str, Any] = {"new_code": False, "targets": [], "experiments": 0}
    monkeypatch.setattr(up, "_settled", lambda place, what: answer)
    return answer


STORES_ELSEWHERE = replace(OPTIONS, own_database=False, own_redis=False)


def test_programs_that_run_with_other_settings_are_stopped_before_the_new_ones_are_written(
    place: ServicePlace, settled: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    up._bring_up_stores(place, STORES_ELSEWHERE, Running(place, []), print)
    before = place.environment.read_text()
    monkeypatch.setenv("KPERFLAB_PRIVATE", "1")
    supervisor, said = Running(place, ["web", "upkeep"]), list[str]()
    up._bring_up_stores(place, STORES_ELSEWHERE, supervisor, said.append)
    assert supervisor.ended == {"web": before, "upkeep": before}
    assert said == ["settings have changed (KPERFLAB_PRIVATE): everything is restarted with the new ones"]
    assert json.loads(place.environment.read_text())["KPERFLAB_PRIVATE"] == "1"


def test_a_store_that_is_to_listen_elsewhere_is_restarted_before_it_is_asked(
    place: ServicePlace, settled: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not yet know the password, or the port, with which it is asked."""
    configured, asked = list[str](), list[str]()

    class Configured(Running):
        def start(self) -> None:
            configured.append(self._place.configuration.read_text())

    monkeypatch.setattr("workers.service.redis.shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("workers.service.redis.wait", lambda place, network: asked.append(configured[-1]))
    options = replace(OPTIONS, own_database=False)
    up._bring_up_stores(place, options, Configured(place, []), print)
    listens = replace(options, redis=redis.RedisNetwork("192.0.2.5"))
    up._bring_up_stores(place, listens, Configured(place, ["redis", "web"]), print)
    assert ["192.0.2.5" in configuration for configuration in asked] == [False, True]


def test_a_setting_that_is_no_longer_given_restarts_the_programs_too(
    place: ServicePlace, settled: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_SMTP", "smtp://user:secret@mail")
    up._bring_up_stores(place, STORES_ELSEWHERE, Running(place, []), print)
    monkeypatch.delenv("KPERFLAB_SMTP")
    supervisor, said = Running(place, ["web"]), list[str]()
    up._bring_up_stores(place, STORES_ELSEWHERE, supervisor, said.append)
    assert list(supervisor.ended) == ["web"]
    assert "KPERFLAB_SMTP" in said[0]
    assert "secret" not in said[0]


def test_programs_that_run_with_the_same_settings_are_left_alone(
    place: ServicePlace, settled: dict[str, Any]
) -> None:
    up._bring_up_stores(place, STORES_ELSEWHERE, Running(place, []), print)
    supervisor, said = Running(place, ["web"]), list[str]()
    up._bring_up_stores(place, STORES_ELSEWHERE, supervisor, said.append)
    assert (supervisor.ended, said) == ({}, [])


def test_a_database_of_somebody_else_is_used_and_none_is_started(
    place: ServicePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_DATABASE", "postgres://u:p@db/lab")
    monkeypatch.setenv("KPERFLAB_REDIS", "redis://cache/0")
    settings = up.service_options(8000)
    assert programs.stores(place, settings) == []
    up._write_environment(place, settings)
    assert json.loads(place.environment.read_text())["KPERFLAB_DATABASE"] == "postgres://u:p@db/lab"


def test_passwords_are_asked_for_where_other_machines_come_in(place: ServicePlace) -> None:
    outside = redis.command(place, redis.RedisNetwork("10.0.0.1", 6380))
    assert place.password("redis") not in " ".join(outside), "every user reads arguments"
    secret = Path(outside[1])
    assert secret.read_text() == f"requirepass {place.password('redis')}\n"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert outside[outside.index("--bind") + 1] == "10.0.0.1"
    assert redis.command(place, redis.RedisNetwork())[1].startswith("--"), "no password on the socket alone"
    assert place.password("redis") in redis.url(place, redis.RedisNetwork("10.0.0.1"))
    place.cluster.mkdir()
    inside = postgres.command(place, postgres.PostgresNetwork())
    assert "listen_addresses=" in inside
    assert (place.cluster / "kperflab_hba.conf").read_text() == "local all all scram-sha-256\n"


def test_the_configuration_says_what_was_meant_whatever_is_in_it(place: ServicePlace) -> None:
    odd = Program("target-odd", ["/bin/echo", "100 %", "it's", 'a "b"; c'], ends_by="INT")
    configuration = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    configuration.read_string(programs.configuration(place, [odd]))
    # supervisord halves the signs of percent itself.
    command = configuration["program:target-odd"]["command"].replace("%%", "%")
    assert "setpriv --pdeathsig INT -- /bin/echo '100 %'" in command
    assert configuration["program:target-odd"]["stopsignal"] == "INT"


def test_what_is_first_is_started_by_itself_and_the_rest_is_not(place: ServicePlace) -> None:
    text = programs.configuration(place, [Program("redis", ["a"], programs.FIRST), Program("web", ["b"])])
    configuration = configparser.RawConfigParser()
    configuration.read_string(text)
    assert configuration["program:redis"]["autostart"] == "true"
    assert configuration["program:web"]["autostart"] == "false"
    assert {configuration[f"program:{name}"]["autorestart"] for name in ("redis", "web")} == {"true"}


def test_programs_inherit_nothing_of_the_labs_but_their_home(
    place: ServicePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_DATABASE", "postgres://u:p@db/lab")
    variables = environment(place)
    assert "KPERFLAB_DATABASE" not in variables
    assert variables["KPERFLAB_HOME"] == str(place.home)


def test_a_service_that_is_not_up_is_said_to_be_so(place: ServicePlace) -> None:
    with pytest.raises(ServiceDown, match="start it: make up"):
        Supervisor(place).states()
    with pytest.raises(ServiceDown, match="was up"):
        up.bring_down(place, print)


@pytest.mark.process
def test_a_supervisord_that_does_not_start_tells_why(place: ServicePlace) -> None:
    place.configuration.write_text("[nonsense")
    with pytest.raises(ServiceFailed, match="supervisord does not start") as raised:
        Supervisor(place).start()
    assert raised.value.detail


@pytest.mark.process
def test_what_outlived_the_service_is_found_and_ended(place: ServicePlace) -> None:
    stubborn = "import time; print('on', flush=True); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-c", stubborn],
        env=os.environ | {MARK: str(place.home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    process.stdout.readline()
    other = ServicePlace(place.home.parent / "other")
    assert left.processes(other) == {}
    assert list(left.processes(place)) == [process.pid]
    assert "time.sleep(600)" in left.end_all(place)[0]
    assert process.wait(10) != 0


def test_a_home_adopts_what_its_service_runs_with(
    place: ServicePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KPERFLAB_DATABASE", "KPERFLAB_REDIS", "KPERFLAB_REDIS_FILE", "KPERFLAB_URL"):
        monkeypatch.delenv(name, raising=False)
    # What is adopted goes with the test.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    up._write_environment(place, OPTIONS)
    os.environ["KPERFLAB_REDIS_FILE"] = "/mine"
    os.environ["KPERFLAB_URL"] = ""
    adopt(place.home)
    assert read_variable("KPERFLAB_DATABASE").startswith("postgres://kperflab:")
    assert "KPERFLAB_REDIS" not in os.environ, "what is given here counts more"
    assert read_variable("KPERFLAB_URL") == ""


def test_a_home_without_a_service_adopts_nothing_and_a_broken_one_says_so(place: ServicePlace) -> None:
    before = dict(os.environ)
    adopt(place.home)
    assert dict(os.environ) == before
    place.environment.write_text("{")
    with pytest.raises(SettingWrong, match=r"environment\.json"):
        adopt(place.home)
