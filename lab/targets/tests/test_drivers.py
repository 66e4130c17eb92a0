# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver's declaration is all that validation and pages ask."""

from __future__ import annotations

from typing import Any

import pytest

from lab.errors import FieldRefused
from lab.models import User
from lab.submission.shipped_figures import boot_deviation, boot_seconds
from lab.targets import drivers
from lab.targets.changes import TargetFields, add_target
from lab.targets.drivers import DRIVERS, DriverKind, is_guest
from lab.tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def qemu_raw(monkeypatch: pytest.MonkeyPatch) -> DriverKind:
    """A fourth driver, declared and nothing more."""
    kind = DriverKind("qemu-raw", "qemu-raw: a guest without libvirt", guest=True, estimated=False)
    monkeypatch.setitem(DRIVERS, kind.name, kind)
    return kind


def test_a_declared_driver_is_accepted_and_its_abilities_hold(qemu_raw: DriverKind) -> None:
    operator = make_user("olga", User.Role.OPERATOR)
    target = add_target(by=operator, wanted=TargetFields("box", driver=qemu_raw.name))
    assert is_guest(target.driver)
    assert boot_seconds(target, "wall") is None
    assert boot_deviation("showgids", target) is None
    with pytest.raises(FieldRefused, match="needs none"):
        add_target(by=operator, wanted=TargetFields("b2", driver=qemu_raw.name, access={"mac": "x"}))


def test_a_driver_that_is_not_declared_is_refused_with_the_nearest_name() -> None:
    operator = make_user("olga", User.Role.OPERATOR)
    with pytest.raises(FieldRefused, match="libvirt"):
        add_target(by=operator, wanted=TargetFields("box", driver="libvrit"))
    assert not is_guest("libvrit")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("libvirt", (True, "none", True, True)),
        ("metal", (False, "machine", False, False)),
        ("fake", (False, "object", True, True)),
    ],
)
def test_the_drivers_are_what_the_documents_say(name: str, wanted: tuple[Any, ...]) -> None:
    kind = DRIVERS[name]
    assert (kind.guest, kind.access, kind.sized, kind.estimated) == wanted
    assert (name in drivers.MACHINES) == (kind.access == "machine")
