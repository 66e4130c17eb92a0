# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Chromium on the pages of a live server. Whatever runs that should not, or is refused, fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route, sync_playwright

from lab.comparisons.compare import compare_experiment
from lab.models import Case, Comparison, Experiment, Profile, Revision, Sample, Tree, User, Variant
from lab.models.states import Role, RunState, VariantState
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import make_build, make_case, make_experiment, make_run, make_variant
from lab.trends.page import trend_list

HOSTILE = '<img src=x onerror="document.title=`run`">'
WIDTHS = (1280, 390)
# What `make test` opens in a browser; `make test-all` opens the rest, too.
JOURNEYS = {
    "test_answers.py",
    "test_journey.py",
    "test_an_old_step_is_triaged_and_bisected_within_three_clicks_of_the_front_page",
}
STACKS = {
    "base": {("sys", "walk", "down_read"): 60, ("sys", "walk", HOSTILE): 25, ("sys", "old"): 10, ("irq",): 5},
    "p": {("sys", "walk", "down_read"): 20, ("sys", "walk", HOSTILE): 40, ("sys", "new"): 30, ("irq",): 10},
}
Open = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("browser")
            if not JOURNEYS & {item.path.name, item.name}:
                item.add_marker("campaign")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "there is no chromium: run ./bootstrap dev"
    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patched:
        # Playwright keeps an event loop in this thread, in which Django would refuse its database.
        patched.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        # Root has no sandbox to give; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser, live_server: object) -> Iterator[Open]:
    """Open a page of the live server; at its end nothing may have run, been refused or failed."""
    troubles: list[str] = []
    contexts = []

    def opened(
        address: str,
        *,
        width: int = 1280,
        dark: bool = False,
        height: int = 900,
        by: User | None = None,
        refused: int = 0,
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        if by:
            context.add_cookies([{"name": "sessionid", "value": session_of(by), "url": str(live_server)}])
        page = context.new_page()
        page.route("**/*", _only_ours)
        page.on("pageerror", lambda error: troubles.append(f"script failed: {error}"))
        page.on("console", lambda line: troubles.extend(_complaints(line, refused)))
        page.goto(f"{live_server}{address}")
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.title() != "run", "a name was run as a script"
        context.close()
    assert not troubles


class Clicks:
    """Clicks on one page, counted: how long a way is."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def link(self, name: str) -> None:
        """Click a link by its name."""
        self._click(self.page.get_by_role("link", name=name).first)

    def button(self, name: str) -> None:
        """Click a button by its name."""
        self._click(self.page.get_by_role("button", name=name).first)

    def _click(self, on: Locator) -> None:
        on.click()
        self.count += 1


def _complaints(line: ConsoleMessage, refused: int) -> Iterator[str]:
    """Yield a console line's complaints; the browser also logs the status that the test expects."""
    if line.type == "error" and f"the server responded with a status of {refused} " not in line.text:
        yield f"{line.text} {line.location}"


def session_of(user: User) -> str:
    """The cookie that signing in leaves, without the slow hash of a password."""
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def _only_ours(route: Route) -> None:
    if route.request.url.startswith("http://localhost"):
        route.continue_()
    else:
        route.abort()
        raise AssertionError(f"a page asked for {route.request.url}")


@pytest.fixture
def profiled(transactional_db: None) -> Experiment:
    """Two variants with profiles, samples of five boots each, and a verdict; one symbol is hostile."""
    experiment = make_experiment(name="kernfs", state="done", profile=True)
    case = make_case(experiment)
    for variant in (make_variant(experiment), make_variant(experiment, "p")):
        _boots(variant, case)
    Comparison.objects.create(
        experiment=experiment,
        case=case,
        variant=experiment.variants.get(name="p"),
        metric="ns_per_open",
        unit="ns",
        better="lower",
        primary=True,
        boots=5,
        base_median=39_000,
        median=24_000,
        ratio=0.62,
        low=0.6,
        high=0.65,
        q_value=0.001,
        verdict="improvement",
        margin=0.02,
        method="blocks",
        notes=["a note"],
    )
    return experiment


@pytest.fixture
def trend(transactional_db: None) -> str:
    """A trend of six revisions with a step at the fifth, told by hostile people; its key."""
    for number, level in enumerate((100.0, 101.0, 100.0, 101.0, 120.0, 121.0)):
        commit = f"{number:010x}{number:030x}"
        experiment = make_experiment(base_commit=commit, state="done")
        Revision.objects.create(
            tree=Tree.objects.get(name="tiny"),
            commit=commit,
            position=number,
            subject=f"change {number} {HOSTILE}",
            author=HOSTILE,
        )
        base = make_variant(
            experiment, build=make_build(f"{number}"), role=Role.BASE, state=VariantState.READY
        )
        case = make_case(experiment)
        for block in range(5):
            run = make_run(base, case, block=block, state=RunState.DONE)
            Sample.objects.create(run=run, metric="ns_per_open", iteration=1, value=level + block / 2)
        compare_experiment(experiment.pk)
    (page,) = trend_list()
    return page.line.key


def _boots(variant: Variant, case: Case) -> None:
    over = {"state": "done", "outcome": "finished"}
    level = 39_000 if variant.name == "base" else 24_000
    histogram = {"unit": "µs", "counts": {str(value): 2000 // value for value in range(3, 200)}}
    for block in range(5):
        run = make_run(variant, case, block=block, extras={"histogram": histogram}, **over)
        for iteration in range(4):
            Sample.objects.create(
                run=run,
                metric="ns_per_open",
                iteration=iteration,
                warmup=iteration == 0,
                value=level + 100 * block + 37 * iteration,
            )
    for block in range(3):
        run = make_run(variant, case, block=block, purpose="profiled", **over)
        stacks = {stack: n * (4 + block) for stack, n in STACKS[variant.name].items()}
        save_profile(run.pk, stacks)


def save_profile(run_id: int, stacks: dict[tuple[str, ...], int]) -> None:
    tree = build_tree(stacks.items())
    Profile.objects.create(run_id=run_id, samples=tree.samples, lost=0, tree=pack(tree))
