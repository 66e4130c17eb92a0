# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages and files of lock waits and of time off the CPU."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from django.test import Client

from lab.models import Experiment
from lab.profiles.analysis.frame_tree import stacks_of, unpack
from lab.profiles.page import profile_page
from lab.tests.factories import make_case, make_experiment, make_twin, make_variant
from lab.tests.wait_profiles import MS, add_waiting_boots
from web.tests.conftest import SCRIPT, Page
from web.words import times_between

BASE = {("showgids", "open", "down_read"): 40 * MS, ("showgids", "stat", SCRIPT): 10 * MS}
CANDIDATE = {("showgids", "open", "down_read"): 4 * MS, ("showgids", "stat", SCRIPT): 10 * MS}


@pytest.fixture
def waited(db: None) -> Experiment:
    """Base, its twin and a patch that ends most of the waiting for one lock."""
    made = make_experiment(state="done", profile=True)
    case = make_case(made)
    base = make_variant(made)
    for variant, stacks in ((base, BASE), (make_twin(made), BASE), (make_variant(made, "p"), CANDIDATE)):
        add_waiting_boots(variant, case, stacks)
    return made


def place(experiment: Experiment) -> str:
    return f"/experiments/{experiment.pk}/profile/{experiment.cases.get().pk}"


def test_lock_waits_are_times_a_boot_with_intervals_and_their_shares(page: Page, waited: Experiment) -> None:
    text = page(f"{place(waited)}/?kind=lock&variant=p")
    assert "flame graph of lock waits of p" in text
    assert "▼ 4.2" in text
    assert "28.57" in text
    assert "300 waits" in text
    assert "Overhead of profiling: +2.0" in text
    assert SCRIPT not in text


def test_the_other_locks_share_grows_but_not_its_time(waited: Experiment) -> None:
    page = profile_page(waited.pk, waited.cases.get().pk, kind="lock")
    rows = {row.symbol: row for row in page.symbols}
    assert page.symbols[0].symbol in {"down_read", "open", "showgids"}
    other = rows[SCRIPT].own[2]
    assert other.share > 2 * rows[SCRIPT].own[0].share
    assert not other.certain
    assert rows["down_read"].own[2].certain
    assert rows["down_read"].own[0].waited == pytest.approx(42 * MS)


def test_a_row_of_waits_opens_into_callers_and_callees(page: Page, waited: Experiment) -> None:
    text = page(f"{place(waited)}/?kind=lock&around=open")
    assert re.search(r"called by</span> <a [^>]*around=showgids#around\">showgids</a>", text)
    assert re.search(r"calls</span> <a [^>]*around=down_read#around\">down_read</a>", text)
    assert "kind=lock&amp;around=down_read#around" in text


def test_waits_are_split_by_who_calls_what_they_end_in_unless_others_are_asked_for(
    waited: Experiment,
) -> None:
    page = profile_page(waited.pk, waited.cases.get().pk, kind="lock")
    assert page.asked == ("down_read", SCRIPT)
    assert [row.caller for row in page.splits[0].rows] == ["open", "stat"]
    asked = profile_page(waited.pk, waited.cases.get().pk, asked=("open",), kind="lock")
    assert [row.caller for row in asked.splits[0].rows] == ["showgids"]


def test_kinds_that_are_there_can_be_chosen(page: Page, waited: Experiment) -> None:
    assert "Off CPU" not in page(f"{place(waited)}/?kind=lock")
    for variant in waited.variants.all():
        add_waiting_boots(variant, waited.cases.get(), {("idle", "schedule"): 5 * MS}, kind="off-cpu")
    text = page(f"{place(waited)}/?kind=lock&variant=p")
    assert '?kind=off-cpu&amp;variant=p"' in text
    assert "Off CPU" in text
    assert "On CPU" not in text


def test_without_profiles_of_a_kind_the_page_says_so(page: Page, waited: Experiment) -> None:
    assert "No boot of this case recorded off cpu" in page(f"{place(waited)}/?kind=off-cpu")


def test_a_kind_that_does_not_exist_names_those_that_do(client: Client, waited: Experiment) -> None:
    response = client.get(f"{place(waited)}/?kind=locks")
    assert response.status_code == 404
    assert "there are: cpu, lock, off-cpu" in response.content.decode()
    assert client.get(f"{place(waited)}/variant.svg?kind=locks").status_code == 404


