# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.comparisons.triage import Decision, Regression, decide, newest_decision
from lab.errors import FieldRefused, NotAllowed, Outdated, UnknownRow
from lab.models import Comparison, Triage, User, Variant
from lab.models.states import Role
from lab.tests.factories import make_case, make_comparison, make_experiment, make_user, make_variant

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression() -> Regression:
    experiment = make_experiment()
    make_variant(experiment)
    row = make_comparison(make_case(experiment), make_variant(experiment, "p"), verdict="regression")
    return Regression(row.case_id, row.variant_id, row.metric)


def test_a_decision_stands_above_those_before_it(regression: Regression) -> None:
    alice = make_user("alice")
    first = decide(by=alice, on=regression, decision=Decision("acknowledged", "I look"), seen=None)
    second = decide(by=alice, on=regression, decision=Decision("fixed", "", "1da177e4c3f4"), seen=first.pk)
    assert newest_decision(regression) == second
    assert list(Triage.objects.values_list("state", flat=True)) == ["acknowledged", "fixed"]


def test_a_decision_made_from_an_old_page_overwrites_nothing(regression: Regression) -> None:
    decide(by=make_user("alice"), on=regression, decision=Decision("acknowledged"), seen=None)
    with pytest.raises(Outdated, match="alice has set it to acknowledged"):
        decide(by=make_user("dora"), on=regression, decision=Decision("expected"), seen=None)
    assert Triage.objects.get().state == "acknowledged"


def test_a_decision_outlives_a_new_comparison(regression: Regression) -> None:
    made = decide(by=make_user("alice"), on=regression, decision=Decision("expected"), seen=None)
    Comparison.objects.all().delete()
    again = decide(by=make_user("dora"), on=regression, decision=Decision("new"), seen=made.pk)
    assert newest_decision(regression) == again


@pytest.mark.parametrize(
    "fixed_by",
    ["1da177e", '1da177e4c3f4 ("Linux-2.6.12-rc2")', "https://lore.kernel.org/all/x", "a" * 40],
)
def test_what_fixes_it_is_a_commit_or_a_link(regression: Regression, fixed_by: str) -> None:
    made = decide(by=make_user("alice"), on=regression, decision=Decision("fixed", "", fixed_by), seen=None)
    assert made.fixed_by == fixed_by


@pytest.mark.parametrize("fixed_by", ["", "soon", "javascript:alert(1)", "1da17", "https://a b"])
def test_what_is_neither_fixes_nothing(regression: Regression, fixed_by: str) -> None:
    with pytest.raises(FieldRefused, match="7 hex digits") as refused:
        decide(by=make_user("alice"), on=regression, decision=Decision("fixed", "", fixed_by), seen=None)
    assert refused.value.field == "fixed_by"


def test_only_what_is_fixed_names_a_commit(regression: Regression) -> None:
    made = decide(by=make_user("a"), on=regression, decision=Decision("expected", "x", "1da177e"), seen=None)
    assert made.fixed_by == ""


@pytest.mark.parametrize("field", ["reason", "fixed_by"])
def test_what_would_not_be_shown_as_it_is_is_refused(regression: Regression, field: str) -> None:
    decision = Decision("expected", **{field: "fine\u202egnihton"})
    with pytest.raises(FieldRefused, match="would not be shown as it is") as refused:
        decide(by=make_user("alice"), on=regression, decision=decision, seen=None)
    assert refused.value.field == field
    assert not Triage.objects.exists()


def test_a_state_nobody_knows_is_refused_with_the_valid_ones(regression: Regression) -> None:
    with pytest.raises(FieldRefused, match="valid: new, acknowledged, expected, fixed"):
        decide(by=make_user("alice"), on=regression, decision=Decision("wontfix"), seen=None)


def test_a_viewer_does_not_triage(regression: Regression) -> None:
    with pytest.raises(NotAllowed, match="bob is a viewer"):
        decide(by=make_user("bob", User.Role.VIEWER), on=regression, decision=Decision("expected"), seen=None)


def test_only_regressions_of_candidates_are_triaged(regression: Regression) -> None:
    alice, said = make_user("alice"), Decision("expected")
    Comparison.objects.update(verdict="unchanged")
    with pytest.raises(UnknownRow, match="its verdict is unchanged"):
        decide(by=alice, on=regression, decision=said, seen=None)
    Comparison.objects.update(verdict="regression")
    Variant.objects.update(role=Role.AA)
    with pytest.raises(UnknownRow, match="there is no comparison"):
        decide(by=alice, on=regression, decision=said, seen=None)
