# SPDX-License-Identifier: GPL-2.0-or-later
"""A mail server on the loopback that keeps what it takes, and refuses as configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread


@dataclass(frozen=True)
class Taken:
    """One mail: its envelope, and what a mail program makes of it."""

    sender: str
    receivers: tuple[str, ...]
    mail: EmailMessage
    raw: bytes


@dataclass
class MailReceiver:
    """replies: by the verb of a command, such as "RCPT" or "." for the end of a mail, in place of saying yes.

    mute: takes connections and says nothing.
    """

    port: int
    taken: list[Taken] = field(default_factory=list)
    conversations: int = 0
    replies: Mapping[str, str] = field(default_factory=dict)
    mute: bool = False

    @property
    def url(self) -> str:
        """Return its URL as KPERFLAB_SMTP has it."""
        return f"smtp://127.0.0.1:{self.port}"


class _Server(ThreadingTCPServer):
    daemon_threads = True
    receiver: MailReceiver


class _Conversation(StreamRequestHandler):
    server: _Server
    sender = ""
    receivers: tuple[str, ...] = ()

    def handle(self) -> None:
        self.server.receiver.conversations += 1
        if self.server.receiver.mute:
            self.rfile.read()
            return
        self.say("220 ready")
        for line in self.rfile:
            verb, _, rest = line.decode().strip().partition(" ")
            verb = verb.upper()
            reply = self.server.receiver.replies.get(verb, "354 go on" if verb == "DATA" else "250 fine")
            if verb == "QUIT":
                self.say("221 bye")
                return
            self.say(reply)
            if verb == "MAIL":
                self.sender, self.receivers = rest, ()
            elif verb == "RCPT" and reply.startswith("2"):
                self.receivers += (rest.partition("<")[2].partition(">")[0],)
            elif verb == "DATA" and reply.startswith("3"):
                self.take()

    def take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        reply = self.server.receiver.replies.get(".", "250 kept")
        if reply.startswith("2"):
            raw = b"".join(lines)
            mail = message_from_bytes(raw, policy=policy.default)
            sender = self.sender.partition("<")[2].partition(">")[0]
            self.server.receiver.taken.append(Taken(sender, self.receivers, mail, raw))
        self.say(reply)

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")


@contextmanager
def receiving_mails() -> Iterator[MailReceiver]:
    """Serve until the block ends."""
    server = _Server(("127.0.0.1", 0), _Conversation)
    receiver = server.receiver = MailReceiver(server.server_address[1])
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
