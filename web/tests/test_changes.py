# SPDX-License-Identifier: GPL-2.0-or-later
"""Cancelling, running again, cloning; and logs that grow."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from kernels.mails.tests.test_uploads import archive, mail
from lab.experiments.spec import MOST_PATCHES, ExperimentSpec, spec_from_mapping
from lab.models import Build, Experiment, Run, User
from lab.models.states import ExperimentState
from lab.submission.duplicates import Submitted
from lab.submission.preview import Preview
from lab.tests.factories import make_build, make_experiment, make_grid, make_patch_switch
from web.cloned import typed_from
from web.forms import describe
from web.tests.browserform import BrowserForm
from web.tests.conftest import SCRIPT, Page
from web.tests.test_submission import FILLED, error_beside

MAPPING: dict[str, Any] = {
    "name": "kernfs",
    "tree": "debian-6.1",
    "base": "v6.1.192",
    "design": "cumulative",
    "patches": [
        {"catalog": "vfs-iget-rcu"},
        {"name": "p", "text": f"diff {SCRIPT}\n", "excludes": ["vfs-iget-rcu"], "alternative": 2},
    ],
    "configs": [{"name": "c", "lines": ["CONFIG_A=y", "CONFIG_B=y"]}],
    "cases": [
        {"workload": "showgids", "preset": "smoke", "params": {"threads": 2}},
        {"workload": "stat-walk"},
    ],
    "measure": {"boots": "auto", "iterations": 7, "profile": True, "seed": 9},
}

LONG = "".join(mail(number, 17).decode() for number in range(1, 18))


def stored(mapping: dict[str, Any], **fields: Any) -> Experiment:
    spec = spec_from_mapping(mapping)
    return make_experiment(name=spec.name, spec=spec.model_dump(mode="json"), **fields)


def test_the_form_of_a_clone_stands_for_the_same_description() -> None:
    spec = spec_from_mapping(MAPPING)
    typed, left_out = typed_from(spec.model_dump(mode="json", exclude_none=True), {}, origin=7)
    assert left_out == ()
    assert spec_from_mapping(describe(typed).mapping) == spec
    assert typed.origin == "7"


def test_a_clone_says_what_the_form_cannot() -> None:
    twice = {
        **MAPPING,
        "cases": [{"workload": "showgids", "profile": True}, {"workload": "showgids", "preset": "large"}],
    }
    _, left_out = typed_from(twice, {}, origin=7)
    assert left_out == (
        "The form cannot say showgids a second time (large): the form has each workload once. "
        "The description at the end of this page does.",
    )


def test_a_patch_given_as_a_range_is_cloned_with_the_text_that_was_taken() -> None:
    ranged = {**MAPPING, "patches": [{"name": "r", "range": "v1..v2"}]}
    typed, sentences = typed_from(ranged, {"r": "the diff"}, origin=7)
    assert (typed.patches[0].text, typed.patches[0].range) == ("the diff", "")
    assert sentences == ("r is the range v1..v2; its commits are filled in as they were then.",)


def test_the_form_is_filled_from_an_experiment(page: Page, submitter: Client) -> None:
    row = stored(MAPPING, state=ExperimentState.DONE)
    make_patch_switch(row, "p")
    text = page(f"/experiments/new?from={row.pk}", submitter)
    assert SCRIPT not in text
    assert "diff &lt;script&gt;" in text
    assert re.search(r'value="cumulative" selected', text)
    assert f'name="origin" value="{row.pk}"' in text
    assert "iterations = 7" in text  # the description at the end
    assert submitter.get("/experiments/new?from=999999").status_code == 404
    assert submitter.get("/experiments/new?from=x").status_code == 200


def test_a_clone_remembers_where_it_came_from(submitter: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    row, origins = make_experiment(), []

    def submit(**fields: Any) -> Any:
        origins.append(fields["origin"])
        return SimpleNamespace(pk=41)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    for origin in (str(row.pk), "999999", "x", ""):
        submitter.post("/experiments/new", {**FILLED, "origin": origin})
    assert origins == [row, None, None, None]


@pytest.mark.parametrize("damage", ["", "[["])
def test_a_clones_description_is_still_of_a_clone_after_a_preview_or_an_error(
    damage: str, submitter: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make_experiment()
    preview = Preview((), 2, 60, 9, 754.0, ())
    monkeypatch.setattr("web.views.submission.preview_here", lambda **_: preview)
    toml = f'tree = "debian-6.1"\n[[cases]]\nworkload = "showgids"\npreset = "smoke"\n{damage}'
    posted = {"toml": toml, "origin": str(row.pk), "preview": "1"}
    text = submitter.post("/experiments/new", posted).content.decode()
    assert text.count(f'name="origin" value="{row.pk}"') == 2


def test_the_submitter_cancels_after_being_asked(submitter: Client, alice: User) -> None:
    row = make_grid()
    Experiment.objects.update(submitter=alice)
    asked = submitter.get(f"/experiments/{row.pk}/cancel").content.decode()
    assert "Unfinished: 4 boots and 2 builds." in asked
    assert Experiment.objects.get().state == "queued"
    done = submitter.post(f"/experiments/{row.pk}/cancel", follow=True).content.decode()
    assert "The experiment is cancelled" in done
    assert Experiment.objects.get().state == "cancelled"
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled"}


def test_who_may_not_cancel_is_not_offered_it_and_refused(
    page: Page, submitter: Client, viewer: Client, operator: Client, client: Client
) -> None:
    address = f"/experiments/{make_grid().pk}/"
    for who in (submitter, viewer, client):
        assert "Cancel …" not in page(address, who)
    assert submitter.post(f"{address}cancel").status_code == 403
    assert submitter.get(f"{address}cancel").status_code == 403
    assert viewer.post(f"{address}cancel").status_code == 403
    assert client.post(f"{address}cancel").status_code == 302
    assert Experiment.objects.get().state == "queued"
    assert "Cancel …" in page(address, operator)
    assert operator.post(f"{address}cancel").status_code == 302
    assert Experiment.objects.get().state == "cancelled"


def test_what_is_over_is_politely_not_cancelled(submitter: Client, alice: User) -> None:
    row = make_experiment(state=ExperimentState.DONE, submitter=alice)
    for answer in (submitter.get, submitter.post):
        text = answer(f"/experiments/{row.pk}/cancel", follow=True).content.decode()
        assert f"Experiment {row.pk} is done already: there is nothing to cancel." in text


def test_an_experiment_is_run_again_as_a_new_one(
    submitter: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = stored(MAPPING, state=ExperimentState.DONE)

    def submit(*, spec: ExperimentSpec, by: User, origin: Experiment, **_: object) -> Experiment:
        return make_experiment(name=spec.name, submitter=by, origin=origin)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    answer = submitter.post(f"/experiments/{row.pk}/rerun", follow=True)
    again = Experiment.objects.get(origin=row)
    assert answer.redirect_chain == [(f"/experiments/{again.pk}/", 302)]
    assert f"Queued as #{again.pk}" in answer.content.decode()
    assert f'from <a href="/experiments/{row.pk}/">#{row.pk}</a>' in answer.content.decode()
    assert again.submitter == alice


def test_what_is_not_over_is_not_run_again(page: Page, submitter: Client) -> None:
    row = stored(MAPPING)
    assert "Run it again" not in page(f"/experiments/{row.pk}/", submitter)
    text = submitter.post(f"/experiments/{row.pk}/rerun", follow=True).content.decode()
    assert "It was not submitted again" in text
    assert Experiment.objects.count() == 1


def test_a_viewer_is_offered_nothing_and_runs_nothing_again(page: Page, viewer: Client) -> None:
    row = stored(MAPPING, state=ExperimentState.DONE)
    text = page(f"/experiments/{row.pk}/", viewer)
    assert "Run it again" not in text
    assert "Clone" not in text
    assert viewer.post(f"/experiments/{row.pk}/rerun").status_code == 403
    assert submitted_nothing()


def submitted_nothing() -> bool:
    return Experiment.objects.count() == 1


def test_a_description_of_another_time_is_told(submitter: Client) -> None:
    row = make_experiment(state=ExperimentState.DONE, spec={"name": "old", "cases": []})
    text = submitter.post(f"/experiments/{row.pk}/rerun", follow=True).content.decode()
    assert "It was not submitted again" in text


def test_a_log_under_way_is_followed_and_one_that_is_over_is_not(
    page: Page, client: Client, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("CC fs/a.o\n")
    build = make_build("b", log=str(log), state="building")
    text = page(f"/builds/{build.pk}/log")
    assert f'data-follow="/builds/{build.pk}/log/part" data-offset="10"' in text
    log.write_text(f"CC fs/a.o\n{SCRIPT}\n")
    part = client.get(f"/builds/{build.pk}/log/part?offset=10")
    assert part.content.decode() == f"{SCRIPT}\n"
    assert part.headers["Content-Type"].startswith("text/plain")
    assert part.headers["X-Content-Type-Options"] == "nosniff"
    assert (part.headers["Log-Complete"], part.headers["Log-Offset"]) == ("false", str(log.stat().st_size))
    Build.objects.update(state="built")
    assert client.get(f"/builds/{build.pk}/log/part?offset=10").headers["Log-Complete"] == "true"
    assert "data-follow" not in page(f"/builds/{build.pk}/log")
    assert "hx-get" not in page(f"/builds/{build.pk}/live")


def test_a_place_that_is_none_is_refused(client: Client, db: None) -> None:
    build = make_build("b")
    for offset in ("-1", "x", "9" * 30, "²"):
        assert client.get(f"/builds/{build.pk}/log/part", {"offset": offset}).status_code == 400
    assert client.get("/builds/999999/log/part").status_code == 404


def test_a_console_under_way_is_followed(page: Page, client: Client, tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.write_text("Linux version\n")
    make_grid()
    run = Run.objects.all()[0]
    Run.objects.filter(pk=run.pk).update(state="running", console=str(console))
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/console"):
        assert f'data-follow="/runs/{run.pk}/console/part"' in page(address)
    assert client.get(f"/runs/{run.pk}/console/part").content == b"Linux version\n"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ExperimentSpec]:
    specs: list[ExperimentSpec] = []

    def once(*, spec: ExperimentSpec, **_: object) -> Submitted:
        specs.append(spec)
        return Submitted(make_experiment(name=spec.name), False)

    monkeypatch.setattr("web.views.submission.submit_here", once)
    return specs


def test_an_uploaded_archive_is_one_switch_or_one_for_each_patch(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    packed = archive({"0001-a.patch": mail(1), "0002-b.patch": mail(2)}, "w:gz")
    for each in ("series", "patch"):
        file = SimpleUploadedFile("work.tar.gz", packed)
        assert submitter.post("/experiments/new", {**FILLED, "files": file, "each": each}).status_code == 302
    whole, parts = taken
    assert ([patch.name for patch in whole.patches], whole.design) == (["work"], "full")
    assert [patch.name for patch in parts.patches] == ["1-fs-part-1", "2-fs-part-2"]
    assert parts.design == "cumulative"


def test_another_design_than_the_default_is_kept_when_a_series_is_taken_apart(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    pasted = {"patch-0-name": "work", "patch-0-text": (mail(1) + mail(2)).decode(), "each": "patch"}
    submitter.post("/experiments/new", {**FILLED, **pasted, "design": "leave-one-out"})
    assert taken[0].design == "leave-one-out"
    assert len(taken[0].patches) == 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "beside", "said"),
    [
        ({"branch": "work"}, "branch_git", "is an archive without branches"),
        ({"branch_git": "https://example.org/x"}, "branch", "name the branch"),
        ({"branch_git": "/etc", "branch": "work"}, "branch_git", "only operators may name a folder"),
        ({"branch_git": "http://127.0.0.1/x", "branch": "work"}, "branch_git", "closed network"),
        ({"branch_git": "ftp://x/y", "branch": "work"}, "branch_git", "begins with"),
        ({"lore": "kernfs"}, "lore", "not a message-id"),
        ({"git": "/etc", "tree": ""}, "git", "only operators may name a folder"),
        (
            {"patch-0-name": "x", "patch-0-text": LONG, "each": "patch"},
            "each",
            "at most 16 can be separate switches",
        ),
    ],
)
def test_a_source_that_cannot_be_used_is_told_beside_its_field(
    submitter: Client, taken: list[ExperimentSpec], given: dict[str, str], beside: str, said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if beside == "git":
        monkeypatch.undo()
    answer = submitter.post("/experiments/new", {**FILLED, **given})
    assert said in error_beside(answer, beside)
    for name, value in given.items():
        assert value.partition("\n")[0] in answer.content.decode(), f"{name} was not kept"
    assert taken == []
    assert Experiment.objects.count() == 0


@pytest.mark.process
def test_too_many_uploaded_patches_are_refused_again_where_the_form_is_sent_unchanged(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    diff = "--- a/x{0}\n+++ b/x{0}\n@@ -1 +1 @@\n-a\n+b\n"
    files = [SimpleUploadedFile(f"p{n}.diff", diff.format(n).encode()) for n in range(MOST_PATCHES + 1)]
    answer = submitter.post("/experiments/new", {**FILLED, "files": files})
    for _ in range(2):
        assert answer.status_code == 422
        text = answer.content.decode()
        assert "at most 16" in text
        answer = submitter.post("/experiments/new", BrowserForm(text, "new").as_post())
    assert taken == []


@pytest.mark.process
def test_what_was_received_is_kept_when_something_else_is_wrong(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    file = SimpleUploadedFile("0001-a.patch", mail(1, 1))
    answer = submitter.post("/experiments/new", {**FILLED, "files": file, "boots": "many", "lore": "x"})
    text = answer.content.decode()
    assert "fs: part 1" in text
    assert "as switch “a”" in text
    assert "whole number" in error_beside(answer, "boots")
    assert "not a message-id" in error_beside(answer, "lore")
