# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in a patch's diff beside what sampled profiles and profiles of waiting measured in them."""

from __future__ import annotations

import pytest

from kernels.mails.stored_diff import stored_diff
from lab.models import Case, Experiment, Profile
from lab.profiles.claims import VariantClaims
from lab.profiles.page import profile_page
from lab.tests.claims import diff_of, sampled_experiment
from lab.tests.factories import make_patch_switch
from lab.tests.wait_profiles import MS, add_waits

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(db: None) -> Case:
    return sampled_experiment()


def claims(case: Case, kind: str = "") -> VariantClaims:
    (variant_claims,) = profile_page(case.experiment_id, case.pk, kind=kind, rows=1).claims
    return variant_claims


def test_functions_in_the_diff_are_told_by_what_was_measured_in_them(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("memcpy", "kernfs_iop_permission", "kernfs_new"))
    variant_claims = claims(case)
    assert (variant_claims.variant, variant_claims.base, variant_claims.unit) == ("p", "base", "samples")
    assert [(claim.function, claim.verdict) for claim in variant_claims.claims] == [
        ("kernfs_iop_permission", "changed"),
        ("memcpy", "unchanged"),
        ("kernfs_new", "unseen"),
    ]
    permission, memcpy, new = variant_claims.claims
    assert permission.measured is not None
    assert permission.measured.children, "only what it calls became less"
    assert permission.measured.before == pytest.approx(0.68, abs=0.01)
    assert permission.measured.after == pytest.approx(0.26, abs=0.01)
    assert memcpy.measured is not None
    assert not memcpy.measured.children
    assert new.measured is None


def test_a_function_in_the_diff_has_its_hunks(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("memcpy", "kernfs_iop_permission"))
    (claim,) = (claim for claim in claims(case).claims if claim.function == "memcpy")
    assert claim.path == "fs/a.c"
    assert claim.hunks == ("@@ -1,1 +1,2 @@ int memcpy(void)\n a();\n+b();",)


def test_a_diff_that_is_stored_as_a_mail_has_its_functions_and_hunks(case: Case) -> None:
    added = f'+b("\udce9", "{"x" * 80}");'
    text = stored_diff(diff_of("memcpy", "kernfs_iop_permission").replace("+b();", added))
    assert text.startswith("From "), "it has a byte that is not UTF-8"
    make_patch_switch(case.experiment, "p", text=text)
    permission, memcpy = claims(case).claims
    assert (permission.function, permission.verdict) == ("kernfs_iop_permission", "changed")
    shown = added.replace("\udce9", "\\xe9")
    assert memcpy.hunks == (f"@@ -1,1 +1,2 @@ int memcpy(void)\n a();\n{shown}",)


def test_what_changed_outside_the_diff_is_named_too(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("memcpy"))
    assert [row.symbol for row in claims(case).unclaimed] == ["other", "down_read"]


def test_a_copy_that_the_compiler_made_is_its_function(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("down_read"))
    assert claims(case).claims[0].verdict == "changed"


def test_a_patch_whose_diff_names_no_function_claims_nothing(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("memcpy").replace("a.c", "Kconfig"))
    assert profile_page(case.experiment_id, case.pk).claims == ()


def test_waits_are_compared_as_times(case: Case) -> None:
    make_patch_switch(case.experiment, "p", text=diff_of("down_read"))
    for run in case.runs.select_related("variant"):
        add_waits(run, {("open", "down_read"): (4 if run.variant.switches else 40) * MS + run.block})
    (claim,) = claims(case, "lock").claims
    assert claim.measured is not None
    assert (claim.verdict, round(claim.measured.before / MS), round(claim.measured.after / MS)) == (
        "changed",
        40,
        4,
    )


def test_profiles_of_the_patch_alone_have_nothing_to_compare_with(case: Case) -> None:
    experiment: Experiment = case.experiment
    make_patch_switch(experiment, "p", text=diff_of("memcpy"))
    Profile.objects.filter(run__variant__name="base").delete()
    assert profile_page(experiment.pk, case.pk).claims == ()
