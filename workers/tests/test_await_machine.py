# SPDX-License-Identifier: GPL-2.0-or-later
"""A target's worker before it takes work."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings

import workers.app  # noqa: F401
from lab.models import Target, Worker
from workers import fleet, presence
from workers.errors import LibvirtMissing
from workloads.errors import GuestNotMade


@pytest.mark.django_db
def test_a_worker_without_libvirt_says_so_and_waits_for_it_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[object] = []
    answers = [LibvirtMissing("libvirt does not answer"), LibvirtMissing("libvirt does not answer"), None]

    def sweep() -> list[str]:
        noted.extend(Worker.objects.values_list("idle_reason", flat=True))
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return []

    Target.objects.create(name="one", driver="libvirt")
    monkeypatch.setattr("workers.fleet.local.sweep", sweep)
    monkeypatch.setattr("workers.fleet.AGAIN_S", 0.0)
    monkeypatch.setattr("workers.fleet.user_space", noted.append)
    worker = presence.Presence(("target.one",), builds=False)
    worker.say("")
    fleet.await_machine(fleet.target_post("one"), worker)
    assert noted == ["", "libvirt does not answer", "libvirt does not answer", django_settings.HOME]
    assert Worker.objects.get().idle_reason == ""


@pytest.mark.django_db
def test_a_worker_whose_target_is_not_there_yet_says_so_and_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons: list[str] = []

    def add(_seconds: float) -> None:
        reasons.extend(Worker.objects.values_list("idle_reason", flat=True))
        Target.objects.create(name="two" if len(reasons) == 2 else f"other{len(reasons)}", driver="fake")

    Target.objects.all().delete()
    monkeypatch.setattr("workers.fleet.time.sleep", add)
    monkeypatch.setattr("workers.fleet.user_space", lambda home: None)
    worker = presence.Presence(("target.two",), builds=False)
    fleet.await_machine(fleet.target_post("two"), worker)
    assert reasons == [
        'there is no target "two"; there are: none',
        'there is no target "two"; there are: other1',
    ]
    assert Worker.objects.get().idle_reason == ""


@pytest.mark.django_db
def test_a_user_space_that_cannot_be_made_keeps_no_worker_from_its_queue(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(home: object) -> None:
        raise GuestNotMade("apt-get install busybox-static")

    Target.objects.create(name="one", driver="fake")
    monkeypatch.setattr("workers.fleet.user_space", missing)
    worker = presence.Presence(("target.one",), builds=False)
    fleet.await_machine(fleet.target_post("one"), worker)
    assert "cannot be made here: apt-get install busybox-static" in caplog.text
    assert Worker.objects.get().idle_reason == ""
