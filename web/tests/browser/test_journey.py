# SPDX-License-Identifier: GPL-2.0-or-later
"""The way of one patch through the whole lab, as a stranger goes it: front page, form, verdict, reply; token, API, labctl."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from django.core.cache import cache
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from lab.models import Experiment, Profile, Tree, User
from lab.people.tokens import issue_token
from lab.profiles.analysis.source_lines import pack_lines
from lab.tests.factories import make_case, make_experiment, make_run, make_variant
from web.tests.browser.conftest import Clicks, Open, save_profile
from web.tests.browser.test_service import (
    INODE,
    PATIENCE_MS,
    fake_home,
    fake_lab,
    fill,
    lab,
    patient,
    pretend_kernel,
    preview,
)
from workers import local
from workers.tests.conftest import FakeLab, opens
from workers.tests.restlab import a_worker

__all__ = ["fake_home", "fake_lab", "lab", "patient", "pretend_kernel"]
ROOT = Path(__file__).parents[3]
PASSWORD = "correct horse"
# An experiment of nine boots under a busy machine.
WHOLE_MS = 3 * PATIENCE_MS


@pytest.fixture(autouse=True)
def nobody_asked_before() -> Iterator[None]:
    """Counts of requests and of wrong passwords are kept in the cache, which no test's end empties."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def slower(lab: FakeLab) -> str:
    """A patch whose kernel takes a quarter more time than the base; its switch is called "mine"."""
    lab.scripts["mine"] = lambda request: opens(1250.0 + len(lab.driver.requests) % 3)
    return lab.diff(INODE, "\tWARN_HERE();\n", "")


def described(lab: FakeLab, patch: str, **more: Any) -> dict[str, Any]:
    """The same experiment as the API takes it."""
    return {
        "name": "by program",
        "tree": "pretend",
        "base": lab.kernel.base.commit,
        "patches": [{"name": "mine", "text": patch}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 5, "iterations": 2, "warmup": 1},
        **more,
    }


def paste(tab: Tab, lab: FakeLab, patch: str, **typed: str) -> None:
    fill(tab, lab, **typed)
    tab.get_by_label("Name of the switch").first.fill("mine")
    tab.get_by_label("The patch").first.fill(patch)


