# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists that are longer than what is counted."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lab.models import Experiment, Run, Switch, User
from lab.tests.factories import make_patch_switch
from web.api import catalogue
from web.api.tests.conftest import As
from web.api.tests.store import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(people: dict[str, User], tmp_path: Path) -> Experiment:
    return fill(people, tmp_path)


@pytest.fixture(autouse=True)
def _four_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.api.paging._Counted.most", 4)
    monkeypatch.setattr("web.api.paging.MOST_COUNTED", 4)


def test_next_goes_on_behind_the_rows_that_are_counted(ask: As, lab: Experiment) -> None:
    page = ask().get("runs/?page_size=2").json()
    assert page["count"] is None
    ids = [row["id"] for row in page["results"]]
    while page["next"]:
        address = urlsplit(page["next"])
        page = ask().get(f"runs/?{address.query}").json()
        ids += [row["id"] for row in page["results"]]
    assert ids == list(Run.objects.order_by("-pk").values_list("pk", flat=True))
    assert len(ids) > 4


@pytest.mark.parametrize("order", ["id", "-id"])
def test_a_list_that_is_ordered_by_number_on_request_goes_on_likewise(
    order: str, ask: As, lab: Experiment
) -> None:
    page = ask().get(f"runs/?page_size=2&ordering={order}").json()
    ids = [row["id"] for row in page["results"]]
    while page["next"]:
        page = ask().get(f"runs/?{urlsplit(page['next']).query}").json()
        ids += [row["id"] for row in page["results"]]
    assert ids == list(Run.objects.order_by(order).values_list("pk", flat=True))


@pytest.mark.parametrize("asked", ["", "&kind=patch"])
def test_the_list_of_patches_goes_on_likewise(
    asked: str, ask: As, lab: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = catalogue._catalogue()[:1]
    monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
    monkeypatch.setattr(catalogue, "MOST_COUNTED", 4)
    for number in range(6):
        make_patch_switch(lab, f"more-{number}")
    page = ask().get(f"patches/?page_size=2{asked}").json()
    ids = [row["id"] for row in page["results"]]
    while page["next"]:
        page = ask().get(f"patches/?{urlsplit(page['next']).query}").json()
        ids += [row["id"] for row in page["results"]]
    submitted = Switch.objects.filter(kind="patch") if asked else Switch.objects.all()
    assert ids == [*([] if asked else [None]), *submitted.order_by("-pk").values_list("pk", flat=True)]


def test_pages_end_where_counting_does(ask: As, lab: Experiment) -> None:
    answer = ask().get("runs/?page_size=2&page=3")
    assert answer.status_code == 422
    assert "?after=" in answer.json()["detail"]
    # In another order no number says where to go on.
    assert ask().get("runs/?page_size=4&ordering=state").json()["next"].count("page=2")
    assert ask().get("runs/?page_size=4&ordering=state&page=2").status_code == 422
    assert ask().get("runs/?ordering=state&after=1").status_code == 422
    assert ask().get("runs/?page=1&after=1").status_code == 422


def test_a_short_list_is_counted_as_ever(ask: As, lab: Experiment) -> None:
    page = ask().get(f"variants/?experiment={lab.pk}").json()
    assert (page["count"], page["next"]) == (3, None)


def test_samples_are_looked_through_only_within_what_they_belong_to(ask: As, lab: Experiment) -> None:
    answer = ask().get("samples/?metric=ns_per_open")
    assert answer.status_code == 422
    assert "run, experiment, variant, case" in answer.json()["detail"]
    assert ask().get("samples/").json()["results"]
