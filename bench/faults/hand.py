# SPDX-License-Identifier: GPL-2.0-or-later
"""The faults that a lane has drawn and not injected yet: the one whose stage comes first is injected first.

So a lab is not looked at for the one moment that the next fault of the sequence needs while it passes those of others by.
"""

import os
import random
import time
from dataclasses import dataclass, field

from bench.faults.campaign_file import Injected
from bench.faults.faults import PREPARATIONS
from bench.faults.guests import GuestLoad
from bench.faults.kinds import KINDS
from bench.faults.lab import Lab
from bench.faults.load import Load
from bench.faults.patience import patiently
from bench.faults.stages import Aim, Moment, Scene, Stage, look, moment_of

# So many that each stage is soon wanted by one of them.
SIZE = 8
# Experiments open at a time, so that something is always in any stage; how often what is missing of them is submitted.
OPEN, FEED_S = 3, 1.0
# While one waits, others are injected, so this costs nothing; on a busy machine an experiment takes a minute to its next stage.
PATIENCE_S = 300.0
_POLL_S = 0.03


@dataclass(frozen=True, slots=True)
class Loads:
    """The work that keeps the lab busy: fake targets, and real guests where there are any."""

    fakes: Load
    guests: GuestLoad | None


@dataclass(slots=True)
class Hand:
    """The faults of one lane, oldest first."""

    lab: Lab
    loads: Loads
    held: list[Injected] = field(default_factory=list)

    @property
    def alone(self) -> Injected | None:
        """Return the oldest where it needs a preparation that nothing else may happen beside."""
        return self.held[0] if self.held and self.held[0].fault in PREPARATIONS else None

    def ready(self) -> list[Injected]:
        """Return those that need no preparation."""
        return [claim for claim in self.held if claim.fault not in PREPARATIONS]

    def draw(self, injection: Injected) -> random.Random:
        """Return what a fault draws from: the same wherever and whenever it is injected."""
        return random.Random(f"{self.lab.setup.seed} {injection.number}")

    def first(self, ones: list[Injected]) -> tuple[Injected, Moment | None]:
        """Return the first of these whose stage comes, with that moment; one that has waited for too long has none."""
        fed, last = 0.0, time.monotonic()
        while True:
            now = time.monotonic()
            for injection in ones:
                injection.waited_s = round(injection.waited_s + now - last, 2)
            last = now
            if now > fed + FEED_S:
                patiently(lambda: self._feed(ones))
                fed = now
            scene = patiently(look)
            for injection in ones:
                if (moment := self._moment(injection, scene)) is not None:
                    return injection, moment
            for injection in ones:
                if injection.waited_s > PATIENCE_S:
                    return injection, None
            time.sleep(_POLL_S)

    def _feed(self, ones: list[Injected]) -> None:
        self.loads.fakes.keep_going(OPEN)
        if self.loads.guests and any(_of_guests(injection) for injection in ones):
            self.loads.guests.keep_going()

    def _moment(self, injection: Injected, scene: Scene) -> Moment | None:
        stage: Stage = injection.stage  # type: ignore[assignment]
        guests = self.loads.guests
        if _of_guests(injection) and guests is not None:
            return patiently(lambda: guests.moment(stage, scene))
        far = self.lab.far
        # What is done to the far host waits for a boot there.
        host = far.wire.name if far and KINDS[injection.fault].where == "far" else os.uname().nodename
        return moment_of(Aim(stage, host, self.lab.setup.boot_s), scene, self.draw(injection))


def _of_guests(injection: Injected) -> bool:
    return KINDS[injection.fault].where == "guests"
