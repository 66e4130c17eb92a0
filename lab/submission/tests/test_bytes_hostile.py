# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch whose bytes are not UTF-8, from the upload to the reproducer: the tree it makes is the one that git makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from kernels.mails.stored_diff import diff_of, shown_diff, stored_diff
from lab.comparisons.exports.kcidb import patchset_hash
from lab.comparisons.exports.reproducer import write_reproducer
from lab.experiments.page import experiment_page
from lab.experiments.spec import ExperimentSpec, read_spec, spec_from_mapping
from lab.experiments.stored_spec import description_as_toml
from lab.models import Experiment
from lab.submission.preview import preview_experiment
from lab.submission.received_series import Upload, receive_files
from lab.submission.submit import submit_experiment
from lab.tests.tiny_tree import git, make_tiny_tree

pytestmark = [pytest.mark.django_db, pytest.mark.hostile]

OLD = "int a; /* größer */\nchar b = '\xe9';\nint c;\n".encode("latin-1")
NEW = "int a; /* größer */\nchar b = '\xe8';\nint c; /* höher */\n".encode("latin-1")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    repository = make_tiny_tree(tmp_path / "linux")
    (repository / "names.c").write_bytes(OLD)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "names")
    git(repository, "tag", "v6.2")
    (repository / "names.c").write_bytes(NEW)
    git(repository, "commit", "-q", "-a", "-m", "names: höher")
    return repository


def mbox(source: Path) -> bytes:
    git(source, "format-patch", "-q", "--text", "-o", str(source.parent), "v6.2..main")
    return next(source.parent.glob("0001-*.patch")).read_bytes()


def described(source: Path, text: str) -> ExperimentSpec:
    return spec_from_mapping(
        {
            "name": "bytes",
            "git": str(source),
            "base": "v6.2",
            "patches": [{"name": "names", "text": text}],
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 2},
        }
    )


def made(source: Path, home: Path) -> Experiment:
    (received,) = receive_files([Upload("0001.patch", mbox(source))])
    return submit_experiment(spec=described(source, received.text), home=home)


def tree_of(experiment: Experiment) -> str:
    return str(experiment.variants.get(name="names").tree_id)


@pytest.mark.process
def test_the_tree_is_the_one_that_the_author_committed(source: Path, tmp_path: Path) -> None:
    experiment = made(source, tmp_path)
    assert tree_of(experiment) == git(source, "rev-parse", "main^{tree}").strip()


@pytest.mark.process
def test_what_is_stored_is_plain_text_and_keeps_every_byte(source: Path, tmp_path: Path) -> None:
    switch = made(source, tmp_path).switches.get()
    assert switch.text.isascii()
    diff = diff_of(switch.text).encode("utf-8", "surrogateescape")
    assert b"\n-char b = '\xe9';\n" in diff
    assert patchset_hash([switch.text]) == patchset_hash([stored_diff(diff_of(switch.text))])


@pytest.mark.process
def test_a_re_run_a_clone_and_a_reproducer_make_the_same_tree(source: Path, tmp_path: Path) -> None:
    first = made(source, tmp_path)
    for text in (description_as_toml(first.spec), write_reproducer(first.pk)):
        again = submit_experiment(spec=read_spec(text.encode(), None), home=tmp_path)
        assert tree_of(again) == tree_of(first)
    assert json.dumps(first.spec, ensure_ascii=False).encode()


@pytest.mark.process
def test_a_page_shows_such_a_byte_as_an_escape(source: Path, tmp_path: Path, client: Client) -> None:
    experiment = made(source, tmp_path)
    (switch,) = experiment_page(experiment.pk).switches
    assert "-char b = '\\xe9';" in switch.shown
    page = client.get(f"/experiments/{experiment.pk}/").content.decode()
    assert "-char b = &#x27;\\xe9&#x27;;" in page


@pytest.mark.process
def test_a_preview_of_it_names_its_title(source: Path, tmp_path: Path) -> None:
    (received,) = receive_files([Upload("0001.patch", mbox(source))])
    preview = preview_experiment(spec=described(source, received.text), home=tmp_path)
    assert [patch.title for patch in preview.switches[0].patches] == ["names: höher"]


@pytest.mark.parametrize(
    "diff",
    [
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\udce9\n",
        "+\r\n",
        "\udcff",
        "\udcff\n\n",
        "From x\udce9\n.\n \n",
        "+\x1b[31m\n",
    ],
)
def test_a_stored_diff_is_the_diff_again(diff: str) -> None:
    assert diff_of(stored_diff(diff)) == diff
    assert stored_diff(diff).encode()
    assert all(character.isprintable() or character in "\t\n" for character in shown_diff(stored_diff(diff)))
