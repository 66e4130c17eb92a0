# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of one boot: how it was started."""

import pytest
from django.test import Client

from lab.models import Run
from lab.tests.factories import finish_run, make_case, make_experiment, make_run, make_variant

pytestmark = pytest.mark.django_db

HOST = {"way": "power", "way_of_block": "kexec", "kexec_failed": "kexec_load failed: Operation not permitted"}


@pytest.fixture
def run() -> Run:
    experiment = make_experiment()
    case = make_case(experiment)
    # The experiment goes on whatever ends.
    make_run(make_variant(experiment), case, block=9)
    return make_run(make_variant(experiment, "p"), case)


def test_a_boot_that_does_not_count_says_why_and_which_way_it_went(run: Run, client: Client) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]}, environment={"host": HOST})
    text = client.get(f"/runs/{run.pk}/").content.decode()
    why = "it was booted by power, the other boots of its block by kexec"
    assert f"Its numbers do not count: {why}." in text
    for fact in ("way of block", "kexec_load failed: Operation not permitted"):
        assert fact in text


def test_a_boot_that_counts_says_nothing_of_that(run: Run, client: Client) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]}, environment={"host": {"way": "kexec"}})
    assert "do not count" not in client.get(f"/runs/{run.pk}/").content.decode()
