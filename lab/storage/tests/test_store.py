# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of either kind: what goes in comes out, and what is wrong with it is one line."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from lab.errors import StoreLacks, StoreRefused, StoreUnreachable
from lab.storage.store import Store, lab_store
from lab.tests.stores import BUCKET, KEYS, choose, directory_store, told_by
from lab.tests.stores import moto as moto
from lab.tests.stores import small_disk as small_disk
from lab.tests.stores import store as store


def test_without_a_setting_there_is_no_store() -> None:
    assert told_by({}).storages == {}
    assert lab_store() is None


def test_what_is_put_is_read_listed_and_removed(store: Store) -> None:
    store.put("runs/1-1/console.log", io.BytesIO(b"one\ntwo\n"))
    store.put("runs/1-1/records.bin", b"\0\1")
    assert store.has("runs/1-1/console.log")
    assert not store.has("runs/1-1/other")
    assert store.read("runs/1-1/console.log", 4) == b"one\n"
    assert {(e.name, e.size) for e in store.entries("runs/1-1")} == {
        ("runs/1-1/console.log", 8),
        ("runs/1-1/records.bin", 2),
    }
    store.remove("runs/1-1/console.log")
    store.remove("runs/1-1/console.log")
    assert [e.name for e in store.entries()] == ["runs/1-1/records.bin"]
    with pytest.raises(StoreLacks, match=r"has no runs/1-1/console\.log"):
        store.read("runs/1-1/console.log", 10)


def test_a_directory_that_is_not_mounted_neither_lists_as_empty_nor_is_made(
    settings: Any, tmp_path: Path
) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": str(tmp_path / "away")}))
    store = lab_store()
    assert store is not None
    with pytest.raises(StoreUnreachable, match="create it, or mount it"):
        list(store.entries("compiled"))
    with pytest.raises(StoreUnreachable, match="create it, or mount it"):
        store.put("compiled/a", b"1")
    assert not (tmp_path / "away").exists()


def test_what_is_put_where_another_process_removes_the_last_file_is_put(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, make = directory_store(settings, tmp_path / "store"), tempfile.mkstemp

    def removed_before(**named: Any) -> tuple[int, str]:
        if store.has("logs/last.log"):
            store.remove("logs/last.log")
        return make(**named)

    store.put("logs/last.log", b"1")
    monkeypatch.setattr(tempfile, "mkstemp", removed_before)
    store.put("logs/next.log", b"2")
    assert [entry.name for entry in store.entries()] == ["logs/next.log"]


def test_a_directory_is_not_mistaken_for_one_whose_name_begins_alike(store: Store) -> None:
    store.put("runs/1-1/a", b"1")
    store.put("runs/1-12/a", b"2")
    assert [e.name for e in store.entries("runs/1-1")] == ["runs/1-1/a"]


def test_what_is_put_again_is_replaced(store: Store) -> None:
    store.put("logs/a.log", b"long and old")
    store.put("logs/a.log", b"new")
    assert store.read("logs/a.log", 100) == b"new"


@pytest.mark.parametrize(
    ("start", "length", "wanted"),
    [
        (0, 3, b"012"),
        (7, 100, b"789"),
        (-4, 100, b"6789"),
        (-99, 2, b"01"),
        (10, 5, b""),
        (99, 5, b""),
        (3, 0, b""),
    ],
)
def test_a_part_is_read_from_either_end(store: Store, start: int, length: int, wanted: bytes) -> None:
    store.put("logs/digits", b"0123456789")
    assert store.part("logs/digits", start, length) == (wanted, 10)


def test_a_part_of_nothing_is_nothing(store: Store) -> None:
    store.put("logs/empty", b"")
    assert store.part("logs/empty", -10, 10) == (b"", 0)
    with pytest.raises(StoreLacks):
        store.part("logs/none", 0, 1)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up", "a/../../b", "a//b", ".hidden", "a\0b", "a\nb", "x" * 300]
)
def test_names_that_lead_elsewhere_are_refused(store: Store, name: str) -> None:
    with pytest.raises(StoreRefused, match="not a name of a file"):
        store.put(name, b"")
    with pytest.raises(StoreRefused, match="not a name of a file"):
        store.read(name, 1)


