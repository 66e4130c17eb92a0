# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks by a submitter who names a git repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.tests.serving import Inside, internal_server, redirecting, served
from kernels.trees import address
from kernels.trees.tree import open_tree, resolve
from lab.errors import FieldRefused, SubmissionRejected
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment, Standing, Tree, User
from lab.standing.new_revisions import look
from lab.submission import sources as intake
from lab.submission.received_series import BranchRequest, receive_branch
from lab.submission.rerun import hand_over_rerun
from lab.submission.submit import submit_experiment
from lab.tests.factories import make_user
from lab.tests.fetchers import fetch_all
from lab.tests.tiny_tree import git, make_tiny_tree

pytestmark = [pytest.mark.django_db, pytest.mark.hostile, pytest.mark.process]
CASES = [{"workload": "showgids", "preset": "smoke"}]


@pytest.fixture
def inside() -> Iterator[Inside]:
    with internal_server() as server:
        yield server


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_tiny_tree(tmp_path / "srv" / "victim")


@pytest.fixture
def attacker(tmp_path: Path) -> Path:
    """A repository with the same names and a backdoor."""
    work = make_tiny_tree(tmp_path / "srv" / "attacker")
    (work / "fs" / "inode.c").write_text("/* BACKDOOR */\n")
    git(work, "commit", "-q", "-a", "-m", "evil")
    git(work, "tag", "-f", "v6.1")
    return work


@pytest.fixture
def alice() -> User:
    return make_user("alice", User.Role.SUBMITTER)


@pytest.fixture
def mallory() -> User:
    return make_user("mallory", User.Role.SUBMITTER)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def described(**fields: Any) -> ExperimentSpec:
    return spec_from_mapping({"name": "x", "cases": CASES, "measure": {"boots": 3}, "base": "v6.1"} | fields)


Way = Callable[[str, User, Path], object]


def by_submission(location: str, by: User, home: Path) -> object:
    return submit_experiment(spec=described(git=location), by=by, home=home)


def by_branch(location: str, by: User, home: Path) -> object:
    return receive_branch(asked=BranchRequest(name="main", location="", git=location), by=by, home=home)


def by_look(location: str, by: User, home: Path) -> object:
    tree = Tree.objects.create(name="theirs", kind="git", location=location)
    spec = described(git=location, base="").model_dump(mode="json")
    row = Standing.objects.create(
        name="nightly", spec=spec, tree=tree, branch="main", owner=by, secret="s" * 32
    )
    looked = look(standing_id=row.pk, home=home)
    assert looked is not None
    raise SubmissionRejected(looked.problem)


WAYS: dict[str, Way] = {"submission": by_submission, "branch": by_branch, "look": by_look}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_leads_nowhere(
    way: str, status: int, inside: Inside, mallory: User, home: Path, settings: Any
) -> None:
    settings.PRIVATE_ADDRESSES = True  # stands for two public servers
    with redirecting(inside.url, status) as url, pytest.raises((SubmissionRejected, FieldRefused)) as refused:
        WAYS[way](f"{url}/linux.git", mallory, home)
    assert "redirects to another address: give that address instead" in str(refused.value)
    assert inside.asked == []
    assert Experiment.objects.count() == 0


