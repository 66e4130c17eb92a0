# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab behind a URL, by its REST API. Imports neither Django nor anything that needs a state root."""

from __future__ import annotations

import uuid
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from workers.ctl.clients.base import Asking, Json, Kind, LogChunk, Say, Written
from workers.ctl.clients.errors import ServerStrange
from workers.ctl.clients.fetching import ACCEPTED, ServerFetch

if TYPE_CHECKING:
    # Every command imports this module, even to print its help: so not httpx.
    import httpx

    from workers.ctl.clients.http import Server

PAGE = 500
TOKEN_ID_LENGTH = 15
LOG_NAMES = {"builds": "log", "runs": "console"}


class Client:
    """The lab behind a server. Every method raises a ClientError: one line for people."""

    local = False

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def where(self) -> str:
        """Return the server's URL."""
        return self._server.url

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def document(self, path: str, params: Mapping[str, str] = MappingProxyType({})) -> Json:
        """Return a document of the REST API, for `--format json`; path: below /api/v1/."""
        return self._table(Asking("GET", path, params=params))

    def rows(
        self, path: str, params: Mapping[str, str | int] = MappingProxyType({}), limit: int | None = None
    ) -> list[Json]:
        """Return the rows of a list of the REST API, of all its pages, or the first `limit`."""
        all_rows: list[Json] = []
        size = PAGE if limit is None else min(PAGE, max(1, limit))
        asked: Mapping[str, str | int] = {**params, "page": 1, "page_size": size}
        while True:
            answer = self._read(self._server.ask(Asking("GET", path, params=asked)))
            # Some lists are too short to be paged.
            rows = answer if isinstance(answer, list) else answer.get("results")
            if not isinstance(rows, list):
                raise ServerStrange(f"{self.where} returned no list for GET {path}")
            all_rows += rows
            if isinstance(answer, list) or not answer.get("next") or not rows:
                return all_rows[:limit]
            if limit is not None and len(all_rows) >= limit:
                return all_rows[:limit]
            # The server names the next page: by its number, or in long lists by the row before it.
            asked = dict(parse_qsl(urlsplit(str(answer["next"])).query))

    def submit(self, description: Json, say: Say) -> Json:
        """Queue an experiment; returns at least {id, state, page}, page being its address for people or "".

        If the answer is lost, the request is repeated with the same key, so nothing is queued twice.
        """
        say(f"sending it to {self.where}")
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return self._submitted(Asking("POST", "experiments/", json=description, headers=headers), say)

    def preview(self, description: Json, say: Say) -> Json:
        """Return the builds, boots and detectable changes of a description; queue nothing."""
        say(f"asking {self.where}")
        answer = self._server.ask(Asking("POST", "experiments/preview/", json=description))
        if answer.status_code != ACCEPTED:
            return self._read_table(answer, "POST experiments/preview/")
        fetch = ServerFetch(self._server, say).result(self._read_table(answer, "POST experiments/preview/"))
        if not isinstance(fetch["preview"], dict):
            raise ServerStrange(f"{self.where} has finished the preview, but does not have it")
        return dict(fetch["preview"])

    def _submitted(self, asking: Asking, say: Say) -> Json:
        """The experiment that a request queues, once a worker of the lab has fetched what it needs."""
        answer = self._server.ask(asking)
        row = self._read_table(answer, f"{asking.method} {asking.path}")
        if answer.status_code != ACCEPTED:
            return row
        fetch = ServerFetch(self._server, say).result(row)
        return self.experiment(int(fetch["experiment"]))

    def experiments(self, filters: Mapping[str, str], limit: int) -> list[Json]:
        """Return the newest experiments first, filtered by state, tree, verdict, search and so on."""
        params = {key: value for key, value in filters.items() if value}
        return self.rows("experiments/", {"ordering": "-id", **params}, limit)

    def experiment(self, experiment_id: int) -> Json:
        """Return one experiment: progress, parts (its variants), verdicts' counts, exit_code (None while it is open)."""
        return self.document(f"experiments/{experiment_id}/")

    def builds(self, experiment_id: int) -> list[Json]:
        """Return the experiment's builds: id, state, problem, cached, finished_at and more."""
        return self.rows("builds/", {"experiment": experiment_id, "ordering": "id"})

    def runs(self, experiment_id: int) -> list[Json]:
        """Return the experiment's boots in their order: id, variant_name, workload, block, state, problem and more."""
        # Their numbers are in this order, too; a list that is ordered by anything else ends at some thousand rows.
        return self.rows("runs/", {"experiment": experiment_id, "ordering": "id"})

    def comparison(self, experiment_id: int, *, link: str = "") -> Json:
        """Return the comparison as lab/comparisons/shape.py has it; link: this lab's address, where it does not know its own."""
        return self.document(f"experiments/{experiment_id}/comparison/")

    def export(self, experiment_id: int, form: str, fields: Mapping[str, str]) -> bytes:
        """Return the report in a form of lab/comparisons/exports/formats.py; fields: its parameters."""
        params = {key: value for key, value in fields.items() if key != "link"}
        path = f"experiments/{experiment_id}/export/{quote(form, safe='')}/"
        return self._server.ask(Asking("GET", path, params=params)).content

    def profile(self, experiment_id: int, symbols: Sequence[str], kind: str) -> list[Json]:
        """Profiles and counters of each profiled case, as lab/profiles/exports/data.py has them."""
        params = {"symbols": ",".join(symbols), "kind": kind}
        document = self.document(f"experiments/{experiment_id}/profile/", params)
        return list(document["cases"])

    def callers(self, experiment_id: int, symbols: Sequence[str], kind: str) -> str:
        """Return the callers of symbols as text trees, as in perf report."""
        params = {"symbols": ",".join(symbols), "kind": kind}
        asking = Asking("GET", f"experiments/{experiment_id}/profile/callers/", params=params)
        return self._server.ask(asking).content.decode(errors="replace")

    def profile_file(self, experiment_id: int, form: str, params: Mapping[str, str]) -> bytes:
        """Profiles in a form of other tools; params: case, variant, base, kind."""
        path = f"experiments/{experiment_id}/profile/{quote(form, safe='')}/"
        return self._server.ask(Asking("GET", path, params=params)).content

    def cancel(self, experiment_id: int) -> None:
        """Cancel the open work of an experiment."""
        self._server.ask(Asking("POST", f"experiments/{experiment_id}/cancel/", again=False))

    def keep(self, experiment_id: int, *, kept: bool) -> None:
        """Keep an experiment's files and kernels, or leave them to the retention policy again."""
        self._server.ask(Asking("POST", f"experiments/{experiment_id}/{'keep' if kept else 'unkeep'}/"))

    def set_priority(self, experiment_id: int, priority: str) -> None:
        """Say how urgent an open experiment is: low, normal or high."""
        self._server.ask(
            Asking("POST", f"experiments/{experiment_id}/priority/", json={"priority": priority})
        )

    def rerun(self, experiment_id: int) -> Json:
        """Queue the same description again; returns as submit does.

        The server answers with the last re-run while that is not over: nothing is queued twice.
        """
        return self._submitted(Asking("POST", f"experiments/{experiment_id}/rerun/"), lambda _: None)

    def names(self, kind: Kind) -> list[Json]:
        """Return the names that a description may use: trees, targets, workloads, or switches of the catalogue."""
        if kind == "patches":
            # The catalogue's come first, then every switch that was ever submitted, which has a number.
            rows = self.rows("patches/", {}, PAGE)
            return [row for row in rows if row.get("id") is None]
        return self.rows(f"{kind}/")

    def log(self, kind: Written, number: int, offset: int) -> LogChunk:
        """Return a build's log or a run's console from a byte offset, in parts of a bounded size."""
        answer = self._server.ask(
            Asking("GET", f"{kind}/{number}/{LOG_NAMES[kind]}/", params={"offset": offset})
        )
        complete = answer.headers.get("Log-Complete", "true").lower() == "true"
        decoder = getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(answer.content, final=complete)
        # The beginning of a log that another machine writes may be gone.
        end = int(answer.headers.get("Log-Next", offset + len(answer.content)))
        # A part may end within a character, which then begins the next part.
        return LogChunk(text, end - len(decoder.getstate()[0]), complete)

    def notes(self, experiment_id: int) -> list[Json]:
        """Return the notes on an experiment, the oldest first."""
        return self.rows("notes/", {"experiment": experiment_id, "ordering": "id"})

    def write_note(self, experiment_id: int, text: str) -> Json:
        """Add a note to an experiment."""
        return self._table(
            Asking("POST", "notes/", json={"experiment": experiment_id, "text": text}, again=False)
        )

    # For a server's users; the lab in a single process has none.

    def log_in(self, name: str, password: str, wanted: Json) -> Json:
        """Return a new token for a person: {token, expiry, …}. wanted: its name, days, and scopes, if not all that the role has."""
        return self._table(Asking("POST", "login/", json=wanted, basic=(name, password), again=False))

    def end_token(self, token: str) -> None:
        """End one's own token at the server, which knows it by its beginning."""
        self._server.ask(Asking("DELETE", f"tokens/{token[:TOKEN_ID_LENGTH]}/"))

    def who(self) -> Json:
        """Return the owner of the token, with role and scopes."""
        return self.document("me/")

    def _table(self, asking: Asking) -> Json:
        return self._read_table(self._server.ask(asking), f"{asking.method} {asking.path}")

    def _read_table(self, answer: httpx.Response, asked: str) -> Json:
        read = self._read(answer)
        if not isinstance(read, dict):
            raise ServerStrange(f"{self.where} returned no object for {asked}")
        return read

    def _read(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError as exc:
            kind = answer.headers.get("content-type", "nothing")
            raise ServerStrange(
                f"{self.where} answers {kind} where JSON was expected: is it a kperflab server?"
            ) from exc
