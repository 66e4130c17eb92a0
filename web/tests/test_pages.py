# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from lab.models import Build, Comparison, Experiment
from lab.models.states import BuildState, ExperimentState, Outcome, Role, RunState, VariantState
from lab.tests.factories import make_build, make_case, make_experiment, make_grid, make_run, make_variant
from web.tests.conftest import SCRIPT, Page, strip_escaped

# Only a run that is over has an outcome.
ENDS = [
    *((state, "") for state in RunState),
    (RunState.DONE, Outcome.FINISHED),
    *((RunState.FAILED, outcome) for outcome in Outcome if outcome != Outcome.FINISHED),
]


def pages_of(experiment: Experiment) -> list[str]:
    root = f"/experiments/{experiment.pk}/"
    parts = ["", "live", "runs/", "comparison/", *(f"profile/{case.pk}/" for case in experiment.cases.all())]
    runs = [
        address
        for run in experiment.runs.all()
        for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/console")
    ]
    builds = [f"/builds/{variant.build_id}/log" for variant in experiment.variants.exclude(build=None)]
    return ["/experiments/", *(root + part for part in parts), *runs, *builds]


def test_without_an_experiment_the_list_says_how_to_submit_one(page: Page) -> None:
    text = page("/experiments/")
    assert "labctl submit --local story.toml" in text
    assert 'href="/experiments/new"' in text


def test_without_trends_the_page_says_how_to_get_one(page: Page) -> None:
    assert "labctl trend" in page("/trends/")


@pytest.mark.parametrize("state", list(ExperimentState))
def test_an_experiment_in_any_state_has_all_its_pages(page: Page, state: ExperimentState) -> None:
    experiment = make_grid()
    Experiment.objects.filter(pk=experiment.pk).update(state=state, problem="the base does not build")
    texts = [page(address) for address in pages_of(experiment)]
    assert all(state.value in text for text in texts[:2])


@pytest.mark.parametrize(("state", "outcome"), ENDS)
def test_a_run_in_any_state_has_its_pages(page: Page, state: RunState, outcome: str) -> None:
    experiment = make_experiment()
    run = make_run(make_variant(experiment), make_case(experiment), state=state, outcome=outcome)
    texts = [page(address) for address in pages_of(experiment)]
    assert f"/runs/{run.pk}/" in texts[3]
    assert state.value in texts[3]


@pytest.mark.parametrize("state", list(BuildState))
def test_a_build_in_any_state_has_its_pages(page: Page, state: BuildState) -> None:
    experiment = make_experiment()
    make_variant(experiment, build=make_build("b", state=state, cpu_seconds=12.5))
    texts = [page(address) for address in pages_of(experiment)]
    assert state.value in texts[1]
    assert state.value in texts[-1]


@pytest.mark.parametrize("address", ["/experiments/77/", "/experiments/77/live", "/experiments/77/comparison/",
    "/experiments/77/profile/1/", "/experiments/77/runs/", "/runs/77/", "/runs/77/console.txt", "/builds/77/log", "/nowhere"])  # fmt: skip
