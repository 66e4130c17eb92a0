# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails as strangers hand them to labctl, and what of them reaches the terminal."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from bench.fuzz.mutations import mutated_mails
from bench.fuzz.targets import check_refusal, corpus
from lab.errors import SpecError
from lab.experiments.spec import spec_from_mapping
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.submit_options import SubmitOptions, description
from workers.ctl.tables import show_preview

pytestmark = pytest.mark.hostile
SEEDS = [data for _, data in corpus("mail")]
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
GAP = f"From: A <a@example.org>\nSubject: [PATCH 2/3] x: y\n\n---\n{DIFF}"
NAMES = {"trees": [{"name": "t"}], "workloads": [{"name": "showgids"}]}
CLIENT = cast("Client", SimpleNamespace(local=False, names=lambda kind: NAMES[kind]))


def described(tmp_path: Path, data: bytes, *, partial: bool = False) -> Json:
    path = tmp_path / "a.mbox"
    path.write_bytes(data)
    return description(path, SubmitOptions(tree="t", workload=["showgids"], partial=partial), CLIENT)


@pytest.mark.parametrize("seed", range(12))
def test_any_mail_becomes_a_description_or_one_clear_line(tmp_path: Path, seed: int) -> None:
    for mail in (SEEDS[seed], *mutated_mails(SEEDS, 12, seed)):
        try:
            spec = spec_from_mapping(described(tmp_path, mail))
        except SpecError as exc:
            check_refusal(exc)
        else:
            assert (spec.tree, len(spec.cases)) == ("t", 1)


def test_a_gap_names_the_flag_and_the_flag_becomes_the_word(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"it has patch 2 of 3; missing: 1, 3; .*, or give --partial to take"):
        described(tmp_path, GAP.encode())
    assert described(tmp_path, GAP.encode(), partial=True)["patches"][0]["partial"] is True


def test_the_flag_beside_a_description_says_where_the_word_goes(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('name = "x"\n')
    with pytest.raises(SpecError, match="write partial = true beside the patch"):
        description(path, SubmitOptions(partial=True), CLIENT)


@pytest.mark.parametrize(
    "title",
    [
        "[red]x[/red]",
        "\x1b[31mx",
        "\x1b]0;owned\x07x",
        "a\u202eb",
        "\x9b31mx",
        "a\rb",
        "[link=http://x]y[/link]",
        "\udce9",
    ],
)
def test_no_name_of_a_stranger_drives_the_terminal(title: str) -> None:
    patch = {"title": title, "author": title, "date": "", "files": [title], "added": 1, "removed": 1}
    patch |= {"number": 2, "total": 3, "version": 2}
    switch = {"name": title, "kind": "patch", "title": title, "author": title, "patches": [patch]}
    switch |= {"notes": [title], "report": [title], "text": ""}
    preview = {"variants": [{"name": title, "state": "to build", "reason": title}], "switches": [switch]}
    preview |= {"boots": 3, "fewest": 3, "builds": 1, "seconds": None, "detectable": []}
    out = io.StringIO()
    show_preview(Console(file=out, force_terminal=True, color_system="truecolor", width=200), preview)
    text = out.getvalue()
    assert "v2 2/3" in text
    assert "repaired: " in text
    assert not {"\u202e", "\x9b", "\x07", "\r"} & set(text)
    assert "\x1b[31m" not in text
    assert "\x1b]" not in text
    if "[" in title and "\x1b" not in title and "\x9b" not in title:
        assert title in text, "markup was obeyed"
