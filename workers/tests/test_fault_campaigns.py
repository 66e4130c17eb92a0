# SPDX-License-Identifier: GPL-2.0-or-later
"""The file of a campaign of faults: its lanes draw from one sequence, and a later call goes on with it."""

from __future__ import annotations

import io
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console

from bench.faults import __main__ as campaigns
from bench.faults.campaign import Lane, close_piece
from bench.faults.campaign_file import (
    Breach,
    Campaign,
    CampaignMismatch,
    Injected,
    Piece,
    alone,
    changing,
    drawn,
    open_campaign,
)
from bench.faults.hand import PATIENCE_S, Hand, Loads
from bench.faults.kinds import stages_of
from bench.faults.lab import Lab, LabSetup, fresh_places, wire_of
from bench.faults.stages import Held, Scene
from bench.faults.table import print_table, wrong

ROOT = Path(__file__).resolve().parents[2]


def begun(path: Path) -> Campaign:
    campaign = open_campaign(path, 7, 8.0, stages_of())
    campaign.begin_piece("/somewhere", 8200)
    for one in islice(campaign.upcoming(), 3):
        campaign.injected.append(replace(one, hit=True, home="/somewhere"))
    campaign.pieces[-1].over = True
    campaign.save()
    return campaign


def test_a_campaign_in_pieces_draws_what_one_in_a_single_piece_draws(tmp_path: Path) -> None:
    begun(tmp_path / "campaign.json")
    again = open_campaign(tmp_path / "campaign.json", 7, 8.0, stages_of())
    pieces = [*again.injected, *islice(again.upcoming(), 40)]
    assert [one.number for one in pieces] == list(range(1, 44))
    assert [(one.fault, one.stage) for one in pieces] == list(islice(drawn(7, stages_of()), 43))


def lane(path: Path, home: str) -> Lane:
    return Lane(Lab(LabSetup(Path(home), seed=7), 8200), path, lambda _line: None)


