# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores to try things on: a directory, and a bucket of moto's S3 server on loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.storage.store import Store, lab_store
from lab.storage.store_settings import StoreSettings, store_settings

BUCKET = "kperflab"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of an S3 server with one bucket."""
    # A quarter of a second in every process that only collects tests.
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket=BUCKET)
    yield address
    server.stop()


def told_by(variables: dict[str, str]) -> StoreSettings:
    """Return the store's settings under these environment variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KPERFLAB_STORE", *KEYS):
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        return store_settings()


def choose(settings: Any, chosen: StoreSettings) -> Store:
    """Make a store the lab's for one test."""
    settings.STORE_PROBLEM = chosen.problem
    settings.STORAGES = {**settings.STORAGES, **chosen.storages}
    store = lab_store()
    assert store is not None
    return store


def directory_store(settings: Any, folder: Path) -> Store:
    """A directory as the lab's store."""
    folder.mkdir(exist_ok=True)
    return choose(settings, told_by({"KPERFLAB_STORE": str(folder)}))


def bucket_store(settings: Any, moto: str) -> Store:
    """A part of the bucket that is no other test's as the lab's store."""
    url = f"s3://{BUCKET}/test-{os.urandom(6).hex()}?endpoint={moto}"
    return choose(settings, told_by({"KPERFLAB_STORE": url, **KEYS}))


@pytest.fixture(params=["directory", "bucket"])
def store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Store:
    """A store of either kind."""
    if request.param == "directory":
        return directory_store(settings, tmp_path / "store")
    return bucket_store(settings, request.getfixturevalue("moto"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "kperflab-test", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)
