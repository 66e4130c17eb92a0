# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http.response import HttpResponseBase
from django.test import Client

from lab.errors import LabUnable, SubmissionRejected
from lab.experiments.spec import ExperimentSpec, spec_digest
from lab.models import User
from lab.submission.preview import NO_HISTORY, NOT_ESTIMATED, Detectable, Preview, VariantPreview
from lab.submission.received_series import MOST_FILES
from lab.submission.shipped_figures import SHIPPED
from lab.tests.factories import make_experiment
from web.tests.browserform import BrowserForm
from web.tests.conftest import SCRIPT, Page

FILLED = {
    "name": "kernfs",
    "tree": "debian-6.1",
    "design": "full",
    "target": "guest",
    "case": "showgids",
    "preset-showgids": "smoke",
    "params-showgids": "threads = 2",
    "boots": "3",
    "iterations": "2",
    "warmup": "1",
    "seed": "1",
}
TOML = 'name = "x"\ntree = "debian-6.1"\n[[cases]]\nworkload = "showgids"\npreset = "smoke"\n'


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ExperimentSpec]:
    """Stand in for lab.submission.submit, which would import a tree: keep what it is asked to take in."""
    specs: list[ExperimentSpec] = []

    def submit(*, spec: ExperimentSpec, by: User, **_: object) -> Any:
        specs.append(spec)
        return SimpleNamespace(pk=41)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    return specs


def refuse(monkeypatch: pytest.MonkeyPatch, message: str, detail: str = "") -> None:
    refuse_with(monkeypatch, SubmissionRejected(message, detail))


def refuse_with(monkeypatch: pytest.MonkeyPatch, refusal: SubmissionRejected) -> None:
    """Stand in for what takes a description in and for what looks at its parts, for both would open a tree."""

    def submit(*, spec: ExperimentSpec, by: User, **_: object) -> Any:
        raise refusal

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    monkeypatch.setattr("lab.submission.web_process.check_parts", lambda _: None)


def error_beside(response: HttpResponseBase, field: str) -> str:
    assert response.status_code == 422
    text = getattr(response, "content", b"").decode()
    match = re.search(rf'<span class="error" id="{re.escape(field)}-error">(.*?)</span>', text)
    assert match, f"no error beside {field}"
    assert f"{field}-error" in text.replace(match[0], ""), "the field does not point to its error"
    return match[1]


def test_the_form_offers_trees_workloads_and_designs(page: Page, submitter: Client) -> None:
    text = page("/experiments/new", by=submitter)
    for offered in ("debian-6.1", "debian-6.12", "showgids", "stat-walk", "one-at-a-time", "smoke", "guest"):
        assert offered in text


def test_a_good_form_becomes_an_experiment(submitter: Client, taken: list[ExperimentSpec]) -> None:
    response = submitter.post(
        "/experiments/new", {**FILLED, "patch-0-name": "mine", "patch-0-text": "diff\r\n", "verify": "on"}
    )
    assert response.headers["Location"] == "/experiments/41/"
    assert taken[0].patches[0].text == "diff\n"
    assert taken[0].cases[0].params == {"threads": 2}
    assert taken[0].measure.verify
    assert not taken[0].measure.profile


def test_a_second_click_leads_to_the_experiment_of_the_first(
    submitter: Client, alice: User, taken: list[ExperimentSpec]
) -> None:
    submitter.post("/experiments/new", FILLED)
    first = make_experiment(digest=spec_digest(taken[0]), submitter=alice)
    response = submitter.post("/experiments/new", FILLED, follow=True)
    assert response.redirect_chain == [(f"/experiments/{first.pk}/", 302)]
    assert f"Already queued as #{first.pk}" in response.content.decode()
    assert len(taken) == 1


def test_uploaded_files_become_switches(submitter: Client, taken: list[ExperimentSpec]) -> None:
    files = [SimpleUploadedFile("0001-a.patch", b"one"), SimpleUploadedFile("b.mbox", b"two")]
    submitter.post("/experiments/new", {**FILLED, "files": files})
    assert [(patch.name, patch.text) for patch in taken[0].patches] == [("a", "one"), ("b", "two")]


