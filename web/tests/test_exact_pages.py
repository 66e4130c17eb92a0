# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles on the pages: the table of where instructions went, the flame graphs, and how they are compared."""

from __future__ import annotations

import gzip
import re

import pytest
from django.test import Client

from lab.models import Case, Profile
from lab.profiles.analysis.frame_tree import build_tree, pack, stacks_of, unpack
from lab.profiles.analysis.source_lines import pack_lines
from lab.tests.exact_profiles import exact_experiment
from lab.tests.factories import make_comparison
from web.tests.conftest import Page


@pytest.fixture
def case(db: None) -> Case:
    return exact_experiment()


def address(case: Case, query: str = "") -> str:
    return f"/experiments/{case.experiment_id}/profile/{case.pk}/{query}"


def cells(text: str, symbol: str) -> list[str]:
    """The cells of a symbol's row in the table of the change."""
    table = text[text.index("Where the instructions went") :]
    row = re.search(
        rf"<tr[^>]*><th[^>]*>(?:<[^>]+>)*{re.escape(symbol)}<.*?/th>(.*?)</tr>",
        table,
    )
    assert row is not None
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row[1])]


def test_the_page_names_the_patched_function_with_its_exact_number(case: Case, page: Page) -> None:
    text = page(address(case))
    assert cells(text, "kernfs_fop_open") == ["+1", "20", "21", "1"]
    assert "<strong>+1</strong> caused by the patch" in text
    patch, chance = (
        text.index("The patch<"),
        text.index("Not the patch: these also differ between boots of base"),
    )
    assert patch < text.index(">kernfs_fop_open<") < chance
    assert chance < text.index(">___slab_alloc<", chance)


def test_file_and_line_stand_with_a_function_where_the_line_tables_had_them(
    case: Case, page: Page, client: Client
) -> None:
    assert "sub break" not in page(address(case, "?around=kernfs_fop_open"))
    lines = {"kernfs_fop_open": "fs/kernfs/file.c:613", "do_sys_open": "fs/open.c:1294"}
    base = Profile.objects.filter(run__variant__name="base").order_by("run__block")[0]
    Profile.objects.filter(pk=base.pk).update(lines=pack_lines(lines))
    Profile.objects.filter(run__variant__name="p").update(
        lines=pack_lines({"kernfs_fop_open": "fs/kernfs/file.c:619", "___slab_alloc": "mm/slub.c:3109"})
    )
    text = page(address(case, "?variant=p&against=base&around=kernfs_fop_open"))
    # In the sentence of the sandwich, in the table of the change and in that of all symbols.
    assert text.count("fs/kernfs/file.c:613<") == 3
    assert "file.c:619" not in text, "that of the base is shown where it has one"
    assert "mm/slub.c:3109<" in text
    answer = client.get(address(case, "lines.json?kind=exact")).json()
    assert answer == lines | {"___slab_alloc": "mm/slub.c:3109"}
    assert client.get(address(case, "lines.json?kind=cpu")).json() == {}
    speed = client.get(address(case, "variant.speedscope.json?kind=exact")).json()
    assert {"name": "do_sys_open", "file": "fs/open.c", "line": 1294} in speed["shared"]["frames"]
    assert {"name": "main"} in speed["shared"]["frames"]
    assert b"fs/open.c" in gzip.decompress(client.get(address(case, "variant.pb.gz?kind=exact")).content)
    (answer,) = client.get(f"/api/v1/experiments/{case.experiment_id}/profile/?kind=exact").json()["cases"]
    assert answer["profile"]["changes"][0]["rows"][0]["line"] == "fs/kernfs/file.c:613"
    assert "fs/open.c:1294" in {row["line"] for row in answer["profile"]["symbols"]}


def test_nothing_exact_is_said_to_be_sampled(case: Case, page: Page) -> None:
    text = page(address(case, "?variant=p&against=base"))
    for word in ("95&nbsp;% interval", "busy samples", "perf script", "± ", "q over", "Show idle"):
        assert word not in text, word
    assert "Show interrupts" in text
    assert 'data-kind="exact"' in text


def test_from_the_base_a_difference_is_that_of_the_patch(case: Case, page: Page) -> None:
    text = page(address(case, "?variant=base"))
    assert 'href="?kind=exact&amp;variant=p&amp;against=base"' in text
    assert "variant=base&amp;against=p" not in text
    text = page(address(case, "?variant=p&against=base"))
    # The same link once more ends it.
    assert re.search(r'href="\?kind=exact&amp;variant=p" aria-current="true">base<', text)


