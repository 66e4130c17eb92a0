# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import subprocess
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from kernels.errors import HostUnfit, PatchDoesNotApply, PatchRejected
from kernels.patches.apply import apply_patches
from kernels.patches.catalog import PATCHES, CatalogEntry, entry_claims, entry_patch, load_catalog
from kernels.trees.tree import DEFAULT_ARCHIVES, import_archive, resolve

CATALOG = load_catalog()
MADE_FOR = [(entry, tree) for entry in CATALOG.values() for tree in entry.trees]
PROGRAMS = Path(__file__).parents[3] / "workloads" / "programs"

GOOD = """
title = "t"
author = "a"
link = "https://example.org/"
summary = "s"
[[claims]]
workload = "showgids"
metric = "system"
direction = "lower"
source = "x"
[trees.one]
patch = "one.patch"
"""


def test_the_switches_of_the_seeds_are_there_for_both_trees() -> None:
    assert set(CATALOG) == {
        "vfs-iget-rcu",
        "kernfs-iattr-rwsem",
        "kernfs-iattr-hashed-rwsem",
        "buffer-no-bh-lru",
    }
    assert all(set(entry.trees) == set(DEFAULT_ARCHIVES) for entry in CATALOG.values())


@pytest.mark.parametrize(("entry", "tree"), MADE_FOR, ids=lambda value: getattr(value, "name", value))
def test_every_patch_passes_our_own_intake(entry: CatalogEntry, tree: str) -> None:
    patch = entry_patch(entry, tree)
    assert patch.title.startswith("Revert ") == entry.trees[tree].reverts
    assert entry.trees[tree].reverts or patch.title == entry.title
    assert entry.link in patch.message
    assert entry.author in patch.message
    assert "SPDX-License-Identifier: GPL-2.0-only" in patch.message


def test_no_patch_lies_about_that_no_switch_names() -> None:
    named = {tree.file for entry in CATALOG.values() for tree in entry.trees.values()}
    assert named == {path.name for path in PATCHES.glob("*.patch")}


def test_exclusion_is_mutual() -> None:
    for entry in CATALOG.values():
        assert all(entry.name in CATALOG[other].excludes for other in entry.excludes)
    assert CATALOG["kernfs-iattr-rwsem"].excludes == ("kernfs-iattr-hashed-rwsem",)


@pytest.mark.parametrize("entry", CATALOG.values(), ids=lambda entry: entry.name)
def test_what_is_claimed_is_a_metric_of_a_workload(entry: CatalogEntry) -> None:
    for claim in entry.claims:
        metrics = tomllib.loads((PROGRAMS / claim.workload / "workload.toml").read_text())["metrics"]
        assert claim.metric in metrics
        assert claim.direction == metrics[claim.metric]["better"]


def test_a_switch_that_is_a_revert_claims_the_opposite() -> None:
    entry = CATALOG["vfs-iget-rcu"]
    assert (entry.metric, entry.direction) == ("elapsed", "lower")
    assert {claim.direction for claim in entry_claims(entry, "debian-6.1")} == {"lower"}
    assert {claim.direction for claim in entry_claims(entry, "debian-6.12")} == {"higher"}


@pytest.mark.parametrize(("entry", "tree"), MADE_FOR, ids=lambda value: getattr(value, "name", value))
def test_headers_everybody_includes_are_touched_only_where_there_is_no_other_way(
    entry: CatalogEntry, tree: str
) -> None:
    headers = {path for path in entry_patch(entry, tree).files if path.startswith("include/")}
    assert headers == ({"include/linux/buffer_head.h"} if entry.name == "buffer-no-bh-lru" else set())


def test_another_tree_is_refused_with_those_there_are() -> None:
    with pytest.raises(PatchRejected, match=r"not made for debian-6\.13\. Did you mean"):
        entry_patch(CATALOG["vfs-iget-rcu"], "debian-6.13")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("title = ", "not TOML"),
        (GOOD.replace('author = "a"', ""), "'author'"),
        (GOOD.replace('"lower"', '"down"'), 'direction "down"'),
        (GOOD.replace("[trees.one]", "[trees]"), "lacks a field"),
        ('excludes = ["twp"]' + GOOD, r'a switch "twp"\. There are one'),
    ],
)
def test_a_broken_entry_is_named_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "one.toml").write_text(text)
    with pytest.raises(HostUnfit, match=rf"one\.toml.*{fault}"):
        load_catalog(tmp_path)


def test_a_missing_patch_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(GOOD)
    with pytest.raises(HostUnfit, match=r"one\.toml names one\.patch"):
        entry_patch(load_catalog(tmp_path)["one"], "one", tmp_path)


@pytest.mark.real
@pytest.mark.campaign
@pytest.mark.parametrize("name", DEFAULT_ARCHIVES)
def test_every_combination_applies_to_the_real_tree_except_those_that_exclude_each_other(
    tmp_path: Path, name: str
) -> None:
    entries = [entry for entry in CATALOG.values() if name in entry.trees]
    patches = {entry.name: entry_patch(entry, name) for entry in entries}
    archive = DEFAULT_ARCHIVES[name]
    # Only the files in question: unpacking and importing these takes a quarter of the time of the whole tree.
    top = archive.name.removesuffix(".tar.xz")
    wanted = {"Makefile", *(path for patch in patches.values() for path in patch.files)}
    unpack = ["tar", "-C", str(tmp_path), "-xf", str(archive), *(f"{top}/{path}" for path in sorted(wanted))]
    subprocess.run(unpack, check=True, timeout=120)
    subprocess.run(
        ["tar", "-C", str(tmp_path), "-cf", str(tmp_path / "few.tar"), top], check=True, timeout=60
    )
    tree = import_archive(name, tmp_path / "few.tar", tmp_path / "trees")
    base = resolve(tree, "")
    for count in range(1, len(entries) + 1):
        for chosen in combinations(entries, count):
            names = {entry.name for entry in chosen}
            if any(names & set(entry.excludes) for entry in chosen):
                with pytest.raises(PatchDoesNotApply):
                    apply_patches(tree, base, [patches[entry.name] for entry in chosen])
            else:
                apply_patches(tree, base, [patches[entry.name] for entry in chosen])
