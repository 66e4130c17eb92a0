# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of the lab's experiments, and the moment when one is in a certain stage."""

import random
import time
from dataclasses import dataclass, replace
from typing import Literal

from django.db import connection

Stage = Literal["queued", "building", "between", "booting", "workload", "recording", "settling"]


@dataclass(frozen=True, slots=True)
class Held:
    """A claim: kind is "build" or "run"; age_s since it was taken, by the database's clock."""

    kind: str
    id: int
    token: str
    holder: str
    age_s: float
    experiment: int


@dataclass(frozen=True, slots=True)
class Scene:
    """All that goes on at one moment. Of experiments: those in each condition, by id."""

    held: tuple[Held, ...]
    untouched: tuple[int, ...]
    paused: tuple[int, ...]
    over_but_open: tuple[int, ...]

    @property
    def builds(self) -> tuple[Held, ...]:
        """Claimed builds."""
        return tuple(claim for claim in self.held if claim.kind == "build")

    @property
    def runs(self) -> tuple[Held, ...]:
        """Claimed runs."""
        return tuple(claim for claim in self.held if claim.kind == "run")


_HELD = """
SELECT 'build', b.id, b.token, b.claimed_by, extract(epoch FROM clock_timestamp() - b.started_at)::float8, 0
FROM lab_build b WHERE b.state = 'building'
UNION ALL
SELECT 'run', r.id, r.token, r.claimed_by, extract(epoch FROM clock_timestamp() - r.started_at)::float8, r.experiment_id
FROM lab_run r WHERE r.state = 'running'
"""

_OPEN = """
SELECT e.id, e.state,
       count(r.id) FILTER (WHERE r.state = 'queued'), count(r.id) FILTER (WHERE r.state = 'running'),
       EXISTS (SELECT 1 FROM lab_variant v JOIN lab_build b ON b.id = v.build_id
               WHERE v.experiment_id = e.id AND b.state IN ('queued', 'building'))
FROM lab_experiment e LEFT JOIN lab_run r ON r.experiment_id = e.id
WHERE e.state IN ('queued', 'running') GROUP BY e.id, e.state
"""


def look() -> Scene:
    """Return the current stage of each experiment."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD)
        held = tuple(Held(*row) for row in cursor.fetchall())
        cursor.execute(_OPEN)
        rows = cursor.fetchall()
    return Scene(
        held,
        tuple(pk for pk, state, *_ in rows if state == "queued"),
        tuple(pk for pk, state, queued, running, building in rows if queued and not running and not building),
        tuple(
            pk
            for pk, state, queued, running, building in rows
            if state == "running" and not (queued or running or building)
        ),
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """A stage that was waited for, and the work that is in it: None where no claim is."""

    stage: Stage
    work: Held | None


@dataclass(frozen=True, slots=True)
class Aim:
    """A stage of a boot on a host that is waited for. boot_s: how long a fake boot takes, for its age is all that shows its stage."""

    stage: Stage
    host: str
    boot_s: float


def moment_of(aim: Aim, scene: Scene, draw: random.Random) -> Moment | None:
    """Return the moment that is aimed at if it is now. "recording" and "settling" are too short to be seen and are aimed at."""
    match = _in(aim.stage, _of(scene, aim.host), aim.boot_s)
    if match is None:
        return None
    if aim.stage in {"recording", "settling"}:
        time.sleep(draw.uniform(0.0, 0.25))
    return Moment(aim.stage, match if isinstance(match, Held) else None)


def _of(scene: Scene, host: str) -> Scene:
    """With those boots alone that a host carries out."""
    ours = tuple(
        claim for claim in scene.held if claim.kind == "build" or claim.holder.startswith(f"{host}:")
    )
    return replace(scene, held=ours)


def _in(stage: Stage, scene: Scene, boot_s: float) -> Held | bool | None:
    """The claim that is in the stage, True where none has to be; None where nothing is."""
    match stage:
        case "queued":
            return True if scene.untouched else None
        case "building":
            return next(iter(scene.builds), None)
        case "between":
            return True if scene.paused else None
        case "booting":
            return _aged(scene, 0.0, 0.2 * boot_s)
        case "workload":
            return _aged(scene, 0.3 * boot_s, 0.8 * boot_s)
        case "recording":
            return _aged(scene, 0.95 * boot_s, 3600.0)
        case "settling":
            return True if scene.over_but_open else None


def _aged(scene: Scene, least_s: float, most_s: float) -> Held | None:
    return next((run for run in scene.runs if least_s <= run.age_s <= most_s), None)
