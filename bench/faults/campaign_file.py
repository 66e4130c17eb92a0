# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign as a file: its seed, the faults that it draws from, their results so far, and each piece's account.

A piece is one lane of one call of the program, on a lab of its own. The file is replaced after every fault, so whatever ends a piece
costs the fault that was being injected; the next call checks the lab that was left behind, if it still exists, and goes on.

Lanes work side by side: each takes the lowest number of the seed's sequence that nobody has, and writes its result, under a lock.
"""

import fcntl
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

BreachKind = Literal["lost", "doubled", "illegal", "open", "failed"]


class CampaignMismatch(Exception):
    """The file is of a campaign with another seed, lease or choice of faults, or another call is at it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that should not be. failed: an experiment that the faults kept from its numbers: reported, no breach."""

    kind: BreachKind
    what: str


@dataclass(slots=True)
class Injected:
    """One fault and its result. hit: it landed. held: claims of its victims; takeover_s: until the last of them was free again.

    waited_s: for its preparation and stage; whole_s: from the strike until every program ran again.
    ended: what became of them, by state: queued (taken over), done, failed, … unable: why this machine cannot have such a fault.
    broken: a promise that this fault alone showed to be broken. home: of its lab; empty in files from before there were lanes.
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
    home: str = ""


@dataclass(slots=True)
class Piece:
    """One lane's share of a call: faults number `first` and later, on the lab under `home`. over: that lab was checked and taken down.

    hand: the numbers that it has drawn and not injected yet.
    """

    first: int
    home: str
    port: int
    lane: int = 1
    over: bool = False
    breaches: list[Breach] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    experiments: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    samples: int = 0
    quarantined: int = 0
    hand: list[int] = field(default_factory=list)


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
        return sum(injection.hit for injection in self.injected)

    @property
    def breaches(self) -> list[Breach]:
        """Return what was wrong in any piece."""
        return [breach for piece in self.pieces for breach in piece.breaches]

    @property
    def left(self) -> list[str]:
        """Return what was left behind in any piece."""
        return [line for piece in self.pieces for line in piece.left]

    def upcoming(self) -> Iterator[Injected]:
        """Yield everything that the seed draws, but what was injected or is in a lane's hand."""
        known = {injection.number for injection in self.injected}.union(
            *(piece.hand for piece in self.pieces)
        )
        for number, (name, stage) in enumerate(drawn(self.seed, self.kinds), 1):
            if number not in known:
                yield Injected(number, name, stage)

    def piece(self, home: str) -> Piece:
        """Return the piece whose lab is there."""
        return next(piece for piece in self.pieces if piece.home == home)

    def begin_piece(self, home: str, port: int, lane: int = 1) -> None:
        """Note a lab before it exists, so that the next call finds it, whatever happens."""
        self.pieces.append(Piece(next(self.upcoming()).number, home, port, lane))

    def forget_piece(self, home: str) -> int:
        """Drop a piece whose lab is gone unchecked; returns how many faults are to be injected again."""
        piece = self.piece(home)
        self.pieces.remove(piece)
        kept = [injection for injection in self.injected if not _is_of(injection, piece)]
        forgotten = len(self.injected) - len(kept)
        self.injected = kept
        return forgotten

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
            "broken": sum(bool(injection.broken) for injection in self.injected),
            "late": sum(injection.late for injection in self.injected),
            "worst_takeover_s": max(
                (injection.takeover_s or 0.0 for injection in self.injected), default=0.0
            ),
            "pieces": len(self.pieces),
            "lanes": max((piece.lane for piece in self.pieces), default=1),
            "experiments": dict(states),
            "runs": sum(piece.runs for piece in self.pieces),
            "samples": sum(piece.samples for piece in self.pieces),
            "quarantined": sum(piece.quarantined for piece in self.pieces),
        }

    def save(self) -> None:
        """Replace the file at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.injected.sort(key=lambda injected: injected.number)
        content = asdict(self) | {"sums": self.sums()}
        del content["path"]
        draft = self.path.with_name(f".{self.path.name}.new")
        with draft.open("w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)


def _is_of(injection: Injected, piece: Piece) -> bool:
    """Return whether a fault was injected in a piece; before there were lanes, pieces followed each other."""
    return injection.home == piece.home if injection.home else injection.number >= piece.first


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
    campaign = _read(path)
    _check(campaign, seed, lease_s, kinds)
    return campaign


def _read(path: Path) -> Campaign:
    try:
        content = json.loads(path.read_text())
        del content["sums"]
        content["injected"] = [Injected(**injection) for injection in content["injected"]]
        content["pieces"] = [_piece(piece) for piece in content["pieces"]]
        return Campaign(path, **content)
    except (ValueError, KeyError, TypeError) as exc:
        raise CampaignMismatch(f"{path} is no campaign's file ({exc}): name another by --campaign") from exc


@contextmanager
def changing(path: Path) -> Iterator[Campaign]:
    """The campaign of a file that exists, for a block that changes it: other lanes wait, and it is saved at the end."""
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        campaign = _read(path)
        yield campaign
        campaign.save()


@contextmanager
def alone(path: Path) -> Iterator[int]:
    """The right to carry a campaign on; what inherits the file whose number this is keeps it. Raises CampaignMismatch."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.call").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise CampaignMismatch(f"{path}: another call carries this campaign on") from exc
        yield lock.fileno()


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
    # Where a lane drew one at a time.
    content.pop("at", None)
    return Piece(**content | {"breaches": [Breach(**breach) for breach in content["breaches"]]})
