# SPDX-License-Identifier: GPL-2.0-or-later
"""Replies to the list: what they say, what they must not say, and that they fit 72 columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from lab.comparisons.reply.mail_text import columns, cut, fold, name, table
from lab.comparisons.reply.reply import ReplyOptions, write_reply
from lab.comparisons.shape import ComparisonData, MetricData
from lab.comparisons.tests.test_texts import matches_golden
from lab.errors import SpecError
from lab.tests.comparisons import (
    HOSTILE,
    any_data,
    hostile,
    make_case,
    make_cell,
    make_data,
    make_metric,
    make_variant,
    two_patches,
)

ADA = "Ada Lovelace <ada@example.org>"
TRAILER = re.compile(r"^\s*>?\s*[\w-]+-by:", re.MULTILINE | re.IGNORECASE)

# What mail readers and git take for something else at the beginning of a line.
SIGNS = re.compile(r"^(--\s*$|---|>|diff |From |Index: |#syz)", re.MULTILINE)


CAUTIONS = (
    "Instructions were counted in an emulated guest",
    "The guest was emulated (TCG)",
    "Memory accesses of emulated CPUs were replayed on a model",
)


def reply(data: ComparisonData, patch: str = "", signer: str = "") -> str:
    return write_reply(data, ReplyOptions(patch, signer)).text


def one_patch(verdict: str = "improvement", **fields: Any) -> ComparisonData:
    cells = [make_cell("p", verdict, **fields), make_cell("base-again", role="a/a")]
    return make_data(
        [make_case([make_metric("ns_per_open", cells)])],
        [make_variant("p"), make_variant("base-again", "a/a")],
    )


def factorial() -> ComparisonData:
    """Three switches, all combinations, by instructions: too wide for columns."""
    names = ["inode-hash-rcu", "kernfs-rwsem", "slab-hardened"]
    groups = [[a] for a in names] + [[a, b] for a in names for b in names if a < b] + [names]
    cells = [
        make_cell(
            "+".join(g), "regression" if names[2] in g else "unchanged", low=1.009, high=1.015, ratio=1.012
        )
        for g in groups
    ]
    for cell in cells:
        cell["method"] = "instructions, compared exactly: 4 and 2 boots agree; floor ±0.30%"
    effects = [
        {"switches": ["slab-hardened"], "ratio": 1.012, "low": 1.009, "high": 1.015, "q": None, "reason": ""},
        {"switches": ["kernfs-rwsem"], "ratio": 1.0, "low": 0.997, "high": 1.003, "q": None, "reason": ""},
        {"switches": names[:2], "ratio": 1.02, "low": 1.01, "high": 1.03, "q": None, "reason": ""},
        {"switches": names[1:], "ratio": 1.0, "low": 0.99, "high": 1.01, "q": None, "reason": ""},
    ]
    metric = make_metric("instructions_per_open", cells, unit="instructions", effects=effects)
    for spread in metric["spreads"]:
        spread["low"] = spread["high"] = spread["median"]
    variants = [make_variant("+".join(g), switches=g) for g in groups]
    return make_data(
        [make_case([metric])], variants, experiment={"clock": "instructions"}, environment={"vcpus": 1}
    )


def test_a_reply_names_each_method_by_which_its_patches_were_compared() -> None:
    early, late = (f"{test} randomised blocks, own variance" for test in ("t-test in 4", "rank test in 20"))
    cells = [make_cell("p", "regression", method=early), make_cell("q", "inconclusive", method=late)]
    data = make_data([make_case([make_metric("ns_per_open", cells)])], [make_variant("p"), make_variant("q")])
    assert f"Comparison: {late}; {early}." in " ".join(reply(data).split())


@pytest.mark.parametrize(
    ("place", "data"),
    [("factorial", factorial()), ("one-patch", one_patch(ratio=0.62, low=0.6, high=0.65, median=24_310.0))],
)
def test_a_reply_is_as_it_was_last_read_by_a_person(place: str, data: ComparisonData) -> None:
    assert matches_golden(f"{place}.signed.txt", reply(data, signer=ADA))


@given(data=any_data())
def test_no_line_of_any_reply_is_too_wide_and_nobody_is_made_to_have_tested_anything(
    data: ComparisonData,
) -> None:
    unsigned, signed = reply(data), write_reply(data, ReplyOptions(signer=ADA))
    for line in signed.text.split("\n"):
        assert columns(line) <= 72 or re.fullmatch(r"https://\S+", line), line
    assert not TRAILER.search(unsigned)
    assert not SIGNS.search(unsigned)
    assert [line.strip() for line in TRAILER.findall(signed.text)] == (
        [] if signed.unsigned else ["Tested-by:"]
    )


def test_names_of_strangers_begin_no_line_and_hold_no_signs_of_mail() -> None:
    text = reply(hostile())
    assert not TRAILER.search(text)
    assert not SIGNS.search(text)
    assert not any(ord(char) < 32 and char != "\n" for char in text)
    assert "javascript:alert(1)\n" not in text  # no permalink but an address
    for bad in HOSTILE:
        assert bad not in text or "\n" not in bad


@pytest.mark.parametrize("title", [">", "--- a/fs/inode.c", "From nobody", "Tested-by: me", "diff"])
def test_a_case_or_a_metric_of_an_odd_name_begins_no_line(title: str) -> None:
    case = make_case([make_metric(title, [make_cell("p")])], title=title)
    text = reply(make_data([case], [make_variant("p")]))
    assert not SIGNS.search(text)
    assert not TRAILER.search(text)


@pytest.mark.parametrize("width", [0, *range(56, 72)])
@pytest.mark.parametrize("first", ["", "- ", "  "])
def test_no_line_begins_with_a_name_that_a_colon_of_ours_makes_a_trailer(width: int, first: str) -> None:
    text = f"{'x' * width} {name('Tested-by')}: 12 ns"
    assert not TRAILER.search("\n".join(fold(text, first, "  ")))


def test_a_case_of_an_ordinary_name_stands_at_the_left() -> None:
    text = reply(
        make_data(
            [make_case([make_metric("ns", [make_cell("p")])], title="showgids (threads=2)")],
            [make_variant("p")],
        )
    )
    assert "\nshowgids (threads=2)\n" in text


def test_one_patch_is_told_before_and_after_with_change_interval_and_verdict() -> None:
    text = reply(one_patch(ratio=0.62, low=0.6, high=0.65, median=24_310.0))
    assert re.search(r"^ +base +p$", text, re.MULTILINE)
    assert re.search(r"^ns_per_open \[ns\] +39,210 ±2\.5% +24,310 ±2\.5%$", text, re.MULTILINE)
    assert re.search(r"^  change +-38\.0%$", text, re.MULTILINE)
    assert re.search(r"^  95% interval +\[-40\.0%, -35\.0%\]$", text, re.MULTILINE)
    assert re.search(r"^  verdict +improvement$", text, re.MULTILINE)
    assert "Not measured" not in text


def test_an_interval_of_boots_that_may_stop_early_is_not_called_one_of_95_percent() -> None:
    data = one_patch(ratio=0.62, low=0.6, high=0.65)
    data["experiment"]["sequential"] = True
    text = reply(data)
    assert re.search(r"^  interval +\[-40\.0%, -35\.0%\]$", text, re.MULTILINE)
    assert "95% interval " not in text.replace("the 95% interval of", "")


def test_the_floor_is_the_interval_only_of_boots_that_agree() -> None:
    data = one_patch(ratio=0.62, low=0.6, high=0.65)
    data["experiment"]["clock"] = "instructions"
    for p_value, head in ((None, "± floor"), (0.001, "interval")):
        data["cases"][0]["metrics"][0]["cells"][0]["p"] = p_value
        assert re.search(rf"^  {head} +\[-40\.00%, -35\.00%\]$", reply(data), re.MULTILINE)


def test_an_undecided_change_is_said_with_the_boots_it_would_take() -> None:
    text = " ".join(reply(one_patch("inconclusive", boots_needed=1026)).split())
    assert "verdict inconclusive" in text
    assert "(1,026 of each kernel would be needed)" in text


def test_unchanged_is_a_statement_with_its_margin() -> None:
    assert "unchanged within 3%" in reply(one_patch("unchanged"))


def test_a_metric_at_several_numbers_of_cpus_takes_a_line_each() -> None:
    metrics = [
        make_metric(
            f"cycles_per_open_{cpus}",
            [make_cell("p", verdict, ratio=ratio, low=ratio - 0.02, high=ratio + 0.02, median=1000.0)],
            unit="cycles",
        )
        for cpus, verdict, ratio in (
            (1, "unchanged", 1.0),
            (8, "inconclusive", 0.99),
            (32, "improvement", 0.5),
        )
    ]
    data = make_data([make_case(metrics)], [make_variant("p")], experiment={"clock": "contention"})
    text = reply(data)
    assert re.search(r"^CPUs +base +p$", text, re.MULTILINE)
    assert re.search(r"^1 +39,210 +0\.00% \[-2\.0%, \+2\.0%\] =$", text, re.MULTILINE)
    assert re.search(r"^8 +39,210 +-1\.0% \[-3\.0%, \+1\.0%\] \?$", text, re.MULTILINE)
    assert re.search(r"^32 +39,210 +-50\.0% \[-52\.0%, -48\.0%\]$", text, re.MULTILINE)


def test_variants_that_do_not_fit_beside_each_other_stand_in_blocks() -> None:
    text = reply(factorial())
    assert (
        "  inode-hash-rcu+kernfs-rwsem+slab-hardened\n    39,406 +1.20% (within blocks; medians +0.50%) [+0.90%, +1.50%]\n      regression\n"
        in text
    )
    assert "± floor" not in text


def test_effects_name_pairs_only_where_they_do_something_together() -> None:
    said = " ".join(reply(factorial()).split())
    assert "- slab-hardened: instructions_per_open +1.20% [+0.90%, +1.50%] -" in said
    assert "- kernfs-rwsem: instructions_per_open 0.00% [-0.30%, +0.30%] (may be none)" in said
    assert (
        "inode-hash-rcu x kernfs-rwsem: instructions_per_open +2.00% [+1.00%, +3.00%] beyond each alone"
        in said
    )
    assert "kernfs-rwsem x slab-hardened" not in said


@pytest.mark.parametrize(
    ("clock", "accelerator", "said"),
    [
        ("instructions", "tcg", "Instructions were counted in an emulated guest"),
        ("wall", "tcg", "The guest was emulated (TCG)"),
        ("contention", "tcg", "Memory accesses of emulated CPUs were replayed on a model"),
    ],
)
def test_an_emulated_clock_says_what_it_cannot_see(clock: str, accelerator: str, said: str) -> None:
    data = one_patch()
    data["experiment"]["clock"], data["environment"]["accelerator"] = clock, accelerator
    assert [caution in reply(data) for caution in CAUTIONS] == [caution == said for caution in CAUTIONS]


def test_what_no_boot_recorded_leaves_no_empty_brackets() -> None:
    data = one_patch()
    data["environment"] |= {"cpu": "", "accelerator": "", "emulator": ""}
    text = reply(data)
    assert "()" not in text
    assert re.search(r"^Target: .* MiB$", text, re.MULTILINE)


def test_hardware_needs_no_such_words() -> None:
    data = one_patch()
    data["environment"]["accelerator"] = "kvm"
    assert "emulated" not in reply(data)


def test_the_record_of_the_control_is_counted_once_for_several_cases_of_one_workload() -> None:
    control = make_metric("ns_per_open", [make_cell("base-again", role="a/a")])
    cases = [
        make_case([control], title=f"showgids (small, threads={n})", params={"threads": n}) for n in (1, 2)
    ]
    text = " ".join(reply(make_data(cases, [make_variant("base-again", "a/a")])).split())
    assert "wrongly flagged so far: 1 of 40." in text


def test_few_boots_give_a_range_and_not_an_interval() -> None:
    data = one_patch()
    for spread in data["cases"][0]["metrics"][0]["spreads"]:
        spread["level"] = 0.5
    assert "half the range of its boots" in " ".join(reply(data).split())


def test_a_signature_stands_at_the_end_where_nothing_got_worse() -> None:
    assert reply(one_patch(), signer=f" {ADA}\n").endswith(f"\n\nTested-by: {ADA}\n")
    assert reply(one_patch("inconclusive"), signer=ADA).endswith(f"Tested-by: {ADA}\n")
    assert "Tested-by" not in reply(one_patch())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (one_patch("regression"), "no Tested-by: p makes ns_per_open of showgids (small) worse"),
        (make_data([], [make_variant("p", state="failed", problem="x")]), "no Tested-by: p was not built"),
        (make_data([make_case([])], [make_variant("p")]), "no Tested-by: p has no verdict"),
        (make_data([], []), "no Tested-by: no patch was tested"),
        (
            {**one_patch(), "experiment": {**one_patch()["experiment"], "state": "running"}},
            "the experiment is running",
        ),
    ],
)
def test_a_signature_is_refused_with_its_reason(data: ComparisonData, why: str) -> None:
    draft = write_reply(data, ReplyOptions(signer=ADA))
    assert why in draft.unsigned
    assert "Tested-by" not in draft.text


@pytest.mark.parametrize(
    "metrics",
    [
        [],
        [
            make_metric(
                "ns_per_open", [make_cell("p", "inconclusive", boots=0, reason="no valid boot of the base")]
            )
        ],
    ],
)
def test_a_workload_without_a_boot_to_compare_forbids_a_signature(metrics: list[MetricData]) -> None:
    data = one_patch()
    data["cases"].append(make_case(metrics, "stat-walk"))
    draft = write_reply(data, ReplyOptions(signer=ADA))
    assert draft.unsigned == "no Tested-by: p has no verdict for stat-walk (small)"
    assert "Tested-by" not in draft.text


def test_a_boot_that_panicked_forbids_a_signature() -> None:
    data = one_patch()
    data["cases"][0]["failures"] = [
        {"variant": "p", "outcome": "panicked", "blame": "kernel", "problem": "Oops", "boots": 1}
    ]
    draft = write_reply(data, ReplyOptions(signer=ADA))
    assert draft.unsigned == "no Tested-by: a boot of p ended as panicked"
    assert "- p, showgids (small): 1 boot ended as panicked: Oops" in draft.text


@pytest.mark.parametrize(
    "signer",
    ["Ada", "ada@example.org", "<ada@example.org>", "A <a@b>\nCc: x <y@z>", "A <a@b> <c@d>", "\x1b <a@b.c>"],
)
def test_a_signer_is_a_name_with_an_address(signer: str) -> None:
    with pytest.raises(SpecError, match="sign: "):
        reply(one_patch(), signer=signer)


def test_one_patch_of_several_is_spoken_of_alone() -> None:
    text = reply(two_patches(), patch="iattr-hashed")
    assert 'I measured "kernfs: iattr-hashed"' in text
    assert "iattr-global" not in text
    assert "iattr-hashed makes showgids better" in " ".join(text.split())
    with pytest.raises(SpecError, match='did you mean "iattr-hashed"'):
        reply(two_patches(), patch="iattr-hash")


def test_a_secondary_metric_is_shown_where_it_says_something_else() -> None:
    text = reply(two_patches())
    assert "user [s]" in text  # a regression beside an improvement
    cells = [make_cell("p", "improvement")]
    data = make_data(
        [make_case([make_metric("m", cells), make_metric("n", cells, primary=False)])], [make_variant("p")]
    )
    assert "n [ns]" not in reply(data)


def test_an_experiment_that_failed_says_so_and_why() -> None:
    data = make_data([], [], experiment={"state": "failed", "problem": "the base does not build"})
    assert "The experiment failed: the base does not build" in reply(data)


def test_wide_characters_count_twice_and_combining_ones_not_at_all() -> None:
    assert (columns("a"), columns("長"), columns("e\u0301"), columns("\u200b")) == (1, 2, 1, 0)
    assert cut("長い名前", 6) == "長い.."
    assert table([["", "b"], ["長い", "x"]]) == ["      b", "長い  x"]
    assert all(columns(line) <= 72 for line in fold("長" * 100, "- ", "  "))


def test_a_table_that_is_too_wide_is_none() -> None:
    assert table([["x" * 40, "y" * 40]]) is None
