# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest
from django.test import Client

from lab.comparisons.triage import Decision, Regression, decide
from lab.models import Comparison, Note, Triage, User
from lab.notes.changes import write_note
from lab.tests.factories import make_comparison, make_experiment, make_grid, make_user
from web.templatetags.links import linked
from web.tests.conftest import SCRIPT, Page, signed_in


@pytest.fixture
def regression(db: None) -> Comparison:
    experiment = make_grid()
    return make_comparison(experiment.cases.get(), experiment.variants.get(name="p"))


def decision(row: Comparison, **over: str) -> dict[str, str]:
    named = {"case": f"{row.case_id}", "variant": f"{row.variant_id}", "metric": row.metric, "seen": ""}
    return named | {"state": "acknowledged", "reason": "I look", "fixed_by": ""} | over


def explanation(row: Comparison) -> str:
    return f"/experiments/{row.experiment_id}/explain/{row.pk}/"


def test_a_regression_is_decided_on_from_its_page(
    page: Page, submitter: Client, regression: Comparison
) -> None:
    assert "No decision yet" in page(explanation(regression), by=submitter)
    posted = decision(regression, state="fixed", reason=f"see {SCRIPT}", fixed_by="https://example.org/c/1")
    answer = submitter.post("/regressions/triage", posted)
    assert answer.headers["Location"] == explanation(regression)
    text = page(explanation(regression), by=submitter)
    assert 'href="https://example.org/c/1"' in text
    assert "see &lt;script&gt;" in text
    assert SCRIPT not in text
    assert "fixed" in page(f"/experiments/{regression.experiment_id}/comparison/")
    assert page("/regressions/?state=fixed").count("alice") == 1


def test_what_was_typed_of_a_decision_stays_when_it_is_refused(
    submitter: Client, regression: Comparison
) -> None:
    posted = decision(regression, state="fixed", reason="long thought", fixed_by="soon")
    answer = submitter.post("/regressions/triage", posted)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="fixed_by-error"' in text
    assert "long thought" in text
    assert 'value="soon"' in text
    assert 'value="fixed" selected' in text


def test_of_two_who_decide_at_once_the_second_is_told(submitter: Client, regression: Comparison) -> None:
    dora = make_user("dora")
    on = Regression(regression.case_id, regression.variant_id, regression.metric)
    made = decide(by=dora, on=on, decision=Decision("expected", "meant so"), seen=None)
    answer = submitter.post("/regressions/triage", decision(regression, reason="my view"))
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "Dora has set it to expected" in text
    assert "my view" in text
    assert Triage.objects.count() == 1
    assert submitter.post("/regressions/triage", decision(regression, seen=f"{made.pk}")).status_code == 302
    assert Triage.objects.count() == 2


def test_a_viewer_reads_decisions_and_makes_none(
    page: Page, viewer: Client, client: Client, regression: Comparison
) -> None:
    assert 'action="/regressions/triage' not in page(explanation(regression), by=viewer)
    assert viewer.post("/regressions/triage", decision(regression)).status_code == 403
    assert client.post("/regressions/triage", decision(regression)).status_code == 302
    assert not Triage.objects.exists()


@pytest.mark.parametrize("over", [{"case": "x"}, {"variant": ""}, {"metric": "other"}, {"case": "9" * 30}])
def test_what_names_no_regression_is_not_there(
    submitter: Client, regression: Comparison, over: dict[str, str]
) -> None:
    assert submitter.post("/regressions/triage", decision(regression, **over)).status_code == 404


def test_the_address_of_the_list_holds_its_filters(
    page: Page, client: Client, regression: Comparison
) -> None:
    assert regression.metric in page("/regressions/?tree=tiny&state=open&search=ns")
    assert "No regression matches" in page("/regressions/?tree=other")
    empty = client.get("/regressions/?state=all&tree=&search=")
    assert empty.headers["Location"] == "/regressions/?state=all"
    assert regression.metric in page("/regressions/?state=nonsense&page=x")
    assert SCRIPT not in page(f"/regressions/?search={SCRIPT}&tree={SCRIPT}")


def test_a_verdict_that_is_no_regression_has_no_triage(page: Page, regression: Comparison) -> None:
    Comparison.objects.update(verdict="improvement")
    assert "Triage" not in page(explanation(regression))


def test_a_note_is_written_on_an_experiment_and_on_a_run(page: Page, submitter: Client) -> None:
    experiment = make_grid()
    run = experiment.runs.all()[0]
    for address in (f"/experiments/{experiment.pk}/", f"/runs/{run.pk}/"):
        answer = submitter.post(f"{address}notes", {"text": f"see https://example.org/ {SCRIPT}"})
        assert answer.headers["Location"] == f"{address}#notes"
        text = page(address)
        assert 'href="https://example.org/"' in text
        assert SCRIPT not in text
    assert Note.objects.count() == 2


def test_a_note_without_text_comes_back(submitter: Client) -> None:
    answer = submitter.post(f"/experiments/{make_experiment().pk}/notes", {"text": "  "})
    assert (answer.status_code, 'id="text-error"' in answer.content.decode()) == (422, True)


def test_one_edits_and_deletes_ones_own_note(page: Page, submitter: Client, alice: User) -> None:
    experiment = make_experiment()
    note = write_note(author=alice, experiment=experiment, text="first")
    address = f"/notes/{note.pk}"
    assert address in page(f"/experiments/{experiment.pk}/", by=submitter)
    assert "first" in page(address, by=submitter)
    assert submitter.post(address, {"text": ""}).status_code == 422
    submitter.post(address, {"text": "second"})
    assert "second" in page(f"/experiments/{experiment.pk}/")
    submitter.post(f"{address}/delete")
    assert not Note.objects.exists()


def test_the_note_of_another_is_only_read(page: Page, alice: User, operator: Client, viewer: Client) -> None:
    note = write_note(author=alice, experiment=make_experiment(), text="mine")
    dora = signed_in(make_user("dora"))
    address = f"/notes/{note.pk}"
    assert address not in page(f"/experiments/{note.experiment_id}/", by=dora)
    answers = [
        dora.get(address),
        dora.post(address, {"text": "x"}),
        dora.post(f"{address}/delete"),
        viewer.post(f"/experiments/{note.experiment_id}/notes", {"text": "x"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert operator.post(f"{address}/delete").status_code == 302
    assert dora.get(address).status_code == 404


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://a.example/x?y=1&z.", 'href="https://a.example/x?y=1&amp;z"'),
        ("(http://a.example/)", 'href="http://a.example/"'),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ('https://a.example/"onclick=x', "&quot;onclick=x"),
        ("https://a.example/<b>", "&lt;b&gt;"),
    ],
)
def test_only_web_addresses_become_links(text: str, shown: str) -> None:
    made = linked(text)
    assert shown in made
    assert made.count("<a ") == made.count("http") // 2
    assert "<b>" not in made