@pytest.mark.parametrize("way", ["submission", "branch"])
def test_a_name_that_points_inside_when_it_is_fetched_is_refused_then(
    way: str, inside: Inside, mallory: User, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description is checked with the first answer, and the fetch with the second."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    monkeypatch.setattr(address, "_addresses", lambda host, port: next(answers))
    where = f"http://rebinding.invalid:{inside.url.rpartition(':')[2]}/linux.git"
    with pytest.raises(
        (SubmissionRejected, FieldRefused), match=r"rebinding\.invalid is an address of a closed network"
    ):
        WAYS[way](where, mallory, home)
    assert inside.asked == []


@pytest.mark.parametrize("asked", [{"git": True}, {"tree": True}])
def test_a_registered_tree_is_looked_up_each_time(
    asked: dict[str, bool], inside: Inside, alice: User, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"{inside.url}/linux.git"
    Tree.objects.create(name="once-public", kind="git", location=where)
    fields = {"git": where} if "git" in asked else {"tree": "once-public"}
    with pytest.raises(SubmissionRejected, match="an address of a closed network"):
        submit_experiment(spec=described(**fields), by=alice, home=home)
    assert inside.asked == []


def test_a_look_asks_no_name_that_points_inside_now(inside: Inside, mallory: User, home: Path) -> None:
    with pytest.raises(SubmissionRejected, match="an address of a closed network"):
        by_look(f"{inside.url}/linux.git", mallory, home)
    assert inside.asked == []


@pytest.mark.parametrize(
    "location", ["/etc", "ssh://git@127.0.0.1/x", "git@127.0.0.1:x", "file:///etc", "ext::sh -c x"]
)
@pytest.mark.parametrize("way", ["submission", "branch"])
def test_a_submitter_names_no_place_of_the_machine(
    way: str, location: str, mallory: User, home: Path
) -> None:
    with pytest.raises((SubmissionRejected, FieldRefused)):
        WAYS[way](location, mallory, home)
    assert not (home / "trees").exists()


class TestTakeover:
    def test_a_name_that_two_places_share_stays_the_first_ones(
        self,
        victim: Path,
        attacker: Path,
        alice: User,
        mallory: User,
        home: Path,
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """As if both locations had the same hash: row, tags and branches are the first one's."""
        settings.PRIVATE_ADDRESSES = True
        monkeypatch.setattr(intake, "location_name", lambda _: "linux-collision")
        with served(victim.parent) as url:
            first = submit_experiment(spec=described(git=f"{url}/victim/.git"), by=alice, home=home)
            before = resolve(open_tree("linux-collision", home / "trees"), "v6.1")
            with pytest.raises(
                SubmissionRejected, match=r"the tree linux-collision is .*victim/\.git, not .*attacker"
            ):
                submit_experiment(spec=described(git=f"{url}/attacker/.git"), by=mallory, home=home)
            assert Tree.objects.get().location == f"{url}/victim/.git"
            assert resolve(open_tree("linux-collision", home / "trees"), "v6.1") == before
            again = submit_experiment(spec=described(tree="linux-collision"), by=alice, home=home)
        assert again.base_commit == first.base_commit == before.commit

    def test_a_row_is_not_rewritten_where_another_machine_has_the_repository(
        self, victim: Path, alice: User, home: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Here there is no repository yet that could refuse; the row does."""
        settings.LOCAL_PATHS = True
        monkeypatch.setattr(intake, "location_name", lambda _: "linux-collision")
        Tree.objects.create(
            name="linux-collision", kind="git", location="https://elsewhere.example/linux.git"
        )
        with pytest.raises(
            SubmissionRejected, match=r"stands for the tree at https://elsewhere\.example/linux\.git already"
        ):
            submit_experiment(spec=described(git=str(victim)), by=alice, home=home)
        assert Tree.objects.get().location == "https://elsewhere.example/linux.git"
        assert Experiment.objects.count() == 0

    def test_two_submitters_of_one_location_share_its_tree(
        self, victim: Path, alice: User, mallory: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        rows = [
            submit_experiment(spec=described(git=str(victim)), by=by, home=home) for by in (alice, mallory)
        ]
        assert rows[0].tree == rows[1].tree
        assert len(rows[0].tree.name.rpartition("-")[2]) == 64

    def test_a_tree_that_was_registered_under_a_short_name_keeps_it(
        self, victim: Path, alice: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        Tree.objects.create(name="victim-1234abcd", kind="git", location=str(victim))
        row = submit_experiment(spec=described(git=str(victim)), by=alice, home=home)
        assert row.tree.name == "victim-1234abcd"


def rerun(first: Experiment, by: User, home: Path) -> Experiment:
    """Run an experiment again as a worker does; return the new one."""
    row = hand_over_rerun(experiment_id=first.pk, by=by)
    fetch_all(home)
    row.refresh_from_db()
    assert row.experiment is not None, row.problem
    return row.experiment


class TestPinned:
    def moved(self, victim: Path) -> str:
        """Let the branch main move; return where it was."""
        was = git(victim, "rev-parse", "main").strip()
        (victim / "fs" / "inode.c").write_text("/* BACKDOOR */\n")
        git(victim, "commit", "-q", "-a", "-m", "later")
        return was

    def test_a_rerun_stands_on_the_commit_of_the_first(
        self, victim: Path, alice: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        first = submit_experiment(spec=described(git=str(victim), base="main"), by=alice, home=home)
        was = self.moved(victim)
        Experiment.objects.filter(pk=first.pk).update(state="done")
        again = rerun(first, alice, home)
        assert again.pk != first.pk
        assert (again.base_commit, again.base_name) == (was, "main")
        assert git(victim, "rev-parse", "main").strip() != was

    def test_a_rerun_stands_on_a_commit_that_its_branch_has_lost(
        self, victim: Path, alice: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        (victim / "fs" / "inode.c").write_text("/* soon gone */\n")
        git(victim, "commit", "-q", "-a", "-m", "soon gone")
        first = submit_experiment(spec=described(git=str(victim), base="main"), by=alice, home=home)
        git(victim, "reset", "-q", "--hard", "HEAD~1")
        Experiment.objects.filter(pk=first.pk).update(state="done")
        again = rerun(first, alice, home)
        assert again.base_commit == first.base_commit

    def test_a_clone_with_another_base_is_resolved_anew(
        self, victim: Path, alice: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        first = submit_experiment(spec=described(git=str(victim), base="main"), by=alice, home=home)
        self.moved(victim)
        spec = described(git=str(victim), base="refs/heads/main")
        newest = submit_experiment(spec=spec, by=alice, origin=first, home=home)
        assert newest.base_commit == git(victim, "rev-parse", "main").strip()

    def test_a_tree_elsewhere_takes_no_commit_of_the_original(
        self, victim: Path, attacker: Path, alice: User, home: Path, settings: Any
    ) -> None:
        settings.LOCAL_PATHS = True
        first = submit_experiment(spec=described(git=str(victim)), by=alice, home=home)
        other = submit_experiment(spec=described(git=str(attacker)), by=alice, origin=first, home=home)
        assert other.base_commit == git(attacker, "rev-parse", "v6.1^{commit}").strip()
