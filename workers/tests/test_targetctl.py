# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl target`: an operator's day with one machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from lab.models import Target
from workers import labctl

pytestmark = pytest.mark.django_db

MACHINE = """
driver = "metal"
vcpus = 64
memory_mib = 131072
[access]
mac = "52:54:00:ab:cd:ef"
[access.power]
kind = "redfish"
address = "http://127.0.0.1:1"
user = "root"
password_file = "{secret}"
verify = false
[tuning]
governor = "performance"
"""

Ctl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["labctl", "target", *words])
        with pytest.raises(SystemExit) as ended:
            labctl.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def file(tmp_path: Path) -> str:
    secret = tmp_path / "secret"
    secret.write_text("open-sesame\n")
    path = tmp_path / "machine.toml"
    path.write_text(MACHINE.format(secret=secret))
    return str(path)


@pytest.mark.process
def test_a_machine_is_taken_in_tuned_switched_and_forgotten(ctl: Ctl, file: str) -> None:
    code, said, _ = ctl("add", "box", file, "--group", "rack", "--tune", "smt=false")
    assert code == 0
    assert "test it with: labctl target power box status" in said
    row = Target.objects.get(name="box")
    assert (row.group, row.tuning) == ("rack", {"governor": "performance", "smt": False})
    ctl("set", "box", "--tune", "smt=", "--tune", "isolcpus=1-3", "--group", "-")
    row.refresh_from_db()
    assert (row.group, row.tuning) == ("", {"governor": "performance", "isolcpus": "1-3"})
    shown = ctl("show", "box")[1]
    assert '"isolcpus": "1-3"' in shown
    assert "open-sesame" not in shown
    ctl("disable", "box")
    assert "disabled" in ctl("list")[1]
    ctl("enable", "box")
    code, _, said = ctl("power", "box", "on")
    assert (code, "does not answer" in said, "open-sesame" in said) == (3, True, False)
    assert ctl("remove", "box")[1] == "box is forgotten\n"


def test_a_file_with_another_name_than_the_command_adds_nothing(ctl: Ctl, file: str) -> None:
    Path(file).write_text('name = "other"\n' + Path(file).read_text())
    code, _, said = ctl("add", "box", file)
    assert code == 64
    assert 'name is "other", the command adds "box"' in " ".join(said.split())
    assert not Target.objects.filter(name__in=("box", "other")).exists()
    assert ctl("add", "other", file)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "guest"), "nothing to change"),
        (("set", "guest", "--tune", "govenor=x"), 'did you mean "governor"?'),
        (("set", "guest", "--tune", "governor"), "write KEY=VALUE"),
        (("power", "guest", "on"), "only metal has a BMC"),
        (("power", "guest", "onn"), 'did you mean "on"?'),
        (("show", "gest"), 'did you mean "guest"?'),
        (("add", "new", "/nowhere"), 'cannot read "/nowhere"'),
        (("add", "guest"), 'there is a target "guest" already'),
    ],
)
def test_a_wrong_call_is_told_in_a_line(ctl: Ctl, words: tuple[str, ...], said: str) -> None:
    code, out, err = ctl(*words)
    assert (code, out) == (64, "")
    assert said in " ".join(err.split())


def test_a_quarantine_is_ended_with_its_reason_told(ctl: Ctl) -> None:
    Target.objects.filter(name="guest").update(
        quarantined_at=timezone.now(),
        quarantine_reason="3 faults of the lab in a row, the last: no disk",
        faults=3,
    )
    assert "in quarantine since" in ctl("list")[1]
    assert "the last: no disk" in " ".join(ctl("release", "guest")[1].split())
    assert Target.objects.get(name="guest").quarantined_at is None


def test_a_file_with_a_remark_is_taken_and_one_with_a_number_for_a_text_is_refused(
    ctl: Ctl, tmp_path: Path
) -> None:
    path = tmp_path / "guest.toml"
    path.write_text('remark = "rack 4"\n')
    assert ctl("set", "guest", str(path))[0] == 0
    assert "remark: rack 4" in ctl("show", "guest")[1]
    for line in ("remark = 4", "group = 4", "driver = 4"):
        path.write_text(line)
        code, _, err = ctl("set", "guest", str(path))
        assert (code, "must be text, not 4" in err) == (64, True), line
