# SPDX-License-Identifier: GPL-2.0-or-later
"""The behaviour of a fake target without a test's script: its access sets the duration and the end of a boot.

It serves to test a lab without machines: the service under faults, and how fast it hands out work.
"""

import json
import random
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from workers.drivers.base import BootRequest
from workers.drivers.fake import CONSOLE, Script, played
from workers.errors import (
    BootFailed,
    GuestPanicked,
    GuestSilent,
    TargetLost,
    TargetUnready,
    WorkersError,
)
from workloads.guest.pack import read_steps
from workloads.guest.plan import Step

Behaviour = Literal["finishes", "panics", "hangs", "reboots", "lost", "wrong-kernel"]
PANIC = CONSOLE + (
    "[    1.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
    "[    1.000001] Kernel panic - not syncing: Fatal exception\n"
)
# Noise between the iterations of one boot, as a share of the noise between boots.
_WITHIN = 0.2


class FakeGuest(BaseModel):
    """Target.access of a fake target.

    seconds: from hello to bye, or to the problem. behaviour: one, or several by their weights, drawn for each attempt.
    ns_per_open: what showgids finds, with `noise` as standard deviation between boots, as a share of it.
    seed: equal seeds play the same for the same run and attempt.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(default=0.0, ge=0, le=3600)
    behaviour: Mapping[Behaviour, Annotated[float, Field(ge=0)]] = Field(
        default={"finishes": 1.0}, min_length=1
    )
    ns_per_open: float = Field(default=1000.0, gt=0)
    noise: float = Field(default=0.01, ge=0, le=0.5)
    seed: int = 0

    @field_validator("behaviour", mode="before")
    @classmethod
    def _one_is_all(cls, behaviour: object) -> object:
        return {behaviour: 1.0} if isinstance(behaviour, str) else behaviour

    @field_validator("behaviour")
    @classmethod
    def _some_weight(cls, behaviour: Mapping[Behaviour, float]) -> Mapping[Behaviour, float]:
        if not sum(behaviour.values()):
            raise ValueError("no behaviour has a weight")
        return behaviour


def play(request: BootRequest) -> Script:
    """Return the script of one boot, by the target's access. Raises TargetUnready."""
    try:
        guest = FakeGuest.model_validate(request.access)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(map(str, first["loc"])) or "access"
        raise TargetUnready(f'fake target "{request.target}": {place}: {first["msg"]}') from exc
    # The directory is named after run and attempt.
    draw = random.Random(f"{guest.seed} {request.directory.name}")  # noqa: S311  a play, no secret
    behaviour = _behaviour(guest, draw)
    problem = _problem(behaviour, guest)
    return Script(
        records=tuple(record for step in read_steps(request.initrd) for record in _step(step, guest, draw)),
        problem=problem,
        boots=not isinstance(problem, BootFailed),
        release="0.0.0-another" if behaviour == "wrong-kernel" else "",
        console=PANIC if isinstance(problem, GuestPanicked | BootFailed) else CONSOLE,
        seconds=guest.seconds,
    )


def _behaviour(guest: FakeGuest, draw: random.Random) -> Behaviour:
    names = list(guest.behaviour)
    return draw.choices(names, list(guest.behaviour.values()))[0]


def _problem(behaviour: Behaviour, guest: FakeGuest) -> WorkersError | None:
    match behaviour:
        case "panics":
            return GuestPanicked("the console shows a panic: Fatal exception", PANIC)
        case "hangs":
            return GuestSilent(f"no sign of life from the guest for {guest.seconds:g} s", CONSOLE)
        case "reboots":
            return BootFailed("the guest reset or switched itself off while it booted", PANIC)
        case "lost":
            return TargetLost("the guest was ended from outside", CONSOLE)
        case _:
            return None


def _step(step: Step, guest: FakeGuest, draw: random.Random) -> tuple[tuple[str, str, bytes], ...]:
    """Return the output of a step. Raises TargetUnready for a workload that is not played."""
    if step.kind != "measure":
        return played(step.name, "")
    if not step.argv[0].endswith("/showgids"):
        raise TargetUnready(f"a fake target simulates only showgids, not {step.argv[0]}")
    arguments = dict(word.split("=", 1) for word in step.argv[1:] if "=" in word)
    boot = guest.ns_per_open * max(0.01, draw.gauss(1.0, guest.noise))
    warmup = int(arguments["warmup"])
    lines = [
        showgids_line(index, boot * max(0.01, draw.gauss(1.0, guest.noise * _WITHIN)), warmup=index < warmup)
        for index in range(warmup + int(arguments["iterations"]))
    ]
    return played(step.name, "".join(lines))


def showgids_line(index: int, ns_per_open: float, *, warmup: bool) -> str:
    """Return showgids' output for one iteration."""
    values = {
        "ns_per_open": ns_per_open,
        "opens_per_second": 1e9 / ns_per_open,
        "elapsed": ns_per_open / 1e6,
        "user": 0.01,
        "system": 0.1,
        "cpu": 180.0,
    }
    return json.dumps({"iteration": index, "warmup": warmup, "values": values}) + "\n"