def test_lanes_side_by_side_draw_what_one_draws(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    with changing(campaign.path) as found:
        found.begin_piece("/one", 8201, 1)
        found.begin_piece("/two", 8202, 2)
    one, two = lane(campaign.path, "/one"), lane(campaign.path, "/two")
    taken = []
    with ThreadPoolExecutor(2) as threads:

        def share(mine: Lane) -> None:
            while (fault := mine.take(43)) is not None:
                taken.append(fault)
                mine.record(replace(fault, hit=True), 1)

        for done in [threads.submit(share, mine) for mine in (one, two)]:
            done.result()
    again = open_campaign(campaign.path, 7, 8.0, stages_of())
    assert len(again.injected) in {43, 44}  # the other lane may have been at one when the last landed
    wanted = list(islice(drawn(7, stages_of()), len(again.injected)))
    assert [(injection.fault, injection.stage) for injection in again.injected] == wanted
    assert sorted(claim.number for claim in taken) == [one.number for one in again.injected[3:]]
    assert sum(piece.quarantined for piece in again.pieces) == len(taken)
    assert again.sums()["lanes"] == 2


def test_what_a_lane_was_at_when_it_was_killed_is_drawn_again(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    with changing(campaign.path) as found:
        found.begin_piece("/one", 8201, 1)
        found.begin_piece("/two", 8202, 2)
    lost, two = lane(campaign.path, "/one").take(9), lane(campaign.path, "/two")
    assert lost is not None
    fifth = two.take(9)
    assert fifth is not None
    assert (lost.number, fifth.number) == (4, 5)
    two.record(fifth, 0)
    with changing(campaign.path) as found:
        assert found.forget_piece("/one") == 0
    again = two.take(9)
    assert again is not None
    assert (again.number, again.fault) == (4, lost.fault)


def test_only_the_faults_of_the_lab_that_is_gone_are_injected_again(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    with changing(campaign.path) as found:
        found.begin_piece("/one", 8201, 1)
        found.begin_piece("/two", 8202, 2)
    for home in ("/one", "/two", "/one", "/two"):
        mine = lane(campaign.path, home)
        fault = mine.take(99)
        assert fault is not None
        mine.record(fault, 0)
    with changing(campaign.path) as found:
        assert found.forget_piece("/one") == 2
    again = open_campaign(campaign.path, 7, 8.0, stages_of())
    assert [injection.number for injection in again.injected] == [1, 2, 3, 5, 7]
    assert [one.number for one in islice(again.upcoming(), 3)] == [4, 6, 8]


@pytest.mark.process
def test_a_second_call_on_a_campaign_is_refused_while_a_lane_of_the_first_runs(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    with alone(path) as right:
        # The call itself may be gone: its lanes hold what they inherited.
        left = subprocess.Popen(["sleep", "60"], pass_fds=[right])
    try:
        with pytest.raises(CampaignMismatch, match="another call carries this campaign on"), alone(path):
            pass
    finally:
        left.kill()
        left.wait()
    with alone(path):
        pass


def test_a_file_from_before_there_were_lanes_goes_on(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    content = json.loads(campaign.path.read_text())
    for one in content["injected"]:
        del one["home"]
    for piece in content["pieces"]:
        del piece["lane"], piece["hand"]
    content["pieces"][0] |= {"first": 2, "over": False}
    del content["sums"]["lanes"]
    campaign.path.write_text(json.dumps(content))
    with changing(campaign.path) as found:
        assert (found.hit, next(found.upcoming()).number) == (3, 4)
        assert found.forget_piece("/somewhere") == 2
    again = open_campaign(campaign.path, 7, 8.0, stages_of())
    assert [injection.number for injection in again.injected] == [1]


def test_a_file_from_when_a_lane_drew_one_at_a_time_goes_on(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    content = json.loads(campaign.path.read_text())
    content["pieces"][0]["at"] = 0
    campaign.path.write_text(json.dumps(content))
    assert open_campaign(campaign.path, 7, 8.0, stages_of()).hit == 3


def test_what_is_in_a_lanes_hand_is_drawn_by_no_other_and_is_free_once_its_piece_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = begun(tmp_path / "campaign.json")
    with changing(campaign.path) as found:
        found.begin_piece("/one", 8201, 1)
        found.begin_piece("/two", 8202, 2)
    one, two = lane(campaign.path, "/one"), lane(campaign.path, "/two")
    taken = [mine.take(99) for mine in (one, one, two, one)]
    assert [fault and fault.number for fault in taken] == [4, 5, 6, 7]
    assert taken[1] is not None
    one.record(taken[1], 0)
    monkeypatch.setattr("bench.faults.campaign._look_over", lambda _lane: None)
    close_piece(one)
    again = open_campaign(campaign.path, 7, 8.0, stages_of())
    assert [fault.number for fault in islice(again.upcoming(), 3)] == [4, 7, 8]


NOTHING = Scene((), (), (), ())
BUILDING = Scene((Held("build", 1, "t", f"{os.uname().nodename}:1:1", 0.1, 0),), (), (), ())
PAUSED = Scene((), (), (9,), ())


class NoLoad:
    """Work that is there by itself."""

    def keep_going(self, _waiting: int) -> None:
        """Submit nothing."""


def hand_of(*faults: tuple[str, str]) -> Hand:
    held = [Injected(number, name, stage) for number, (name, stage) in enumerate(faults, 1)]
    return Hand(Lab(LabSetup(Path("/somewhere"), seed=7), 8200), Loads(NoLoad(), None), held)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scenes", "number"),
    [
        ([NOTHING, NOTHING, PAUSED, BUILDING], 2),
        ([NOTHING, BUILDING], 1),
        # Of those whose stage is there, the oldest.
        ([PAUSED], 2),
    ],
)
def test_the_fault_whose_stage_comes_first_is_injected_first(
    monkeypatch: pytest.MonkeyPatch, scenes: list[Scene], number: int
) -> None:
    hand = hand_of(("kill make", "building"), ("kill web", "between"), ("kill beat", "between"))
    seen = iter(scenes)
    monkeypatch.setattr("bench.faults.hand.look", lambda: next(seen))
    one, moment = hand.first(hand.ready())
    assert one.number == number
    assert moment is not None
    assert moment.stage == one.stage


def test_a_stage_that_does_not_come_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = hand_of(("kill web", "settling"), ("kill beat", "queued"))
    hand.held[1].waited_s = PATIENCE_S
    monkeypatch.setattr("bench.faults.hand.look", lambda: NOTHING)
    one, moment = hand.first(hand.ready())
    assert (one.number, moment) == (2, None)


def test_what_needs_a_preparation_waits_until_it_is_the_oldest_and_has_the_lab_to_itself() -> None:
    hand = hand_of(("kill web", "queued"), ("older worker", "queued"), ("kill beat", "queued"))
    before = hand.alone
    assert before is None
    assert [one.number for one in hand.ready()] == [1, 3]
    del hand.held[0]
    assert hand.alone is hand.held[0]


def test_labs_side_by_side_share_neither_a_cable_nor_a_port() -> None:
    places = fresh_places(3)
    try:
        assert len({wire_of(home)[1] for home, _ in places}) == 3
        assert len({port for _, port in places}) == 3
    finally:
        for home, _ in places:
            home.rmdir()


def test_a_campaign_keeps_drawing_from_the_faults_that_it_began_with(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    known = stages_of() | {"a fault of a later version": ["queued"]}
    assert open_campaign(campaign.path, 7, 8.0, known).kinds == stages_of()


@pytest.mark.parametrize(
    ("seed", "lease_s", "only", "told"),
    [
        (8, 8.0, "", "is of seed 7 and lease 8 s, not 8 and 8 s"),
        (7, 5.0, "", "not 7 and 5 s"),
        (7, 8.0, "postgres", "which is not chosen here"),
    ],
)
def test_a_file_of_another_campaign_is_refused(
    tmp_path: Path, seed: int, lease_s: float, only: str, told: str
) -> None:
    campaign = begun(tmp_path / "campaign.json")
    with pytest.raises(CampaignMismatch, match=told):
        open_campaign(campaign.path, seed, lease_s, stages_of(only))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"seed": 7, "sums": {}}'])
def test_a_file_that_is_no_campaigns_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(CampaignMismatch, match="is no campaign's file"):
        open_campaign(tmp_path / "campaign.json", 7, 8.0, stages_of())


def test_the_account_is_the_sum_over_all_pieces(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    campaign.pieces[0].samples, campaign.pieces[0].experiments = 10, {"done": 2}
    second = Piece(4, "/elsewhere", 8201, samples=5, experiments={"done": 1, "failed": 1})
    second.breaches, second.left = [Breach("lost", "run 1"), Breach("failed", "run 2")], ["process 3"]
    campaign.pieces.append(second)
    campaign.injected.append(Injected(4, "kill web", "queued", hit=False, takeover_s=17.0, late=True))
    campaign.save()
    sums = open_campaign(campaign.path, 7, 8.0, stages_of()).sums()
    assert (sums["injected"], sums["hit"], sums["lost"], sums["left"], sums["late"]) == (4, 3, 1, 1, 1)
    assert (sums["samples"], sums["experiments"]) == (15, {"done": 3, "failed": 1})
    assert (sums["failed"], sums["worst_takeover_s"]) == (1, 17.0)
    assert wrong(campaign) == ["lost: run 1", "left: process 3", "late: fault 4, kill web while queued"]


def test_faults_that_nobody_can_check_any_more_are_injected_again(tmp_path: Path) -> None:
    campaign = begun(tmp_path / "campaign.json")
    campaign.pieces.append(Piece(4, "/gone", 8201))
    campaign.injected.append(Injected(4, "kill web", "queued", hit=True))
    before = list(islice(begun(tmp_path / "other.json").upcoming(), 5))
    assert campaign.forget_piece("/gone") == 1
    assert list(islice(campaign.upcoming(), 5)) == before
    assert campaign.hit == 3


def test_a_fault_that_one_piece_could_not_have_and_another_had_is_not_called_missing(
    tmp_path: Path,
) -> None:
    campaign = begun(tmp_path / "campaign.json")
    had, missing, *_ = campaign.injected
    assert had.fault != missing.fault
    campaign.injected += [replace(each, hit=False, unable="no kernel") for each in (had, missing)]
    campaign.injected[1] = replace(missing, hit=False)
    printed = io.StringIO()
    print_table(campaign, Console(file=printed, width=200))
    (line,) = [line for line in printed.getvalue().splitlines() if "never injected here" in line]
    assert missing.fault in line
    assert had.fault not in line


def test_a_campaign_of_which_this_machine_can_have_no_fault_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaigns, "unable_here", lambda kernel: {"guests": "no kernel for them"})
    with pytest.raises(SystemExit) as ended:
        campaigns.main(only="libvirt", campaign=tmp_path / "campaign.json")
    assert ended.value.code == 2
    said = capsys.readouterr().out
    assert "without guests: no kernel for them" in said
    assert "nothing to inject" in said
