# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact numbers of a patch's instructions, apart from differences of boots of one kernel."""

from __future__ import annotations

import pytest

from lab.models import Case, Experiment, Profile
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.profiles.difference import difference
from lab.profiles.exact import ExactChange, exact_changes
from lab.profiles.exports.data import profile_data, profile_file
from lab.profiles.page import profile_page
from lab.tests.claims import diff_of
from lab.tests.exact_profiles import add_exact_boots, exact_experiment
from lab.tests.factories import make_case, make_experiment, make_patch_switch, make_variant

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(db: None) -> Case:
    return exact_experiment()


def change(case: Case) -> ExactChange:
    (exact_change,) = exact_changes(case.pk)
    return exact_change


def test_a_patch_of_one_instruction_is_named_with_its_exact_number(case: Case) -> None:
    exact_change = change(case)
    patch = [row for row in exact_change.rows if row.of_patch]
    assert [(row.symbol, row.before, row.after, row.change) for row in patch] == [
        ("kernfs_fop_open", 20.0, 21.0, 1.0)
    ]
    assert (patch[0].calls_before, patch[0].calls_after) == (1.0, 1.0)
    assert exact_change.of_patch == 1.0
    assert (exact_change.operation, exact_change.operations) == ("open", 100)


def test_what_differs_between_boots_of_the_base_is_not_the_patch(case: Case) -> None:
    exact_change = change(case)
    others = {row.symbol: (row.before, row.after) for row in exact_change.rows if not row.of_patch}
    assert set(others) == {"___slab_alloc", "[interrupts]"}
    assert exact_change.change == pytest.approx(exact_change.of_patch + exact_change.of_chance)
    # do_sys_open has its own instructions and those in the window's loop.
    assert exact_change.equal == 2


def test_interrupts_are_left_out_of_the_page_unless_asked_for(case: Case) -> None:
    page = profile_page(case.experiment_id, case.pk)
    assert page.kind == "exact"
    assert "tick" not in {row.symbol for row in page.symbols}
    (row,) = (row for row in page.symbols if row.symbol == "kernfs_fop_open")
    base, _, patched = row.own
    assert (base.waited, patched.waited) == (2000.0, 2100.0)
    assert (base.low, base.high) == (None, None)
    assert patched.certain
    assert not any(cell.certain for row in page.symbols for cell in row.own if row.symbol == "___slab_alloc")


def test_a_difference_has_the_numbers_of_one_boot(case: Case) -> None:
    compared = difference(case.experiment_id, case.pk, base="", variant="p")
    assert compared.unit == "instructions"
    base, patched = compared.sides
    assert patched.samples - base.samples == 100 + 1200
    folded = profile_file(case.experiment_id, "folded", variant="p", base="base", kind="exact").decode()
    assert "main;do_sys_open;kernfs_fop_open 2000 2100\n" in folded


def test_other_tools_get_instructions(case: Case) -> None:
    folded = profile_file(case.experiment_id, "folded", kind="exact").decode()
    assert "main;do_sys_open;kernfs_fop_open 2000\n" in folded
    assert "[interrupts]" not in folded


def test_data_for_labctl_and_the_api_has_the_change(case: Case) -> None:
    (profiled,) = profile_data(case.experiment_id)
    (change_,) = profiled["profile"]["changes"]
    assert change_["of_patch"] == 1.0
    assert change_["rows"][0]["symbol"] == "kernfs_fop_open"
    assert change_["rows"][0]["change"] == 1.0


def test_one_boot_a_side_says_what_that_cannot_tell(db: None) -> None:
    exact_change = change(exact_experiment(boots=1))
    assert "profile_boots = 2" in exact_change.doubt


def test_a_case_without_exact_profiles_has_no_changes(db: None) -> None:
    made: Experiment = make_experiment()
    case = make_case(made)
    assert exact_changes(case.pk) == ()
    add_exact_boots(make_variant(made, "p"), case, [{("main",): 5}])
    assert exact_changes(case.pk) == ()


def test_a_sampled_profile_is_looked_at_first(case: Case) -> None:
    run = case.runs.first()
    assert run is not None
    tree = build_tree([(("a",), 5)])
    Profile.objects.create(run=run, samples=5, tree=pack(tree))
    assert profile_page(case.experiment_id, case.pk).kind == "cpu"
    assert profile_page(case.experiment_id, case.pk, kind="exact").kind == "exact"


def test_functions_in_the_patchs_diff_are_told_from_others_that_changed(case: Case) -> None:
    hunk = "@@ -{0},1 +{0},2 @@ int {1}(void)\n a();\n+b();\n"
    names = ("kernfs_fop_open", "do_sys_open", "kernfs_fop_release")
    text = "diff --git a/fs/a.c b/fs/a.c\n--- a/fs/a.c\n+++ b/fs/a.c\n"
    text += "".join(hunk.format(10 * at + 1, name) for at, name in enumerate(names))
    make_patch_switch(case.experiment, "p", text=text)
    exact_change = change(case)
    assert {row.symbol for row in exact_change.rows if row.touched} == {"kernfs_fop_open"}
    assert exact_change.claims is not None
    assert {claim.function: claim.verdict for claim in exact_change.claims.claims} == {
        "kernfs_fop_open": "changed",
        "do_sys_open": "unchanged",
        "kernfs_fop_release": "unseen",
    }
    assert exact_change.claims == profile_page(case.experiment_id, case.pk).claims[0]


def test_a_diff_that_cannot_be_read_leaves_the_numbers(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text="--- a/x\n+++ b/x\n@@ -1 +1 @@@ torn")
    exact_change = change(case)
    assert not any(row.touched for row in exact_change.rows)
    assert exact_change.of_patch == 1.0


def test_a_function_of_a_module_is_found_in_the_patchs_diff(db: None) -> None:
    case = exact_experiment(names={"kernfs_fop_open": "rxe_open.isra.0 [rdma_rxe]"})
    make_patch_switch(case.experiment, "p", text=diff_of("rxe_open", path="drivers/infiniband/sw/rxe/rxe.c"))
    exact_change = change(case)
    assert {row.symbol for row in exact_change.rows if row.touched} == {"rxe_open [rdma_rxe]"}
    assert exact_change.claims is not None
    (claim,) = exact_change.claims.claims
    assert (claim.function, claim.verdict) == ("rxe_open", "changed")
    assert exact_change.claims.unclaimed == ()