def labctl(server: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as somebody runs it on a machine of their own: the server's address and a token, and no lab."""
    environment = {**os.environ, "LABCTL_SERVER": server, "LABCTL_TOKEN": token, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "workers.labctl", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def client(server: Any, token: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"{server}/api/v1/", headers={"Authorization": f"Token {token}"}, timeout=PATIENCE_MS / 1000
    )


def test_a_stranger_gets_from_the_front_page_to_a_reply_for_the_list(
    visit: Open, lab: FakeLab, slower: str, alice: User
) -> None:
    alice.set_password(PASSWORD)
    alice.save()
    tab = visit("/")
    tab.get_by_role("link", name="New experiment").first.click()
    tab.get_by_label("Username", exact=True).fill("alice")
    tab.get_by_label("Password", exact=True).fill(PASSWORD)
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_role("heading", name="New experiment")).to_be_visible()
    paste(tab, lab, slower, name="slower on purpose", boots="5")
    assert preview(tab)["Boots"] == "15"
    tab.get_by_role("button", name="Submit this").click()
    expect(tab.get_by_role("heading", name="slower on purpose")).to_be_visible()
    # Done here, not by a thread that the browser would have to wait for: a busy machine takes minutes.
    local.work_through(Experiment.objects.get().pk)
    tab.get_by_role("link", name="See the verdicts").click(timeout=WHOLE_MS)
    expect(tab.locator("main a.chip.regression, main .chip.regression").first).to_be_visible()

    tab.get_by_role("row", name="mine").get_by_role("link", name="why").first.click()
    expect(tab.get_by_role("heading", name="mine on ")).to_contain_text("regression")
    expect(tab.get_by_text("WARN_HERE")).to_be_visible()
    tab.get_by_role("link", name="All verdicts of showgids").click()
    tab.get_by_role("link", name="Reply to the list").click()
    reply = tab.get_by_label("Plain text, 72 columns").input_value()
    assert "slower on purpose" in reply
    assert re.search(r"Regression: mine makes showgids worse, ns_per_open \+2\d", " ".join(reply.split()))
    assert max(map(len, reply.splitlines())) <= 72

    tab.get_by_role("link", name="kperflab").first.click()
    expect(tab.get_by_role("region", name="Regressions")).to_contain_text("mine: ns_per_open")
    expect(tab.get_by_role("region", name="Newest experiments")).to_contain_text("slower on purpose")


def test_a_token_made_on_the_account_page_drives_the_lab_from_elsewhere(
    visit: Open, live_server: Any, lab: FakeLab, slower: str, alice: User, settings: Any
) -> None:
    settings.PUBLIC_URL = str(live_server)
    tab = visit("/account/", by=alice)
    tab.get_by_label("Name", exact=True).fill("laptop")
    tab.get_by_role("button", name="Issue the token").click()
    token = tab.locator("code.secret").inner_text()

    with client(live_server, token) as api:
        answers = [
            api.post("experiments/", json=described(lab, slower), headers={"Idempotency-Key": "once"})
            for _ in range(2)
        ]
        assert {answer.json()["id"] for answer in answers} == {Experiment.objects.get().pk}
        assert answers[0].status_code == 201
        number = str(answers[0].json()["id"])
        with a_worker():
            watched = labctl(str(live_server), token, "watch", number)
        assert watched.returncode == 1, watched.stderr
        assert "regression" in watched.stdout
        assert api.get(f"experiments/{number}/").json()["exit_code"] == 1
        said = labctl(str(live_server), token, "reply", number).stdout
        tab.goto(f"{live_server}/experiments/{number}/reply/")
        assert tab.get_by_label("Plain text, 72 columns").input_value().strip() == said.strip()

        tab.goto(f"{live_server}/account/")
        tab.get_by_role("button", name="Revoke laptop").click()
        expect(tab.get_by_role("button", name="Revoke laptop")).to_have_count(0)
        refused = api.get("me/")
    assert refused.status_code == 401
    assert refused.headers["Content-Type"].startswith("application/problem+json")
    assert labctl(str(live_server), token, "list").returncode == 64


def test_what_labctl_submits_is_watched_in_the_browser_and_its_cancelling_is_seen_there(
    visit: Open, live_server: Any, lab: FakeLab, slower: str, alice: User, tmp_path: Path
) -> None:
    _, token = issue_token(user=alice, name="t", scopes=["read", "submit"])
    (tmp_path / "mine.patch").write_text(slower)
    (tmp_path / "mine.toml").write_text(
        f'name = "by hand"\ntree = "pretend"\nbase = "{lab.kernel.base.commit}"\n'
        '[[patches]]\nname = "mine"\nfile = "mine.patch"\n'
        '[[cases]]\nworkload = "showgids"\npreset = "smoke"\n[measure]\nboots = 5\n'
    )
    submitted = labctl(str(live_server), token, "submit", str(tmp_path / "mine.toml"))
    assert submitted.returncode == 0, submitted.stderr
    number = submitted.stdout.strip()
    tab = visit(f"/experiments/{number}/", by=alice)
    expect(tab.get_by_role("heading", name="by hand")).to_be_visible()
    tab.evaluate("window.kept = true")
    assert labctl(str(live_server), token, "cancel", number).returncode == 0
    expect(tab.locator("#live .chip.cancelled").first).to_be_visible(timeout=WHOLE_MS)
    expect(tab.get_by_role("button", name="Run it again")).to_be_visible()
    assert tab.evaluate("window.kept")
    again = labctl(str(live_server), token, "rerun", number)
    assert Experiment.objects.get(origin_id=int(number)).pk == int(again.stdout)


def test_a_clone_with_changes_is_an_experiment_of_its_own(
    visit: Open, lab: FakeLab, slower: str, alice: User
) -> None:
    tab = visit("/experiments/new", by=alice)
    paste(tab, lab, slower, name="first")
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_role("heading", name="first")).to_be_visible()
    tab.get_by_role("link", name="Clone with changes").click()
    expect(tab.get_by_label("Name of the switch").first).to_have_value("mine")
    tab.get_by_label("Name", exact=True).fill("second")
    tab.get_by_label("Boots", exact=True).fill("4")
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_role("heading", name="second")).to_be_visible()
    first, second = Experiment.objects.order_by("pk")
    assert (first.name, first.boots, second.name, second.boots) == ("first", 3, "second", 4)
    assert second.origin == first
    assert second.switches.get().text == first.switches.get().text
    expect(tab.get_by_role("link", name=f"#{first.pk}")).to_be_visible()