def test_what_is_not_there_is_told_kindly(client: Client, db: None, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 404
    text = response.content.decode()
    assert "Page not found" in text
    assert 'href="/experiments/"' in text
    assert ("77" in text) == ("77" in address)


def test_pages_are_only_read(client: Client, db: None) -> None:
    assert client.post("/experiments/").status_code == 405


def test_the_live_part_asks_for_itself_until_the_experiment_is_over(page: Page) -> None:
    experiment = make_grid()
    live = f"/experiments/{experiment.pk}/live"
    assert f'hx-get="{live}"' in page(live)
    assert "every 2s" in page(live)
    assert "built/live.js" in page(f"/experiments/{experiment.pk}/")
    Experiment.objects.filter(pk=experiment.pk).update(state=ExperimentState.DONE)
    assert "hx-" not in page(live)
    assert "built/live.js" not in page(f"/experiments/{experiment.pk}/")


def test_an_experiment_that_nobody_works_on_says_how_to_start_it(page: Page) -> None:
    experiment = make_grid()
    assert "Queued: 1st of 1 for a build." in page(f"/experiments/{experiment.pk}/")
    Experiment.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert f"labctl run {experiment.pk} --local" in page(f"/experiments/{experiment.pk}/")
    experiment.runs.update(state=RunState.RUNNING)
    assert "labctl run" not in page(f"/experiments/{experiment.pk}/")


def test_the_grid_shows_each_variant_with_its_build_and_its_boots(page: Page) -> None:
    experiment = make_grid(blocks=3)
    first = experiment.runs.first()
    assert first is not None
    experiment.runs.filter(pk=first.pk).update(state=RunState.DONE)
    text = page(f"/experiments/{experiment.pk}/")
    assert "1 of 3 booted" in text
    assert "0 of 3 booted" in text
    assert "0 of 2 builds, 1 of 6 boots" in text


def test_a_switch_tells_what_it_claims_and_what_was_repaired(page: Page, compared: Experiment) -> None:
    text = page(f"/experiments/{compared.pk}/")
    assert "Author claims: lowers <strong>ns_per_open</strong> of showgids" in text
    assert "Repaired when read: 1 place" in text


def test_a_pruned_variant_gives_its_reason(page: Page, compared: Experiment) -> None:
    assert "p and q clash in" in page(f"/experiments/{compared.pk}/")
    assert "p and q clash in" in page(f"/experiments/{compared.pk}/comparison/")


def test_a_compile_error_is_told_with_its_first_line_and_its_log(page: Page) -> None:
    experiment = make_experiment()
    build = make_build(
        "b", state=BuildState.FAILED, problem="fs/buffer.c:12: error: no", problem_detail="make: Error 1"
    )
    make_variant(experiment, "p", build=build, state=VariantState.FAILED)
    text = page(f"/experiments/{experiment.pk}/")
    assert "fs/buffer.c:12: error: no" in text
    assert "make: Error 1" in text
    assert f"/builds/{build.pk}/log" in text


def test_boots_that_fail_alike_are_told_once_with_their_evidence(page: Page) -> None:
    experiment = make_experiment()
    variant, case = make_variant(experiment), make_case(experiment)
    for block in range(3):
        make_run(
            variant,
            case,
            block=block,
            state="failed",
            outcome="panicked",
            problem="BUG: oops",
            problem_detail="RIP: x\n",
        )
    text = page(f"/experiments/{experiment.pk}/")
    assert text.count("BUG: oops") == 1
    assert "(3 boots)" in text
    assert "RIP: x" in text


def test_a_comparison_shows_change_interval_verdict_and_proof(page: Page, compared: Experiment) -> None:
    text = page(f"/experiments/{compared.pk}/comparison/").replace("\xa0", " ").replace("\N{MINUS SIGN}", "-")
    for said in (
        "-38.0 %",
        "-40.0 % to -35.0 %",
        "improvement",
        "39 µs",
        "24 µs",
        "3.77s user",
        "8 calls",
        "holds",
        "does not hold",
    ):
        assert said in text
    assert 'class="interval improvement"' in text
    assert "<polyline" in text


def test_an_inconclusive_comparison_says_how_many_boots_it_would_take(
    page: Page, compared: Experiment
) -> None:
    address = f"/experiments/{compared.pk}/comparison/"
    Comparison.objects.update(verdict="inconclusive", boots_needed=23)
    assert "about 23 boots needed" in page(address)
    Comparison.objects.update(reason="the interval is wider than the margin; about 23 boots needed")
    assert page(address).count("about 23 boots needed") == 1


def test_a_comparison_without_an_interval_is_shown_all_the_same(page: Page, compared: Experiment) -> None:
    Comparison.objects.update(
        verdict="inconclusive", ratio=None, low=None, high=None, median=None, base_median=None
    )
    assert "inconclusive" in page(f"/experiments/{compared.pk}/comparison/")


def test_each_verdict_is_explained_on_a_page_of_its_own(
    page: Page, client: Client, compared: Experiment
) -> None:
    row = compared.comparisons.get()
    Comparison.objects.filter(pk=row.pk).update(notes=[f"a note {SCRIPT}"], q_value=0.0004, effect=-3.25)
    compared.runs.filter(purpose="measured", variant__name="p").update(invalid=["the host was busy"])
    address = f"/experiments/{compared.pk}/explain/{row.pk}/"
    assert f'href="{address}"' in page(f"/experiments/{compared.pk}/comparison/")
    text = page(address).replace("\xa0", " ")
    for words in ("−38.0 %", "q &lt; 0.001", "a note", "the host was busy", "p: 0 of 1 blocks count"):
        assert words in text
    assert "base has no kernel" in text
    assert SCRIPT not in text
    assert client.get(f"/experiments/{compared.pk + 1}/explain/{row.pk}/").status_code == 404


def test_without_numbers_the_comparison_says_what_it_waits_for(page: Page) -> None:
    experiment = make_grid()
    assert "Nothing to compare yet" in page(f"/experiments/{experiment.pk}/comparison/")
    Experiment.objects.update(state="failed")
    text = page(f"/experiments/{experiment.pk}/comparison/")
    assert "<h2>Nothing to compare</h2>" in text


def test_a_profile_shows_shares_by_caller_and_by_symbol(page: Page, compared: Experiment) -> None:
    case = compared.cases.get()
    text = page(f"/experiments/{compared.pk}/profile/{case.pk}/?variant=p&symbols=down_read").replace(
        "\xa0", " "
    )
    assert "flame graph of p" in text
    assert "60.00 %" in text
    assert "kernfs_iop_permission" in text
    assert "3 lost" in text
    assert (
        f'data-tree="/experiments/{compared.pk}/profile/{case.pk}/variant.tree?variant=p&amp;idle=1"' in text
    )
    boot = compared.runs.get(variant__name="p", purpose="profiled").pk
    assert f'data-tree="/profiles/{boot}.tree"' in page(
        f"/experiments/{compared.pk}/profile/{case.pk}/?variant=p&boot={boot}"
    )


def test_symbols_that_no_sample_holds_are_told(page: Page, compared: Experiment) -> None:
    text = page(f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/?symbols={'no_such'}")
    assert "No sample of any variant contains no_such" in text


def test_a_workload_that_watches_no_symbol_asks_for_one(page: Page, compared: Experiment) -> None:
    compared.cases.update(workload="of-another-lab")
    text = page(f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/")
    assert "Callers of a symbol" in text
    assert "Enter one or several symbols" in text


def test_a_case_without_a_profile_says_how_to_ask_for_one(page: Page) -> None:
    experiment = make_grid()
    assert "profile = true" in page(f"/experiments/{experiment.pk}/profile/{experiment.cases.get().pk}/")


def test_a_difference_is_of_two_variants_and_names_both(page: Page, compared: Experiment) -> None:
    address = f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/"
    text = page(f"{address}?variant=p&against=base")
    assert "p against base" in text
    assert "data-diff=" in text
    for same in ("p", "nobody", ""):
        assert "data-diff=" not in page(f"{address}?variant=p&against={same}")


def test_the_profiles_lead_to_the_first_case_that_has_one(client: Client, compared: Experiment) -> None:
    response = client.get(f"/experiments/{compared.pk}/profile/")
    assert response.headers["Location"] == f"/experiments/{compared.pk}/profile/{compared.cases.get().pk}/"


def test_the_runs_are_narrowed_by_variant_and_case(page: Page) -> None:
    experiment = make_grid()
    text = page(f"/experiments/{experiment.pk}/runs/?variant=base")
    assert text.count("measured #") == experiment.runs.filter(variant__name="base").count()
    assert "No run matches" in page(f"/experiments/{experiment.pk}/runs/?variant=nobody")


def test_the_runs_of_two_cases_of_one_workload_and_preset_are_told_apart(page: Page) -> None:
    experiment = make_grid()
    few, many = experiment.cases.get(), make_case(experiment, params={"threads": 8})
    for case in (few, many):
        make_run(experiment.variants.get(name="p"), case, block=7, state="failed", outcome="panicked")
    address = f"/experiments/{experiment.pk}/runs/"
    assert "<option>showgids (smoke, threads=8)</option>" in page(address)
    text = page(f"{address}?case=showgids+(smoke,+threads%3D8)")
    assert (
        text.count("measured #"),
        text.count('<td data-label="Case">showgids (smoke, threads=8)</td>'),
    ) == (1, 1)
    text = page(f"/experiments/{experiment.pk}/")
    assert "p, showgids (smoke, threads=2): panicked" in text
    assert "p, showgids (smoke, threads=8): panicked" in text


def test_a_grid_tells_how_many_boots_of_a_cell_run_at_once(page: Page) -> None:
    experiment = make_grid()
    experiment.runs.filter(variant__name="p").update(state="running")
    assert "0 of 2 booted, 2 running" in page(f"/experiments/{experiment.pk}/")


def test_a_console_is_shown_from_its_end_and_downloaded_whole(
    page: Page, client: Client, tmp_path: Path
) -> None:
    console = tmp_path / "console.log"
    console.write_text(
        "".join(f"[{number}] line\n" for number in range(20_000)) + "\x1b[31mKernel panic\x1b[0m\n"
    )
    experiment = make_experiment()
    run = make_run(make_variant(experiment), make_case(experiment), console=str(console))
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/console"):
        text = page(address)
        assert "Kernel panic" in text
        assert "\x1b" not in text
        assert "[0] line" not in text
    assert "[0] line" in page(f"/runs/{run.pk}/console?all=1")
    raw = client.get(f"/runs/{run.pk}/console.txt")
    assert b"".join(raw) == console.read_bytes()
    assert raw.headers["Content-Type"] == "text/plain"
    assert raw.headers["Content-Disposition"].startswith("attachment")
    assert raw.headers["X-Content-Type-Options"] == "nosniff"


def test_a_boot_says_which_function_a_report_is_about_and_whether_it_is_whole(
    page: Page, compared: Experiment
) -> None:
    whole = {"kind": "oops", "title": "an oops", "line_no": 7, "excerpt": "x", "frame": "kernfs_iop_lookup"}
    findings = [whole, whole | {"frame": "", "corrupted": True}]
    run = compared.runs.filter(purpose="measured")[0]
    compared.runs.filter(pk=run.pk).update(findings=findings)
    first, second = page(f"/runs/{run.pk}/").split("Console line 7")[1:]
    assert first.startswith(', in the function <code class="break">kernfs_iop_lookup</code></p>')
    assert "cut off" not in first
    assert second.startswith(
        '</p><p class="small">This report is cut off or mixed with another one. Its title and function may be wrong.</p>'
    )


def test_a_log_that_is_gone_is_told(page: Page, client: Client) -> None:
    build = make_build("b", log="/nowhere/log", state="built")
    assert "cannot be read" in page(f"/builds/{build.pk}/log")
    assert client.get(f"/builds/{build.pk}/log.txt").status_code == 404


def test_no_text_of_others_becomes_markup(page: Page, compared: Experiment, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(SCRIPT)
    compared.runs.update(console=str(log), problem=SCRIPT, problem_detail=SCRIPT, environment={SCRIPT: [SCRIPT]},
        findings=[{"kind": "oops", "title": SCRIPT, "line_no": 1, "excerpt": SCRIPT}])  # fmt: skip
    compared.runs.filter(purpose="verified").update(state="failed")
    Build.objects.update(log=str(log), problem=SCRIPT, problem_detail=SCRIPT, release=SCRIPT)
    for address in pages_of(compared):
        text = page(address)
        assert SCRIPT not in text
        assert strip_escaped(text).count("<script") == strip_escaped(text).count("<script src=")


def test_a_link_that_is_no_web_address_is_not_a_link(page: Page, compared: Experiment) -> None:
    text = page(f"/experiments/{compared.pk}/")
    assert "javascript:alert(1)" in text
    assert 'href="javascript' not in text


def test_an_environment_is_told_in_groups_and_mitigations_in_one_line(page: Page) -> None:
    experiment = make_experiment()
    environment = {
        "guest": {"mitigations": {"l1tf": "Not affected", "mds": "Not affected", "spectre_v2": "Retpolines"}, "cpus": 2},
        "host": {"host_kernel": "6.18", "load_before": 9.5478515625},
        "config_sha256": "ab",
    }  # fmt: skip
    run = make_run(make_variant(experiment), make_case(experiment), environment=environment)
    text = page(f"/runs/{run.pk}/")
    assert "spectre v2: Retpolines; not affected: l1tf, mds" in text
    assert "host host" not in text
    assert "9.548" in text
    assert "config sha256" in text


@pytest.mark.parametrize("verdict", ["improvement", "regression"])
def test_a_failed_control_is_a_warning_and_never_a_tick(
    page: Page, compared: Experiment, verdict: str
) -> None:
    control = make_variant(compared, "base-again", role=Role.AA)
    row = Comparison.objects.filter(primary=True).first()
    assert row is not None
    Comparison.objects.create(
        **{
            field.name: getattr(row, field.name)
            for field in Comparison._meta.fields
            if field.name not in ("id", "variant", "verdict")
        },
        variant=control,
        verdict=verdict,
    )
    text = page(f"/experiments/{compared.pk}/comparison/")
    (chip,) = re.findall(r'<span class="chip ([^"]*)">(?:(?!</span>).)*control failed', text, re.S)
    assert chip.strip() == "failed"
