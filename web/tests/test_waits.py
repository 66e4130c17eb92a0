# SPDX-License-Identifier: GPL-2.0-or-later
"""The reason why an experiment waits, on its page and over REST: the lab's machines and their paths are for operators alone."""

from __future__ import annotations

import pytest
from django.test import Client

from lab.models import Build, Experiment, User, Worker
from lab.people.tokens import issue_token
from lab.tests.factories import make_grid
from web.tests.conftest import SCRIPT, Page

PATH = "/var/lib/kperflab has 0.1 GiB free"


@pytest.fixture
def waiting(alice: User) -> Experiment:
    """An experiment of hers whose only worker takes nothing, for a reason that names a path."""
    experiment = make_grid(blocks=1)
    Experiment.objects.update(submitter=alice)
    queues = list(Build.objects.values_list("queue", flat=True))
    Worker.objects.create(name="rack-7:1:1", host="rack-7", queues=queues, idle_reason=f"{PATH} {SCRIPT}")
    return experiment


@pytest.mark.parametrize("part", ["", "live"])
def test_only_operators_read_which_machine_it_is_and_where_its_disk_is_full(
    waiting: Experiment, page: Page, submitter: Client, viewer: Client, operator: Client, part: str
) -> None:
    address = f"/experiments/{waiting.pk}/{part}"
    for reader in (None, viewer, submitter):
        text = page(address, reader)
        assert (
            "The workers for this experiment take no work at the moment. Operators see the reason on /lab/."
            in text
        )
        assert "rack-7" not in text
        assert "/var/lib" not in text
    text = page(address, operator)
    assert f"take no work at the moment: rack-7, {PATH}" in text
    assert SCRIPT not in text


def test_rest_tells_nobody_but_operators_of_it_either(
    waiting: Experiment, client: Client, alice: User, charlie: User
) -> None:
    for user, may_read in ((alice, False), (charlie, True)):
        scopes = ["read", "submit", "operate"] if may_read else ["read", "submit"]
        _, secret = issue_token(user=user, name="x", scopes=scopes)
        said = {"Authorization": f"Token {secret}"}
        for address in (f"experiments/{waiting.pk}/", "experiments/", "workers/", "queues/"):
            text = client.get(f"/api/v1/{address}", headers=said).content.decode()
            assert "/var/lib" not in text or may_read
        assert ("rack-7" in client.get("/api/v1/workers/", headers=said).content.decode()) is may_read
