# SPDX-License-Identifier: GPL-2.0-or-later
"""The claims of a patch beside what was measured, on the pages and in the API."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from lab.models import Case
from lab.tests.claims import diff_of, sampled_experiment
from lab.tests.factories import make_comparison, make_patch_switch
from web.tests.conftest import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(db: None) -> Case:
    made = sampled_experiment()
    make_patch_switch(made.experiment, "p", text=diff_of("down_read", "memcpy", "kernfs_new"))
    return made


def address(case: Case, query: str = "") -> str:
    return f"/experiments/{case.experiment_id}/profile/{case.pk}/{query}"


def rows(text: str) -> dict[str, list[str]]:
    """The cells of the table of claims by function."""
    table = text[text.index('aria-label="Functions in the diff of p"') :]
    table = table[: table.index("</table>")]
    matches = re.findall(r'<tr><th scope="row">(.*?)</tr>', table, re.DOTALL)
    plain = [re.sub(r"<[^>]+>", "\n", row).split("\n") for row in matches]
    return {cells[0]: cells[1:] for cells in ([cell for cell in row if cell.strip()] for row in plain)}


def test_the_page_has_functions_of_the_diff_with_hunks_and_measured_shares(case: Case, page: Page) -> None:
    text = page(address(case))
    assert (
        "Claimed and measured, p: 3 functions in the diff: 1 changed, 1 did not change, 1 not in the profiles"
        in text
    )
    table = rows(text)
    assert table["down_read"][-3:] == ["changed", "68.03\xa0%", "26.07\xa0%"]
    assert "+b();" in "".join(table["down_read"][:-3])
    assert table["memcpy"][-3] == "no significant change"
    assert "kernfs_new" not in table
    assert "1 in the diff, but not in the profiles: inlined, or not on the measured path" in text
    assert '<code class="break">kernfs_new</code>' in text
    beside = text[text.index("Changed, but not in the diff: <code") :]
    assert 'href="?kind=cpu&amp;variant=p&amp;against=base&amp;around=other"' in beside


def test_claims_are_open_unless_the_address_asks_for_another_table(case: Case, page: Page) -> None:
    def opened(query: str) -> list[str]:
        return re.findall(r"<details[^>]* open><summary><h2>(\w+)", page(address(case, query)))

    assert opened("") == ["Claimed"]
    assert opened("?variant=base") == ["Symbols"]
    assert opened("?symbols=memcpy") == ["Callers"]
    assert opened("?around=memcpy") == ["Symbols"]
    assert opened("?rows=all") == ["Symbols"]


def test_an_explanation_has_the_claims_too(case: Case, page: Page) -> None:
    patched = case.experiment.variants.get(name="p")
    row = make_comparison(case, patched)
    text = page(f"/experiments/{case.experiment_id}/explain/{row.pk}/")
    assert rows(text)["down_read"][-3] == "changed"


def test_the_api_has_the_claims(case: Case, client: Client) -> None:
    cases = client.get(f"/api/v1/experiments/{case.experiment_id}/profile/").json()["cases"]
    (claims,) = cases[0]["profile"]["claims"]
    assert (claims["variant"], claims["unit"]) == ("p", "samples")
    assert [claim["verdict"] for claim in claims["claims"]] == ["changed", "unchanged", "unseen"]
    assert claims["claims"][0]["hunks"][0].startswith("@@ -1,1 +1,2 @@ int down_read(void)")
