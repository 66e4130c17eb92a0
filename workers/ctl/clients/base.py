# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of a lab: what the command line asks of it, whether the lab is in this process or behind a URL.

Answers are JSON values in the shapes of the REST API, so that what prints them need not know which client it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

Json = dict[str, Any]
Say = Callable[[str], None]
Kind = Literal["trees", "targets", "workloads", "patches"]
Written = Literal["builds", "runs"]


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A log from some byte on. end: where the next part starts; complete: nothing will follow."""

    text: str
    end: int
    complete: bool


class Client(Protocol):
    """Every method raises a ClientError, or locally what the lab's services raise; all are one line for people."""

    @property
    def where(self) -> str:
        """Return the name of this lab in messages: "this machine", or the server's URL."""

    @property
    def local(self) -> bool:
        """Return whether nobody but this process will do the work."""

    def document(self, path: str, params: Mapping[str, str] = MappingProxyType({})) -> Json:
        """Return a document of the REST API, for `--format json`; path: below /api/v1/."""

    def rows(
        self, path: str, params: Mapping[str, str] = MappingProxyType({}), limit: int | None = None
    ) -> list[Json]:
        """Return the rows of a list of the REST API, of all its pages, or the first `limit`."""

    def submit(self, description: Json, say: Say) -> Json:
        """Queue an experiment; returns at least {id, state, page}, page being its address for people or ""."""

    def preview(self, description: Json, say: Say) -> Json:
        """Return the builds, boots and detectable changes of a description; queue nothing."""

    def experiments(self, filters: Mapping[str, str], limit: int) -> list[Json]:
        """The newest experiments first, filtered by state, tree, verdict, search and so on."""

    def experiment(self, experiment_id: int) -> Json:
        """One experiment: progress, parts (its variants), verdicts' counts, exit_code (None while it is open)."""

    def builds(self, experiment_id: int) -> list[Json]:
        """The experiment's builds: id, state, problem, cached, finished_at and more."""

    def runs(self, experiment_id: int) -> list[Json]:
        """The experiment's boots in their order: id, variant_name, workload, block, state, problem and more."""

    def comparison(self, experiment_id: int, *, link: str = "") -> Json:
        """The comparison as lab/comparisons/shape.py has it; link: this lab's address, where it does not know its own."""

    def export(self, experiment_id: int, form: str, wishes: Mapping[str, str]) -> bytes:
        """The report in a form of lab/comparisons/exports/formats.py; wishes: of its fields."""

    def profile(self, experiment_id: int, symbols: Sequence[str], kind: str) -> list[Json]:
        """Profiles and counters of each profiled case, as lab/profiles/exports/data.py has them."""

    def callers(self, experiment_id: int, symbols: Sequence[str], kind: str) -> str:
        """Return the callers of symbols as text trees, as in perf report."""

    def profile_file(self, experiment_id: int, form: str, wishes: Mapping[str, str]) -> bytes:
        """Profiles in a form of other tools; wishes: case, variant, base, kind."""

    def cancel(self, experiment_id: int) -> None:
        """Cancel what is open of an experiment."""

    def keep(self, experiment_id: int, *, kept: bool) -> None:
        """Keep an experiment's files and kernels, or leave them to the retention policy again."""

    def set_priority(self, experiment_id: int, priority: str) -> None:
        """Say how urgent an open experiment is: low, normal or high."""

    def rerun(self, experiment_id: int) -> Json:
        """Queue the same description again; returns as submit does."""

    def names(self, kind: Kind) -> list[Json]:
        """Return the names that a description may use: trees, targets, workloads, or switches of the catalogue."""

    def log(self, kind: Written, number: int, offset: int) -> LogChunk:
        """A build's log or a run's console from a byte offset, in parts of a bounded size."""

    def notes(self, experiment_id: int) -> list[Json]:
        """Return the notes on an experiment, the oldest first."""

    def write_note(self, experiment_id: int, text: str) -> Json:
        """Add a note to an experiment."""
