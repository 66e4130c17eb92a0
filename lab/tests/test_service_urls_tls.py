# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL over a network must prove its name: tried on a server with a certificate, on the loopback address."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from lab import service_urls as backing
from lab.service_urls import database
from lab.tests.postgres import programs

pytestmark = [pytest.mark.hostile, pytest.mark.campaign]
NAME = "db.example.test"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    subject = f"/CN={name}"
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject)
    openssl(folder, *made, "-keyout", f"{name}.key", "-out", f"{name}.pem")


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Path, int]]:
    """The folder of certificates and the port of a PostgreSQL that shows one of NAME, signed by `ours`."""
    where, folder = programs(), Path(tempfile.mkdtemp(prefix="kperflab-pg-tls-"))
    authority(folder, "ours")
    authority(folder, "others")
    openssl(
        folder,
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=x",
        "-keyout",
        "server.key",
        "-out",
        "server.csr",
    )
    (folder / "names").write_text(f"subjectAltName=DNS:{NAME}\n")
    signed = ("x509", "-req", "-in", "server.csr", "-CA", "ours.pem", "-CAkey", "ours.key", "-CAcreateserial")
    openssl(folder, *signed, "-days", "2", "-extfile", "names", "-out", "server.pem")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    down: list[str] = []
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        down = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
    data = str(folder / "data")
    made = [str(where / "initdb"), "-D", data, "-U", "lab", "-A", "trust"]
    subprocess.run([*down, *made], check=True, capture_output=True, cwd="/")
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(folder),
        "ssl": "on",
        "ssl_cert_file": str(folder / "server.pem"),
        "ssl_key_file": str(folder / "server.key"),
    }
    options = " ".join([f"-p {port}", *(f"-c {name}={value}" for name, value in settings.items())])
    control = [*down, str(where / "pg_ctl"), "-D", data, "-l", str(folder / "log")]
    subprocess.run([*control, "-w", "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    try:
        yield folder, port
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        shutil.rmtree(folder)


def is_encrypted(port: int, query: str = "", host: str = NAME) -> bool:
    """Connect as Django would with such a URL; return whether TLS is used. Raises psycopg.OperationalError."""
    url = f"postgres://lab@{host}:{port}/postgres?hostaddr=127.0.0.1{query}"
    settings = database(url, Path("/nowhere"))
    names = {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "dbname": settings["NAME"],
    }
    with psycopg.connect(**names, **settings["OPTIONS"]) as connection:
        row = connection.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone()
    return bool(row and row[0])


@pytest.fixture
def trusted(server: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> int:
    """The port, on a machine that trusts `ours` as it trusts the authorities of its distribution."""
    folder, port = server
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(backing, "AUTHORITIES", (str(folder / "missing.crt"), str(folder / "ours.pem")))
    return port


@pytest.mark.parametrize("query", ["", "&sslmode=verify-full", "&sslmode=verify-ca", "&sslmode=require"])
def test_a_server_whose_authority_the_machine_trusts_is_taken(trusted: int, query: str) -> None:
    assert is_encrypted(trusted, query)


def test_an_authority_that_the_url_names_is_taken(server: tuple[Path, int]) -> None:
    assert is_encrypted(server[1], f"&sslrootcert={server[0]}/ours.pem")


def test_ssl_cert_file_names_the_authorities(
    server: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(server[0] / "ours.pem"))
    assert is_encrypted(server[1])


@pytest.mark.parametrize("query", ["", "&sslmode=verify-ca"])
def test_a_server_of_another_authority_is_refused(
    server: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(server[0] / "others.pem"))
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        is_encrypted(server[1], query)


def test_a_server_of_another_name_is_refused(trusted: int) -> None:
    with pytest.raises(psycopg.OperationalError, match=r'does not match host name "other\.example\.test"'):
        is_encrypted(trusted, host="other.example.test")


def test_sslmode_require_encrypts_without_asking_who_it_is(
    server: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(server[0] / "others.pem"))
    assert is_encrypted(server[1], "&sslmode=require", host="other.example.test")