def test_a_store_that_works_passes_the_check_and_keeps_nothing_of_it(store: Store) -> None:
    assert run_checks(tags=["store"]) == []
    assert list(store.entries()) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"KPERFLAB_STORE": "relative/dir"}, "give an absolute directory, or s3://"),
        ({"KPERFLAB_STORE": "ftp://host/x"}, "give an absolute directory, or s3://"),
        ({"KPERFLAB_STORE": "s3://"}, "name the bucket as s3://bucket"),
        ({"KPERFLAB_STORE": "s3://key:secret@b/x"}, "credentials come from AWS_ACCESS_KEY_ID"),
        (
            {"KPERFLAB_STORE": "s3://b?endpont=http://x"},
            'no option "endpont"; valid: endpoint, region, style',
        ),
        ({"KPERFLAB_STORE": "s3://b?endpoint=x:9000"}, 'endpoint "x:9000" is not an address'),
        ({"KPERFLAB_STORE": "s3://b?style=odd"}, 'style "odd" is not one of path, virtual'),
        (
            {"KPERFLAB_STORE_FILE": "/nonexistent/x"},
            "KPERFLAB_STORE_FILE names /nonexistent/x, which cannot be read",
        ),
        (
            {"KPERFLAB_STORE": "s3://b", "AWS_SECRET_ACCESS_KEY_FILE": "/nonexistent"},
            "AWS_SECRET_ACCESS_KEY_FILE",
        ),
    ],
)
def test_what_is_no_store_is_one_line_that_names_it(given: dict[str, str], told: str, settings: Any) -> None:
    outcome = told_by(given)
    assert outcome.storages == {}
    assert told in outcome.problem
    assert "\n" not in outcome.problem
    assert "secret" not in outcome.problem.replace("AWS_SECRET", "")
    settings.STORE_PROBLEM = outcome.problem
    (error,) = run_checks(tags=["store"])
    assert error.msg == outcome.problem
    with pytest.raises(StoreRefused):
        lab_store()


def test_credentials_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("AKIA\n")
    (tmp_path / "key").write_text("hidden\n")
    environment = {
        "KPERFLAB_STORE": "s3://b/deep/prefix?endpoint=https://s3.example&region=eu-1",
        "AWS_ACCESS_KEY_ID_FILE": str(tmp_path / "id"),
        "AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "key"),
    }
    options = told_by(environment).storages["lab"]["OPTIONS"]
    assert (options["access_key"], options["secret_key"]) == ("AKIA", "hidden")
    assert (options["bucket_name"], options["location"]) == ("b", "deep/prefix")
    assert (options["endpoint_url"], options["region_name"]) == ("https://s3.example", "eu-1")


def test_a_directory_that_is_not_there_is_not_made(settings: Any, tmp_path: Path) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": str(tmp_path / "unmounted")}))
    (error,) = run_checks(tags=["store"])
    assert error.msg.endswith(f"there is no directory {tmp_path / 'unmounted'}: create it, or mount it")
    assert not (tmp_path / "unmounted").exists()


def test_a_bucket_that_is_not_there_is_told_so(settings: Any, moto: str) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": f"s3://nobodys?endpoint={moto}", **KEYS}))
    (error,) = run_checks(tags=["store"])
    assert "there is no such bucket; create it, or correct KPERFLAB_STORE" in error.msg


def test_a_server_that_does_not_answer_is_told_so(settings: Any) -> None:
    url = f"s3://{BUCKET}?endpoint=http://127.0.0.1:9"
    store = choose(settings, told_by({"KPERFLAB_STORE": url, **KEYS}))
    with pytest.raises(StoreUnreachable, match=r"does not answer.*start it, or correct KPERFLAB_STORE"):
        store.check()


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_store_whose_disk_is_full_says_so_and_keeps_no_part(
    settings: Any, tmp_path: Path, small_disk: Path
) -> None:
    store = directory_store(settings, small_disk / "store")
    with pytest.raises(StoreUnreachable, match="No space left"):
        store.put("runs/1-1/console.log", b"x" * (8 << 20))
    assert [path for path in (small_disk / "store").rglob("*") if path.is_file()] == []
