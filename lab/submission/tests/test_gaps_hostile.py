# SPDX-License-Identifier: GPL-2.0-or-later
"""A series with gaps, from every way in: refused by name, taken on the submitter's word, and remembered as taken so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lab.comparisons.exports.reproducer import write_reproducer
from lab.conftest import Describe
from lab.errors import FieldRefused, SubmissionRejected
from lab.experiments.spec import read_spec, spec_digest
from lab.experiments.stored_spec import description_as_toml, stored_spec
from lab.models import Experiment
from lab.submission.preview import preview_experiment
from lab.submission.received_series import Upload, each_patch, receive_files
from lab.submission.submit import submit_experiment
from lab.tests.tiny_tree import diff

pytestmark = [pytest.mark.django_db, pytest.mark.hostile, pytest.mark.process]
MAIL = (
    f"From: A <a@example.org>\nSubject: [PATCH v3 2/5] fs: one\n\nWhy.\n---\n{diff('fs/inode.c', 10, 'one')}"
)
SAID = "version 3 has patch 2 of 5; missing: 1, 3, 4, 5"
NOTE = "missing of 5 patches, as the submitter allows: 1, 3, 4, 5"


def patch(**more: Any) -> list[dict[str, Any]]:
    return [{"name": "one", "text": MAIL, **more}]


def test_a_gap_is_refused_with_the_numbers_and_the_ways_out(describe: Describe, home: Path) -> None:
    for tried in (submit_experiment, preview_experiment):
        with pytest.raises(SubmissionRejected) as refused:
            tried(spec=describe(patches=patch()), home=home)
        assert str(refused.value).startswith(f'switch "one": {SAID}; send the whole series')
        assert refused.value.place == "patches[0].text"
    assert not Experiment.objects.exists()


def test_on_the_submitters_word_it_is_taken_and_the_preview_says_so(describe: Describe, home: Path) -> None:
    preview = preview_experiment(spec=describe(patches=patch(partial=True)), home=home)
    (switch,) = preview.switches
    assert switch.notes == (NOTE,)
    assert [(part.version, part.number, part.total, part.title) for part in switch.patches] == [
        (3, 2, 5, "fs: one")
    ]


def test_a_re_run_a_clone_and_a_reproducer_remember_the_word(
    describe: Describe, home: Path, client: Client
) -> None:
    row = submit_experiment(spec=describe(patches=patch(partial=True)), home=home)
    assert row.switches.get().notes == [NOTE]
    assert NOTE in client.get(f"/experiments/{row.pk}/").content.decode()
    for spec in (
        stored_spec(row),
        read_spec(description_as_toml(row.spec).encode(), None),
        read_spec(write_reproducer(row.pk).encode(), None),
    ):
        again = submit_experiment(spec=spec, home=home)
        trees = [experiment.variants.get(name="one").tree_id for experiment in (row, again)]
        assert trees[0] == trees[1]


def test_the_word_counts_in_the_digest_and_its_absence_does_not(describe: Describe) -> None:
    assert spec_digest(describe(patches=patch())) == spec_digest(describe(patches=patch(partial=False)))
    assert spec_digest(describe(patches=patch())) != spec_digest(describe(patches=patch(partial=True)))


def test_an_upload_with_a_gap_is_received_and_the_gap_told() -> None:
    (received,) = receive_files([Upload("a.patch", MAIL.encode())])
    assert (received.patches, received.gap[: len(SAID)]) == (1, SAID)
    with pytest.raises(FieldRefused, match="version 3 has patch 2 of 5"):
        each_patch(received)
    (alone,) = each_patch(received, partial=True)
    assert "[PATCH v3] fs: one" in alone.text
