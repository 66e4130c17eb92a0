# SPDX-License-Identifier: GPL-2.0-or-later
"""From boot to boot by kexec in the tables: who is offered what, once, and under whose token."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.errors import NetbootClosed
from lab.models import Netboot, Target
from lab.targets.netboot.boots import Opening, close_netboot, left_on, netboot_progress, open_netboot
from lab.targets.netboot.machine import file_of, keep_piece
from lab.targets.netboot.next_boot import Following, is_left_waiting, leave_waiting, next_boot, waiting_boot
from lab.targets.tests.asking import ask

pytestmark = pytest.mark.django_db

MAC = "52:54:00:6b:70:01"


@pytest.fixture
def metal() -> Target:
    return Target.objects.create(name="metal-1", driver="metal", access={"mac": MAC})


def opened(follows: int | None = None, target: str = "metal-1") -> int:
    """A boot; one by kexec where it follows another."""
    sums = ("1" * 64, "2" * 64) if follows else ("", "")
    return open_netboot(Opening(target, "a" * 64, "runs/1-1/initrd", "quiet", 600, follows, *sums))


@pytest.fixture
def waiting(metal: Target) -> tuple[int, str]:
    """A boot that went well, whose machine asked for what follows; and its token."""
    boot = opened()
    handout = ask(MAC, "10.0.2.15")
    assert handout is not None
    keep_piece(handout.token, "records", 0, b"all of it")
    leave_waiting(boot, 300)
    assert next_boot(handout.token, "10.0.2.15") is None
    return boot, handout.token


def followed(token: str) -> Following:
    following = next_boot(token, "10.0.2.15")
    assert following is not None
    return following


def test_a_machine_that_waits_is_handed_what_follows_with_tokens_of_its_own(
    waiting: tuple[int, str], settings: Any, tmp_path: Path
) -> None:
    settings.HOME = tmp_path
    (tmp_path / "runs/1-1").mkdir(parents=True)
    (tmp_path / "runs/1-1/initrd").write_bytes(b"the initrd")
    boot, token = waiting
    after = opened(follows=boot)
    following = followed(token)
    assert (following.handout.boot_id, following.kernel_sha256, following.initrd_sha256) == (
        after,
        "1" * 64,
        "2" * 64,
    )
    assert following.handout.token != token
    assert file_of(following.handout.files_token, "initrd").read(0, 100) == b"the initrd"
    assert keep_piece(following.handout.token, "records", 0, b"hello")
    assert Netboot.objects.get(pk=after).way == "kexec"
    assert netboot_progress(after).fetched_from == "10.0.2.15"


def test_a_target_with_an_address_is_offered_what_follows_there_alone(waiting: tuple[int, str]) -> None:
    """The kernel under test knows the token, and may have told it to others."""
    boot, token = waiting
    Target.objects.update(access={"mac": MAC, "address": "10.0.2.15"})
    after = opened(follows=boot)
    with pytest.raises(NetbootClosed):
        next_boot(token, "10.0.2.66")
    assert followed(token).handout.boot_id == after


def test_the_token_before_ends_with_the_answer(waiting: tuple[int, str]) -> None:
    boot, token = waiting
    after = opened(follows=boot)
    followed(token)
    with pytest.raises(NetbootClosed):
        next_boot(token, "10.0.2.15")
    with pytest.raises(NetbootClosed):
        keep_piece(token, "console", 0, b"late")
    assert list(Netboot.objects.filter(closed_at=None).values_list("pk", flat=True)) == [after]


def test_the_boot_before_goes_on_until_what_follows_was_handed_out(waiting: tuple[int, str]) -> None:
    boot, token = waiting
    opened(follows=boot)
    assert Netboot.objects.get(pk=boot).closed_at is None
    assert keep_piece(token, "console", 0, b"not yet over")


def test_what_was_handed_out_once_is_not_handed_out_again(waiting: tuple[int, str]) -> None:
    boot, token = waiting
    after = opened(follows=boot)
    Netboot.objects.filter(pk=after).update(fetches=1)
    assert next_boot(token, "10.0.2.15") is None


@pytest.mark.parametrize("token", ["", "x", "a" * 64, "\0", "1." + "0" * 64, "9" * 5000])
def test_a_token_that_is_none_learns_nothing(waiting: tuple[int, str], token: str) -> None:
    opened(follows=waiting[0])
    with pytest.raises(NetbootClosed):
        next_boot(token, "")


def test_a_token_of_files_is_not_one_to_ask_with(metal: Target) -> None:
    opened()
    handout = ask(MAC, "")
    assert handout is not None
    with pytest.raises(NetbootClosed):
        next_boot(handout.files_token, "")


def test_a_machine_gets_nothing_that_was_offered_to_another(waiting: tuple[int, str]) -> None:
    boot, token = waiting
    Target.objects.create(name="metal-2", driver="metal", access={"mac": "52:54:00:6b:70:02"})
    opened(follows=boot, target="metal-2")
    assert next_boot(token, "10.0.2.15") is None


def test_a_boot_by_kexec_is_nothing_that_firmware_gets(waiting: tuple[int, str]) -> None:
    """A machine whose firmware asks has left the kernel that was to start it."""
    boot, token = waiting
    after = opened(follows=boot)
    assert ask(MAC, "10.0.2.15") is None
    assert netboot_progress(after).fetches == 2
    assert next_boot(token, "10.0.2.15") is None


def test_an_offer_that_is_over_is_not_handed_out(waiting: tuple[int, str]) -> None:
    boot, token = waiting
    close_netboot(opened(follows=boot))
    assert next_boot(token, "10.0.2.15") is None


def test_another_boot_by_power_ends_the_waiting(waiting: tuple[int, str]) -> None:
    opened()
    assert waiting_boot("metal-1") is None
    with pytest.raises(NetbootClosed):
        next_boot(waiting[1], "10.0.2.15")


def test_a_machine_waits_only_after_a_boot_that_went_well_and_once_it_asked(metal: Target) -> None:
    boot = opened()
    handout = ask(MAC, "10.0.2.15")
    assert handout is not None
    assert next_boot(handout.token, "10.0.2.15") is None
    assert (is_left_waiting("metal-1"), waiting_boot("metal-1")) == (False, None)
    leave_waiting(boot, 300)
    assert (is_left_waiting("metal-1"), waiting_boot("metal-1")) == (True, boot)
    Netboot.objects.update(asked_at=None)
    assert (is_left_waiting("metal-1"), waiting_boot("metal-1")) == (True, None)


@pytest.mark.parametrize(
    "changed",
    [
        {"asked_at": timezone.now() - timedelta(seconds=60)},
        {"fetches": 2},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_machine_that_fell_silent_or_started_again_does_not_wait(
    waiting: tuple[int, str], changed: dict[str, Any]
) -> None:
    assert waiting_boot("metal-1") == waiting[0]
    Netboot.objects.update(**changed)
    assert waiting_boot("metal-1") is None


def test_a_machine_that_waited_in_vain_is_sent_away_and_turned_off_like_one_left_on(
    waiting: tuple[int, str],
) -> None:
    boot, token = waiting
    assert left_on() == []
    leave_waiting(boot, -1)
    with pytest.raises(NetbootClosed):
        next_boot(token, "10.0.2.15")
    assert [netboot.id for netboot in left_on()] == [boot]