@pytest.mark.parametrize("form", ["tree", "folded", "speedscope.json", "pb.gz", "svg"])
def test_each_form_of_a_variant_is_there(case: Case, form: str, client: Client) -> None:
    answer = client.get(address(case, f"variant.{form}?kind=exact&variant=p"))
    assert answer.status_code == 200


def test_samples_one_by_one_are_refused_in_words(case: Case, client: Client) -> None:
    answer = client.get(address(case, "variant.script.txt?kind=exact&variant=p"))
    assert answer.status_code == 422
    assert b"instructions are not samples that can be printed one by one" in answer.content


def test_the_api_has_the_change(case: Case, client: Client) -> None:
    document = client.get(f"/api/v1/experiments/{case.experiment_id}/profile/").json()
    (change,) = document["cases"][0]["profile"]["changes"]
    assert (change["rows"][0]["symbol"], change["rows"][0]["change"]) == ("kernfs_fop_open", 1.0)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '" onmouseover="x', "</table><img src=x>", "<b>"]
)
def test_names_that_a_guest_made_up_are_text_on_the_page(name: str, page: Page, db: None) -> None:
    case = exact_experiment(names={"kernfs_fop_open": name})
    text = page(address(case, "?variant=p&against=base"))
    assert name not in text
    assert "Where the instructions went" in text


def test_the_comparison_page_says_first_where_the_instructions_went(case: Case, page: Page) -> None:
    patch = case.experiment.variants.get(name="p")
    make_comparison(case, patch, metric="instructions_per_open", unit="instructions")
    text = page(f"/experiments/{case.experiment_id}/comparison/")
    assert cells(text, "kernfs_fop_open") == ["+1", "20", "21", "1"]
    assert "Not the patch: these also differ between boots of base" in text
    assert text.index("Where the instructions went: p") < text.index("± floor")
    at = f"/experiments/{case.experiment_id}/profile/{case.pk}/?kind=exact&amp;variant=p"
    assert f'<a href="{at}">All functions and the exact flame graph</a>' in text
    assert f'<a href="{at}&amp;against=base">its difference to base</a>' in text


def test_the_comparison_page_shows_the_ten_largest_functions_of_a_patch(case: Case, page: Page) -> None:
    patch = case.experiment.variants.get(name="p")
    make_comparison(case, patch, metric="instructions_per_open", unit="instructions")
    for profile in Profile.objects.filter(run__variant=patch):
        stacks = dict(stacks_of(unpack(bytes(profile.tree)))) | {
            (f"new_{n}",): 100 * (n + 1) for n in range(12)
        }
        calls = dict(stacks_of(unpack(bytes(profile.calls or b"")))) | {(f"new_{n}",): 100 for n in range(12)}
        profile.tree, profile.calls = (pack(build_tree(counts.items())) for counts in (stacks, calls))
        profile.save()
    text = page(f"/experiments/{case.experiment_id}/comparison/")
    assert cells(text, "new_11") == ["+12", "0", "12", "0 →\u00a01"]
    assert ">new_0<" not in text
    assert "and 3 more of the patch" in text


def test_a_function_of_the_change_leads_to_its_callers_and_callees_from_every_table(
    case: Case, page: Page
) -> None:
    make_comparison(
        case, case.experiment.variants.get(name="p"), metric="instructions_per_open", unit="instructions"
    )
    around = "?kind=exact&amp;variant=p&amp;against=base&amp;around=kernfs_fop_open"
    verdict = case.experiment.comparisons.get().pk
    profile, comparison = address(case), f"/experiments/{case.experiment_id}/comparison/"
    for at, href in (
        (profile, around),
        (comparison, f"{profile}{around}"),
        (f"/experiments/{case.experiment_id}/explain/{verdict}/", f"{profile}{around}"),
    ):
        text = page(at)
        assert f'href="{href}">kernfs_fop_open</a>' in text, at
        assert "around=[interrupts]" not in text
        assert "around=%5Binterrupts" not in text.partition("Symbols side by side")[0]
    assert "is in the middle" in page(f"{profile}{around.replace('&amp;', '&')}")
