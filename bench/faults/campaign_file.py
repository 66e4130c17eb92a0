# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign as a file: its seed, the faults that it draws from, what came of each so far, and each piece's account.

A piece is one call of the program, on a lab of its own. The file is replaced after every fault, so whatever ends a piece costs the
fault that was being injected; the next call checks the lab that was left behind, if it still exists, and goes on.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

BreachKind = Literal["lost", "doubled", "illegal", "open", "failed"]


class CampaignMismatch(Exception):
    """The file is of a campaign with another seed, lease or choice of faults."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that should not be. failed: an experiment that the faults kept from its numbers: reported, no breach."""

    kind: BreachKind
    what: str


@dataclass(slots=True)
class Injected:
    """One fault and what came of it. hit: it landed. held: claims of its victims; takeover_s: until the last of them was free again.

    waited_s: for its preparation and stage; whole_s: from the strike until every program ran again.
    ended: what became of them, by state: queued (taken over), done, failed, … unable: why this machine cannot have such a fault.
    broken: a promise that this fault alone showed to be broken.
    """

    number: int
    fault: str
    stage: str
    hit: bool = False
    held: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    takeover_s: float | None = None
    waited_s: float = 0.0
    whole_s: float = 0.0
    late: bool = False
    unable: str = ""
    broken: str = ""


@dataclass(slots=True)
class Piece:
    """One call's share: faults number `first` and later, on the lab under `home`. over: that lab was checked and taken down."""

    first: int
    home: str
    port: int
    over: bool = False
    breaches: list[Breach] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    experiments: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    samples: int = 0
    quarantined: int = 0


@dataclass(slots=True)
class Campaign:
    """All pieces so far. kinds: the stages of each fault, from which the seed draws; kept, for a later version may know more."""

    path: Path
    seed: int
    lease_s: float
    kinds: dict[str, list[str]]
    injected: list[Injected] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    @property
    def hit(self) -> int:
        """Return how many faults landed."""
        return sum(one.hit for one in self.injected)

    @property
    def breaches(self) -> list[Breach]:
        """Return what was wrong in any piece."""
        return [breach for piece in self.pieces for breach in piece.breaches]

    @property
    def left(self) -> list[str]:
        """Return what was left behind in any piece."""
        return [line for piece in self.pieces for line in piece.left]

    def upcoming(self) -> Iterator[tuple[str, str]]:
        """Yield fault and stage of everything that the seed draws after what was injected."""
        return islice(drawn(self.seed, self.kinds), len(self.injected), None)

    def sums(self) -> dict[str, Any]:
        """Return the account over all pieces, as the file and the last line of the program state it."""
        kinds = Counter[str](breach.kind for breach in self.breaches)
        states: Counter[str] = Counter()
        for piece in self.pieces:
            states.update(piece.experiments)
        return {
            "injected": len(self.injected),
            "hit": self.hit,
            **{kind: kinds[kind] for kind in ("lost", "doubled", "illegal", "open", "failed")},
            "left": len(self.left),
            "broken": sum(bool(one.broken) for one in self.injected),
            "late": sum(one.late for one in self.injected),
            "worst_takeover_s": max((one.takeover_s or 0.0 for one in self.injected), default=0.0),
            "pieces": len(self.pieces),
            "experiments": dict(states),
            "runs": sum(piece.runs for piece in self.pieces),
            "samples": sum(piece.samples for piece in self.pieces),
            "quarantined": sum(piece.quarantined for piece in self.pieces),
        }

    def save(self) -> None:
        """Replace the file at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(self) | {"sums": self.sums()}
        del content["path"]
        draft = self.path.with_name(f".{self.path.name}.new")
        with draft.open("w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def forget_piece(self) -> int:
        """Drop the last piece, whose lab is gone unchecked; returns how many faults are to be injected again."""
        piece = self.pieces.pop()
        forgotten = [one for one in self.injected if one.number >= piece.first]
        self.injected = self.injected[: piece.first - 1]
        return len(forgotten)


def drawn(seed: int, kinds: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield every fault at every stage of its own, shuffled, again and again."""
    draw = random.Random(seed)
    every = [(name, stage) for name, stages in kinds.items() for stage in stages]
    while True:
        draw.shuffle(every)
        yield from every


def open_campaign(path: Path, seed: int, lease_s: float, kinds: Mapping[str, list[str]]) -> Campaign:
    """Read the campaign of a file, or begin one. Raises CampaignMismatch where the file is of another.

    kinds: the faults to draw from; a file that exists keeps its own, but each must be among these.
    """
    if not path.exists():
        return Campaign(path, seed, lease_s, {name: list(stages) for name, stages in kinds.items()})
    try:
        content = json.loads(path.read_text())
        del content["sums"]
        content["injected"] = [Injected(**one) for one in content["injected"]]
        content["pieces"] = [_piece(one) for one in content["pieces"]]
        campaign = Campaign(path, **content)
    except (ValueError, KeyError, TypeError) as exc:
        raise CampaignMismatch(f"{path} is no campaign's file ({exc}): name another by --campaign") from exc
    _check(campaign, seed, lease_s, kinds)
    return campaign


def _check(campaign: Campaign, seed: int, lease_s: float, kinds: Mapping[str, list[str]]) -> None:
    way_out = "begin another file by --campaign"
    if (campaign.seed, campaign.lease_s) != (seed, lease_s):
        raise CampaignMismatch(
            f"{campaign.path} is of seed {campaign.seed} and lease {campaign.lease_s:g} s, "
            f"not {seed} and {lease_s:g} s: {way_out}"
        )
    if unknown := sorted(campaign.kinds.keys() - kinds.keys()):
        raise CampaignMismatch(f'{campaign.path} draws "{unknown[0]}", which is not chosen here: {way_out}')


def _piece(content: dict[str, Any]) -> Piece:
    return Piece(**content | {"breaches": [Breach(**one) for one in content["breaches"]]})