def test_a_viewer_is_refused_at_every_door(
    visit: Open, live_server: Any, lab: FakeLab, slower: str, bob: User, tmp_path: Path
) -> None:
    tab = visit("/", by=bob, refused=403)
    expect(tab.get_by_role("link", name="New experiment")).to_have_count(0)
    tab.goto(f"{live_server}/experiments/new")
    expect(tab.get_by_role("heading", name="Permission denied")).to_be_visible()
    expect(tab.get_by_text("Ask an operator for another role")).to_be_visible()
    _, token = issue_token(user=bob, name="t", scopes=["read"])
    with client(live_server, token) as api:
        answer = api.post("experiments/", json=described(lab, slower))
        assert (answer.status_code, answer.json()["status"]) == (403, 403)
        assert api.get("experiments/").status_code == 200
    path = tmp_path / "mine.toml"
    path.write_text('name = "x"\ntree = "pretend"\n[[cases]]\nworkload = "showgids"\npreset = "smoke"\n')
    refused = labctl(str(live_server), token, "submit", str(path))
    assert refused.returncode == 64
    assert "Traceback" not in refused.stderr
    assert Experiment.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"tree": "pretemd"}, "/tree"),
        ({"base": "v9.9"}, "/base"),
        ({"cases": [{"workload": "showgid", "preset": "smoke"}]}, "/cases/0/workload"),
        ({"patches": [{"name": "mine", "text": "no diff"}]}, "/patches/0/text"),
        ({"measure": {"boots": 0}}, "/measure/boots"),
        ({"desing": "full"}, ""),
    ],
)
def test_the_api_points_at_what_is_wrong(
    live_server: Any, lab: FakeLab, slower: str, alice: User, change: dict[str, Any], pointer: str
) -> None:
    _, token = issue_token(user=alice, name="t", scopes=["read", "submit"])
    with client(live_server, token) as api:
        answer = api.post("experiments/", json=described(lab, slower, **change))
    problem = answer.json()
    assert answer.status_code in (400, 422), problem
    assert pointer in [error["pointer"] for error in problem.get("errors", [])], json.dumps(problem)
    assert all(error["detail"] for error in problem["errors"])
    assert Experiment.objects.count() == 0


def test_the_list_of_faults_leads_to_the_field_by_keys(
    visit: Open, lab: FakeLab, slower: str, alice: User
) -> None:
    tab = visit("/experiments/new", by=alice, refused=422)
    paste(tab, lab, slower)
    tab.get_by_label("Boots", exact=True).fill("many")
    tab.get_by_role("button", name="Submit", exact=True).press("Enter")
    link = tab.get_by_role("alert").get_by_role("link", name="Boots")
    link.press("Enter")
    tab.keyboard.press("Tab")
    focused = "document.activeElement.id"
    assert tab.evaluate(focused) in ("boots", "iterations")
    assert Experiment.objects.count() == 0


def test_the_first_key_leads_past_the_navigation(visit: Open, alice: User) -> None:
    tab = visit("/experiments/", by=alice)
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("main")).to_be_focused()