def test_files_of_waits_say_that_they_count_nanoseconds(client: Client, waited: Experiment) -> None:
    asked = "?kind=lock&variant=p"
    speed = client.get(f"{place(waited)}/variant.speedscope.json{asked}").json()
    assert speed["profiles"][0]["unit"] == "nanoseconds"
    assert b"delay" in gzip.decompress(client.get(f"{place(waited)}/variant.pb.gz{asked}").content)
    assert " ms, " in client.get(f"{place(waited)}/variant.svg{asked}").content.decode()
    refused = client.get(f"{place(waited)}/variant.script.txt{asked}")
    assert refused.status_code == 422
    assert b"waits are not samples" in refused.content


def test_one_boots_waits_are_a_file_of_their_own(client: Client, waited: Experiment) -> None:
    run = waited.runs.filter(variant__name="p")[0]
    assert client.get(f"/profiles/{run.pk}.tree").status_code == 404
    response = client.get(f"/profiles/{run.pk}.tree?kind=lock")
    assert dict(stacks_of(unpack(response.content))) == CANDIDATE
    assert f'filename="profile-{run.pk}-lock.tree"' in response.headers["Content-Disposition"]


def test_a_difference_of_waits_has_its_unit_and_its_certainty(client: Client, waited: Experiment) -> None:
    difference = json.loads(client.get(f"{place(waited)}/difference.json?kind=lock&variant=p").content)
    assert (difference["kind"], difference["unit"]) == ("lock", "ns")
    q = {
        difference["names"][name]: q
        for name, q in zip(difference["name"], difference["q_samples"], strict=True)
    }
    assert q["down_read"] < 0.05
    assert q[SCRIPT] > 0.05
    picture = client.get(f"{place(waited)}/difference.svg?kind=lock&variant=p").content.decode()
    assert "42.000 ms a boot → 4.200 ms a boot" in picture


def test_only_the_first_symbols_are_shown_until_all_are_asked_for(page: Page, db: None) -> None:
    made = make_experiment(state="done", profile=True)
    stacks = {("x", f"site_{number:02}"): (100 - number) * MS for number in range(30)}
    add_waiting_boots(make_variant(made), make_case(made), stacks)
    first = page(f"{place(made)}/?kind=lock")
    assert "Show all 30 symbols" in first
    assert "▸ site_29" not in first
    assert "▾ site_29" in page(f"{place(made)}/?kind=lock&around=site_29")
    every = page(f"{place(made)}/?kind=lock&rows=all")
    assert "▸ site_29" in every
    assert "Show the first 20 only" in every


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.2e6, 34e6, "1.2 to 34 ms"),
        (0.0, 12.0, "0 to 12 ns"),
        (4.9e-3, 8e6, "0 to 8 ms"),
        (None, 5.0, ""),
        (1e9, 2e9, "1 to 2 s"),
    ],
)
def test_an_interval_of_times_has_one_unit(low: float | None, high: float | None, text: str) -> None:
    assert times_between(low, high).replace("\N{NO-BREAK SPACE}", " ") == text


def test_the_callers_as_text_are_said_to_look_like_perf_report(
    page: Page, client: Client, compared: Experiment
) -> None:
    at = f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/"
    text = page(f"{at}?symbols=down_read")
    assert "As text, as in <code>perf report</code>:" in text
    assert "[k] down_read" in client.get(f"{at}callers.txt?symbols=down_read").content.decode()


def test_another_variant_or_case_shows_the_same_function(page: Page, compared: Experiment) -> None:
    address = f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/"
    make_case(compared, params={"threads": 8})
    text = page(f"{address}?variant=p&symbols=down_read&around=down_read")
    chips = re.findall(r'<nav class="chips" aria-label="(Cases|Variant|Difference)">(.*?)</nav>', text)
    links = [(name, link) for name, nav in chips for link in re.findall(r'href="([^"]*)"', nav)]
    assert {name for name, _ in links} == {"Cases", "Variant", "Difference"}
    for name, link in links:
        assert "around=down_read" in link, name
        assert "symbols=down_read" in link, name