@pytest.mark.process
@pytest.mark.parametrize(
    ("field", "typed", "beside", "said"),
    [
        ("name", "x" * 201, "name", "enter at most 200 characters, not 201"),
        ("boots", "1", "boots", "2"),
        ("boots", "many", "boots", "“many” is not a whole number"),
        ("design", "best", "design", "valid"),
        ("params-showgids", "threads = 0", "case-showgids", "threads"),
        ("params-showgids", "treads = 2", "case-showgids", "threads"),
        ("params-showgids", "nonsense", "case-showgids", "parameter = value"),
        ("preset-showgids", "huge", "case-showgids", "smoke"),
        ("patch-0-name", "a b", "patch-0-name", "not allowed"),
        ("config-0-name", "c", "config-0-text", "at least 1"),
    ],
)
def test_a_fault_is_told_beside_its_field(
    submitter: Client, taken: list[ExperimentSpec], field: str, typed: str, beside: str, said: str
) -> None:
    response = submitter.post("/experiments/new", {**FILLED, field: typed})
    assert re.search(said, error_beside(response, beside))
    assert taken == []


@pytest.mark.parametrize(
    ("message", "beside"),
    [
        ('there is no tree "debian-5". Did you mean debian-6.1?', "tree"),
        ('debian-6.1 has no revision "v9". Did you mean v6.1.192?', "base"),
        ('switch "mine" is damaged beyond repair on v6.1: fs/dir.c, hunk 3', "patch-0-text"),
        ('target: there is no target "metal"; valid: guest', "target"),
        ("measure.verify: none of the cases can be verified", "verify"),
    ],
)
def test_what_intake_refuses_is_told_beside_its_field(
    submitter: Client, monkeypatch: pytest.MonkeyPatch, message: str, beside: str
) -> None:
    refuse(monkeypatch, message, "the hunk")
    response = submitter.post("/experiments/new", {**FILLED, "patch-0-name": "mine", "patch-0-text": "diff"})
    assert error_beside(response, beside)
    assert "the hunk" in response.content.decode()


@pytest.mark.process
def test_what_was_typed_is_kept_when_the_form_is_refused(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    typed = {
        **FILLED,
        "boots": "1",
        "patch-0-text": f"diff {SCRIPT}",
        "name": f"name {SCRIPT}",
        "design": "cumulative",
    }
    files = [SimpleUploadedFile("0001-upload.patch", b"uploaded text")]
    text = submitter.post("/experiments/new", {**typed, "files": files}).content.decode()
    assert SCRIPT not in text
    assert "diff &lt;script&gt;" in text
    assert "name &lt;script&gt;" in text
    assert "uploaded text" in text
    assert re.search(r'value="cumulative" selected', text)
    assert re.search(r'value="showgids" checked', text)


def test_a_pasted_description_becomes_an_experiment(submitter: Client, taken: list[ExperimentSpec]) -> None:
    response = submitter.post("/experiments/new", {"toml": TOML})
    assert response.headers["Location"] == "/experiments/41/"
    assert taken[0].name == "x"


@pytest.mark.process
@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("name = ", "not valid TOML"),
        (TOML.replace("smoke", "huge"), "smoke"),
        (f'{TOML}\n[[patches]]\nfile = "/etc/passwd"', "labctl"),
    ],
)
def test_a_description_that_is_wrong_is_told_and_kept(
    submitter: Client, taken: list[ExperimentSpec], toml: str, said: str
) -> None:
    response = submitter.post("/experiments/new", {"toml": toml})
    assert said in error_beside(response, "toml")
    assert taken == []