@pytest.mark.parametrize(
    ("forge", "ns", "code"),
    [("GitLab CI", 1250.0, 1), ("GitHub Actions", 800.0, 0)],
    ids=["gitlab", "github"],
)
def test_a_ci_author_gets_from_the_front_page_to_a_pipeline_that_runs_in_two_clicks(
    visit: Open, live_server: Any, lab: FakeLab, alice: User, tmp_path: Path, forge: str, ns: float, code: int
) -> None:
    """A copied pipeline is run as a forge would run it, with nothing else in the tree and the token as its one secret."""
    base = lab.kernel.base.commit
    measured_before = make_experiment(state="done", tree=Tree.objects.get(name="pretend"), base_name=base)
    make_case(measured_before)
    tab = visit("/account/", by=alice)
    tab.get_by_label("Name", exact=True).fill("ci")
    tab.get_by_role("button", name="Issue the token").click()
    token = tab.locator("code.secret").inner_text()

    tab.goto(f"{live_server}/")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    clicked = Clicks(tab)
    clicked.link("Help")
    clicked.button(f"Copy {forge}")
    expect(tab.get_by_role("button", name=f"Copy {forge}")).to_have_text("Copied")
    assert clicked.count == 2
    pipeline = yaml.safe_load(tab.evaluate("navigator.clipboard.readText()"))

    commit = lab.kernel.edited(INODE, "\tWARN_HERE();\n", "").commit
    subprocess.run(["git", "clone", "--quiet", str(lab.kernel.work), str(tmp_path / "tree")], check=True)
    subprocess.run(["git", "fetch", "--quiet", "origin", commit], cwd=tmp_path / "tree", check=True)
    lab.scripts["series"] = lambda request: opens(ns + len(lab.driver.requests) % 3)
    command, environment = forge_runs(pipeline, token, base, commit)
    assert environment["KPERFLAB_SERVER"] == str(live_server)
    with a_worker():
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=tmp_path / "tree",
            env={"PATH": os.environ["PATH"], "KPERFLAB_POLL": "0.1", "no_proxy": "*", **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == code, done.stderr
    experiment = Experiment.objects.exclude(pk=measured_before.pk).get()
    assert (experiment.state, experiment.submitter, experiment.tree.name) == ("done", alice, "pretend")
    assert "ns_per_open" in (tmp_path / "tree" / "kperflab.md").read_text()


def forge_runs(pipeline: dict[str, Any], token: str, base: str, commit: str) -> tuple[str, dict[str, str]]:
    """Return the commands of a pipeline and the environment that its forge gives them for a merge request."""
    if "kperflab" in pipeline:
        job = pipeline["kperflab"]
        variables = {key: str(value) for key, value in job["variables"].items()}
        forge = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_COMMIT_SHA": commit, "KPERFLAB_TOKEN": token}
        return "\n".join(job["script"]), {**forge, **variables}
    (step,) = [step for step in pipeline["jobs"]["compare"]["steps"] if "run" in step]
    known = {
        "secrets.KPERFLAB_TOKEN": token,
        "github.event.pull_request.base.sha": base,
        "github.event.pull_request.head.sha": commit,
    }
    environment = {
        name: re.sub(r"\$\{\{ (.+?) \}\}", lambda match: known[str(match[1])], str(value))
        for name, value in step["env"].items()
    }
    return step["run"], {**environment, "GITHUB_STEP_SUMMARY": "summary"}


@pytest.fixture
def slower_function(transactional_db: None) -> Experiment:
    """A finished experiment whose patch has find_inode take three times its share, in three profiled boots a kernel."""
    experiment = make_experiment(name="inode hash", state="done", profile=True)
    case = make_case(experiment)
    for name, own in (("base", 10), ("p", 30)):
        variant = make_variant(experiment, *([name] if name != "base" else []))
        for block in range(3):
            run = make_run(variant, case, block=block, purpose="profiled", state="done", outcome="finished")
            stacks: dict[tuple[str, ...], int] = {
                ("open", "walk", name): (100 - own) * 18 for name in ("hash", "lock", "copy", "dget", "dput")
            }
            save_profile(run.pk, stacks | {("open", "walk", "find_inode"): own * (90 + block)})
    Profile.objects.update(lines=pack_lines({"find_inode": "fs/inode.c:982"}))
    return experiment


def test_two_clicks_lead_from_a_finished_experiment_to_the_function_that_got_slower(
    visit: Open, slower_function: Experiment
) -> None:
    tab = visit(f"/experiments/{slower_function.pk}/")
    clicked = Clicks(tab)
    clicked.link("See the profiles")
    moved = tab.get_by_role("region", name="Symbols").locator("tbody tr").first
    expect(moved).to_contain_text("find_inode")
    expect(moved).to_contain_text("▲ 3")
    clicked.link("▸ find_inode")
    expect(tab.get_by_role("heading", name="find_inode, p against base")).to_be_visible()
    expect(tab.locator("main")).to_contain_text("find_inode (fs/inode.c:982) is in the middle")
    expect(tab.locator("#flame-detail")).to_contain_text(
        re.compile(r"find_inode: base 10\..*, p 30\..*, ×.2\.99, certain \(q")
    )
    expect(tab.locator("#around")).to_be_in_viewport()
    expect(tab.get_by_role("row", name=re.compile("called by walk"))).to_be_visible()
    assert clicked.count == 2


def test_keys_lead_everywhere_and_can_be_turned_off(visit: Open, live_server: Any, alice: User) -> None:
    tab = visit("/", by=alice)
    for key, address in (("e", "/experiments/"), ("t", "/trends/"), ("h", "/help/"), ("m", "/mine/")):
        tab.keyboard.press("g")
        tab.keyboard.press(key)
        tab.wait_for_url(f"{live_server}{address}")
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keys")).to_be_visible()
    tab.get_by_label("These keys work in this browser").uncheck()
    tab.get_by_role("button", name="Close").click()
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keys")).to_be_hidden()
