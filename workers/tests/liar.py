# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redfish BMC of our own that does what no good one does."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


@dataclass
class Liar:
    """obeys: whether it carries out what it takes. fails_after: so many looks at a machine that was turned on.

    status, body: what it answers for the machine instead. dribbles: it never ends an answer. says: the power state that it
    reports in place of On or Off, up to the next command.
    """

    on: bool = False
    obeys: bool = True
    fails_after: int = 0
    status: int = 200
    body: bytes = b""
    dribbles: bool = False
    says: str = ""

    def __enter__(self) -> Liar:
        self.boot = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
        self.looks = 0
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_exc: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the answer to a GET."""
        if path.rstrip("/") == "/redfish/v1":
            return 200, json.dumps(
                {"Id": "root", "RedfishVersion": "1.6.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}}
            ).encode()
        if path.rstrip("/") == "/redfish/v1/Systems":
            members = {"Members": [{"@odata.id": SYSTEM}], "Members@odata.count": 1, "Name": "systems"}
            return 200, json.dumps(members).encode()
        return self.status, self.body or self.machine()

    def machine(self) -> bytes:
        """The machine as it says it is."""
        if self.on and self.fails_after:
            self.looks += 1
            self.on = self.looks < self.fails_after
        actions = {"#ComputerSystem.Reset": {"target": RESET}}
        actions["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["On", "ForceOff"]  # type: ignore[assignment]
        state = self.says or ("On" if self.on else "Off")
        return json.dumps({"Id": "1", "PowerState": state, "Boot": self.boot, "Actions": actions}).encode()

    def take(self, path: str, body: dict[str, Any]) -> None:
        """Carry out a command, or only say so."""
        if not self.obeys:
            return
        if path == RESET:
            self.on, self.says = body["ResetType"] == "On", ""
        else:
            self.boot |= body.get("Boot", {})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = liar.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) if not liar.dribbles else 1 << 20))
                self.end_headers()
                while liar.dribbles and not liar.over.is_set():
                    self.wfile.write(b" ")
                    time.sleep(0.2)
                self.wfile.write(body)

            def do_POST(self) -> None:
                liar.take(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            do_PATCH = do_POST

            def log_message(self, *_args: object) -> None:
                """Nothing."""

        return Handler