def test_a_form_from_elsewhere_is_refused(alice: User, taken: list[ExperimentSpec]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post("/experiments/new", FILLED).status_code == 403
    assert taken == []


def test_whoever_submits_is_noted(submitter: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(*, spec: ExperimentSpec, by: User, **_: object) -> Any:
        return make_experiment(name=spec.name, submitter=by)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    submitter.post("/experiments/new", FILLED)
    assert alice.experiments.get().name == "kernfs"


def test_nobody_submits_without_an_account(client: Client, db: None, taken: list[ExperimentSpec]) -> None:
    answer = client.post("/experiments/new", FILLED)
    assert answer.headers["Location"] == "/sign-in/?next=/"
    assert taken == []


def test_a_viewer_cannot_submit(viewer: Client, taken: list[ExperimentSpec]) -> None:
    assert viewer.post("/experiments/new", FILLED).status_code == 403
    assert viewer.get("/experiments/new").status_code == 403
    assert taken == []


def test_a_preview_shows_what_it_would_take_and_queues_nothing(
    submitter: Client, taken: list[ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = (
        VariantPreview("base", "base", "built"),
        VariantPreview("a+b", "candidate", "pruned", "a excludes <b>"),
    )
    seen = (
        Detectable("showgids (smoke)", "ns_per_open", 0.021, 4),
        Detectable("x", "y", None, 0, why=NO_HISTORY),
    )
    monkeypatch.setattr(
        "web.views.submission.preview_here",
        lambda *, spec, by, origin=None: Preview(variants, 2, 60, 9, 754.0, seen),
    )
    for posted in (FILLED | {"boots": "auto", "preview": "1"}, {"toml": TOML, "preview": "1"}):
        page = submitter.post("/experiments/new", posted)
        text = page.content.decode()
        assert page.status_code == 200
        figures = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", text)
        assert dict(figures)["Kernels to build"] == "2"
        assert dict(figures)["Boots"] == "9 to 60"
        assert dict(figures)["Takes"] == "13\N{NO-BREAK SPACE}min"
        assert dict(figures)["Smallest detectable effect"] == "2.1\N{NO-BREAK SPACE}%"
        assert "a excludes &lt;b&gt;" in text
        assert "based on 4 earlier experiments" in text
        assert "no history on this target yet" in text
    assert taken == []


def test_a_preview_by_the_contention_clock_promises_no_smallest_change(
    submitter: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = (Detectable("showgids (smoke)", "cycles_per_open_32", None, 0, why=NOT_ESTIMATED),)
    monkeypatch.setattr(
        "web.views.submission.preview_here",
        lambda *, spec, by, origin=None: Preview((), 2, 20, 20, 754.0, seen),
    )
    text = submitter.post("/experiments/new", FILLED | {"preview": "1"}).content.decode()
    assert text.count(NOT_ESTIMATED) == 2
    assert "boots agree exactly" not in text


@pytest.mark.parametrize("posted", [FILLED, {"toml": TOML.replace('"x"', '"pasted"')}])
def test_the_button_of_a_preview_submits_what_was_previewed(
    posted: dict[str, str], submitter: Client, taken: list[ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    previewed: list[ExperimentSpec] = []

    def preview(*, spec: ExperimentSpec, **_: object) -> Preview:
        previewed.append(spec)
        return Preview((), 2, 60, 9, 754.0, ())

    monkeypatch.setattr("web.views.submission.preview_here", preview)
    text = submitter.post("/experiments/new", posted | {"preview": "1"}).content.decode()
    button = re.search(r'<button class="main" form="(\w+)">Submit this</button>', text)
    assert button
    submitter.post("/experiments/new", BrowserForm(text, button[1]).as_post())
    assert taken == previewed
    # And the link beside it leads to a field of that form.
    place = re.search(r'<a class="button" href="#(\w+)">Change it</a>', text)
    assert place
    assert f'id="{place[1]}"' in text[text.index(f'id="{button[1]}"') :]


def test_a_preview_marks_what_it_estimates_from_shipped_figures(
    submitter: Client, taken: list[ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = (Detectable("showgids (smoke)", "ns_per_open", 0.25, 0, SHIPPED),)
    made = Preview((), 2, 9, 9, 754.0, seen, build_seconds=160.0, estimate=SHIPPED, at_least=True)
    monkeypatch.setattr("web.views.submission.preview_here", lambda *, spec, by, origin=None: made)
    text = submitter.post("/experiments/new", FILLED | {"preview": "1"}).content.decode()
    assert text.count(SHIPPED) == 3
    assert f"at least, once it starts; {SHIPPED}" in text
    assert f"detected with 80&nbsp;% power; {SHIPPED}" in text
    assert "earlier experiment" not in text


@pytest.mark.process
def test_the_form_takes_as_many_files_as_it_says_and_refuses_one_more_in_words(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    assert settings.DATA_UPLOAD_MAX_NUMBER_FILES == MOST_FILES

    def send(many: int) -> HttpResponseBase:
        files = [SimpleUploadedFile(f"{number}.patch", b"x") for number in range(many)]
        return submitter.post("/experiments/new", FILLED | {"files": files})

    read = send(MOST_FILES)
    assert read.status_code == 422
    assert "at most 201 files" not in getattr(read, "content", b"").decode()
    refused = send(MOST_FILES + 1)
    assert refused.status_code == 400
    said = getattr(refused, "content", b"").decode()
    assert said == "A request may contain at most 201 files: go back and pack them into one .tar.gz.\n"
    assert taken == []


def test_the_clock_and_the_controls_can_be_chosen(submitter: Client, taken: list[ExperimentSpec]) -> None:
    posted = FILLED | {"clock": "instructions", "params-showgids": "", "placebo": "on"}
    assert submitter.post("/experiments/new", posted).status_code == 302
    assert (taken[0].measure.clock, taken[0].measure.placebo) == ("instructions", True)
    submitter.post("/experiments/new", FILLED | {"boots": "auto"})
    assert taken[1].measure.boots == "auto"


@pytest.mark.process
def test_parameters_that_do_not_go_with_the_clock_are_told_beside_the_workload(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    said = error_beside(
        submitter.post("/experiments/new", FILLED | {"clock": "instructions"}), "case-showgids"
    )
    assert "threads" in said


def test_a_fault_of_the_lab_is_one_line_on_the_form(
    submitter: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*, spec: ExperimentSpec, by: User, **_: object) -> Any:
        raise LabUnable("the lab cannot accept this now: no space left on device")

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    page = submitter.post("/experiments/new", FILLED)
    assert page.status_code == 422
    assert "no space left on device" in page.content.decode()


def test_an_empty_form_has_a_workload_ticked_and_asks_for_no_name(
    submitter: Client, alice: User, taken: list[ExperimentSpec]
) -> None:
    patch = "From: A <a@example.org>\nSubject: [PATCH v2 1/1] fs: x\n\n---\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    page = submitter.get("/experiments/new").content.decode()
    form = BrowserForm(page, "new").as_post() | {"patch-0-text": [patch.replace("\n", "\r\n")]}
    assert " required" not in page
    assert submitter.post("/experiments/new", form).status_code == 302
    assert (taken[0].name, taken[0].patches[0].name) == ("fs: x", "fs-x")
    usual = taken[0].model_dump(mode="json") | {"cases": [{"workload": "stat-walk", "preset": "smoke"}]}
    make_experiment(submitter=alice, spec=usual)
    form = BrowserForm(submitter.get("/experiments/new").content.decode(), "new").as_post()
    assert (form["case"], form["preset-stat-walk"]) == (["stat-walk"], ["smoke"])


def test_all_refusals_of_the_lab_are_each_beside_their_field(
    submitter: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [SubmissionRejected('switch "mine": no', "", "patches[0].text"), SubmissionRejected("odd")]
    refuse_with(monkeypatch, SubmissionRejected("target: no such target", "", "target", others))
    answer = submitter.post("/experiments/new", {**FILLED, "patch-0-name": "mine", "patch-0-text": "diff"})
    assert error_beside(answer, "target") == "no such target"
    assert error_beside(answer, "patch-0-text") == "switch &quot;mine&quot;: no"
    assert "<li>odd</li>" in answer.content.decode()
