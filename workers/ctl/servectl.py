# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl serve` and `labctl sign-in`: the whole lab in a browser on one machine."""

from typing import Annotated

import typer
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from workers.ctl.options import Local, on_this_machine, out
from workers.serve import serve, sign_in_line

Port = Annotated[int, typer.Option(help="port on the loopback address")]


def say(line: str) -> None:
    """Print a line without wrapping it: a wrapped link does not work."""
    out.print(Text(line), soft_wrap=True)


def serve_pages(port: Port = 8000, is_local: Local = False) -> None:
    """Serve the pages on this machine, with a worker beside them, until interrupted."""
    on_this_machine(is_local)
    say(f"serving http://127.0.0.1:{port}/ until Ctrl-C")
    raise typer.Exit(serve(port, say=say))


def sign_in(port: Port = 8000, is_local: Local = False) -> None:
    """Print a link that signs you in, in a browser on this machine."""
    on_this_machine(is_local)
    say(sign_in_line(port))
