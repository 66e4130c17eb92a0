# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources of the command line's defaults, and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.ctl.clients.errors import SettingsWrong
from workers.ctl.preferences import config_file, read_preferences
from workers.ctl.tokenfile import forget_token, keep_token, read_token


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without any configuration, in a git tree."""
    tree = tmp_path / "linux"
    (tree / ".git").mkdir(parents=True)
    (tree / "fs").mkdir()
    monkeypatch.chdir(tree / "fs")
    return tree


def own(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


def test_nothing_is_configured_at_first() -> None:
    preferences = read_preferences()
    assert (preferences.server, preferences.token, preferences.local, dict(preferences.defaults)) == (
        "",
        "",
        False,
        {},
    )


def test_a_trees_defaults_win_over_the_persons(somewhere: Path) -> None:
    own('server = "https://lab.example/"\n[defaults]\ntree = "debian-6.1"\nworkload = "showgids"\n')
    (somewhere / ".labctl.toml").write_text('[defaults]\nworkload = "stat-walk"\n')
    preferences = read_preferences()
    assert preferences.server == "https://lab.example"
    assert preferences.defaults == {"tree": "debian-6.1", "workload": "stat-walk"}
    assert preferences.origins["workload"].endswith(".labctl.toml")
    assert preferences.origins["tree"].endswith("config.toml")


def test_a_trees_git_replaces_the_persons_tree(somewhere: Path) -> None:
    own('[defaults]\ntree = "debian-6.1"\n')
    (somewhere / ".labctl.toml").write_text('[defaults]\ngit = "https://git.example/linux.git"\n')
    assert read_preferences().defaults == {"git": "https://git.example/linux.git"}


def test_the_environment_wins_over_files(monkeypatch: pytest.MonkeyPatch) -> None:
    own('server = "https://lab.example"\nlocal = true\n')
    assert read_preferences().local
    monkeypatch.setenv("LABCTL_SERVER", "")
    assert read_preferences().local, "an empty variable changes nothing"
    monkeypatch.setenv("LABCTL_SERVER", "https://other.example")
    preferences = read_preferences()
    assert (preferences.server, preferences.local) == ("https://other.example", False)
    monkeypatch.setenv("LABCTL_LOCAL", "1")
    assert read_preferences().local
    monkeypatch.delenv("LABCTL_SERVER")
    monkeypatch.setenv("LABCTL_LOCAL", "")
    assert read_preferences().local, "an empty variable changes nothing"


def test_a_switch_that_is_no_truth_is_refused_and_not_taken_for_off(somewhere: Path) -> None:
    own('local = "true"\n')
    with pytest.raises(SettingsWrong, match="local: 'true' is not true or false"):
        read_preferences()


@pytest.mark.parametrize("line", ['server = "https://evil.example"', 'token_file = "/tmp/x"', "local = true"])
def test_a_git_tree_cannot_choose_who_gets_the_token(line: str, somewhere: Path) -> None:
    (somewhere / ".labctl.toml").write_text(line + "\n")
    with pytest.raises(SettingsWrong, match="whose authors must not choose"):
        read_preferences()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sever = "x"', 'unknown key "sever"; did you mean "server"'),
        ('[defaults]\nworkloads = "x"', 'unknown key "workloads"; did you mean "workload"'),
        ("[defaults]\nprofile = 3", "defaults.profile: 3 is not true or false"),
        ("defaults = 3", "write \\[defaults\\]"),
        ("server = 3", "server: 3 is not text"),
        ("server", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line_with_the_way_out(text: str, said: str) -> None:
    own(text + "\n")
    with pytest.raises(SettingsWrong, match=said) as caught:
        read_preferences()
    assert str(config_file()) in str(caught.value)


def test_a_variable_that_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCTL_LOCAL", "maybe")
    with pytest.raises(SettingsWrong, match="neither 1 nor 0"):
        read_preferences()


def test_a_token_is_kept_for_one_server_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tokens.toml"
    keep_token(path, "https://a.example", "secret-a")
    keep_token(path, "https://b.example", "secret-b")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_token(path, "https://a.example") == "secret-a"
    assert read_token(path, "https://c.example") == ""
    assert forget_token(path, "https://a.example")
    assert not forget_token(path, "https://a.example")
    assert read_token(path, "https://b.example") == "secret-b"
    assert [file.name for file in path.parent.iterdir()] == ["tokens.toml"]


def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    keep_token(path, "https://a.example", "secret")
    path.chmod(0o644)
    with pytest.raises(SettingsWrong, match="chmod 600"):
        read_token(path, "https://a.example")
