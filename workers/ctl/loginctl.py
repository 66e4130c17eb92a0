# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl login`, `logout`, `whoami` and `config`: the server, the user, and the source of each setting."""

import getpass
import re
import socket
import sys
from typing import Annotated

import typer
from rich.text import Text

from workers.ctl.clients.base import Json
from workers.ctl.clients.choose import address, remote_client, token_for
from workers.ctl.clients.errors import ClientError, NotLetIn
from workers.ctl.options import JSON, TABLE, Format, Server, err, out, print_json, whisper
from workers.ctl.plaintext import plain_line
from workers.ctl.preferences import Preferences, config_file, read_preferences
from workers.ctl.tokenfile import forget_token, keep_token, read_token

# Traffic to these addresses stays on this machine.
_HERE = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$)")

SCOPES = ("read", "submit", "operate")
DAYS = 90


def login(
    name: Annotated[
        str, typer.Option("--user", help="your user name at the lab; prompted for if missing")
    ] = "",
    with_token: Annotated[
        bool,
        typer.Option(
            "--with-token", help="read a token from standard input instead of asking for a password"
        ),
    ] = False,
    scopes: Annotated[
        str,
        typer.Option(help=f"scopes of the token, from {', '.join(SCOPES)}; default: all that your role has"),
    ] = "",
    days: Annotated[int, typer.Option(min=1, help="days until the token expires")] = DAYS,
    server: Server = "",
) -> None:
    """Get a token from a server and store it in a file that only you can read."""
    preferences = read_preferences()
    url = address(preferences, server)
    _warn_of_plain_http(url)
    token = (
        sys.stdin.readline().strip()
        if with_token
        else _new_token(preferences, url, name, _scopes(scopes), days)
    )
    if not token:
        raise typer.BadParameter("standard input has no token")
    _check(preferences, url, token)
    keep_token(preferences.token_file, url, token)
    err.print(Text(f"stored in {preferences.token_file}, for {url} only", style="dim"), soft_wrap=True)
    if preferences.server != url:
        err.print(
            Text(f'  to use it without --server: server = "{url}" in {config_file()}', style="dim"),
            soft_wrap=True,
        )
    if preferences.token:
        err.print(Text("LABCTL_TOKEN is set and takes precedence", style="yellow"))


def logout(server: Server = "") -> None:
    """Delete the token stored for a server, and revoke it there."""
    preferences = read_preferences()
    url = address(preferences, server)
    token = read_token(preferences.token_file, url)
    if not forget_token(preferences.token_file, url):
        raise typer.BadParameter(f"no token is stored for {url}")
    try:
        with remote_client(preferences, url, whisper, token=token) as client:
            client.end_token(token)
        out.print(Text(f"the token for {url} was deleted here and revoked there"), soft_wrap=True)
    except ClientError as exc:
        err.print(
            Text(f"deleted here, but it may still be valid at {url}: {exc}", style="yellow"), soft_wrap=True
        )
    if preferences.token:
        err.print(Text("LABCTL_TOKEN is still set", style="yellow"))


def whoami(server: Server = "", form: Format = TABLE) -> None:
    """Show your name on the server, your role and your token's scopes."""
    preferences = read_preferences()
    with remote_client(preferences, server, whisper) as client:
        who = client.who()
        if form == JSON:
            print_json(who)
            return
        out.print(Text(f"{client.where}: {_identity(who)}"), soft_wrap=True)


def config(form: Format = TABLE) -> None:
    """Show the server and the defaults in force, and the file or variable that sets each."""
    preferences = read_preferences()
    rows = {
        "server": preferences.server or "none",
        "local": str(preferences.local).lower(),
        "token": "LABCTL_TOKEN"
        if preferences.token
        else "kept"
        if preferences.server and token_for(preferences, preferences.server)
        else "none",
        "token_file": str(preferences.token_file),
        **{key: str(value) for key, value in preferences.defaults.items()},
    }
    if form == JSON:
        print_json({key: {"value": rows[key], "origin": preferences.origins.get(key, "")} for key in rows})
        return
    for key, value in rows.items():
        origin = preferences.origins.get(key, "")
        line = Text(f"{key:<11} {plain_line(value)}").append(f"  {origin}" if origin else "", style="dim")
        out.print(line, soft_wrap=True)
    here = "" if config_file().exists() else " (not there)"
    err.print(Text(f"configuration: {config_file()}{here}", style="dim"), soft_wrap=True)


def _new_token(preferences: Preferences, url: str, name: str, scopes: list[str], days: int) -> str:
    name = name or typer.prompt(f"User name at {url}", default=_own_name(), err=True)
    password = getpass.getpass(f"Password of {name}: ")
    wanted: Json = {"name": f"labctl on {socket.gethostname()}"[:100], "days": days}
    wanted |= {"scopes": scopes} if scopes else {}
    with remote_client(preferences, url, whisper, token="") as client:
        try:
            return str(client.log_in(name, password, wanted)["token"])
        except NotLetIn as exc:
            raise NotLetIn(f"{url} does not know {name} with that password") from exc


def _own_name() -> str | None:
    """Return the user's name on this machine, None where it has none, as in a container without an entry in passwd."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _check(preferences: Preferences, url: str, token: str) -> None:
    """Use a token once before it is kept."""
    with remote_client(preferences, url, whisper, token=token) as client:
        out.print(Text(f"signed in to {url} as {_identity(client.who())}"), soft_wrap=True)


def _identity(who: dict[str, object]) -> str:
    name = plain_line(who.get("username") or who.get("name") or "nobody")
    scopes = who.get("scopes")
    parts = [
        plain_line(who.get("role") or ""),
        f"token for {', '.join(map(str, scopes))}" if isinstance(scopes, list) else "",
    ]
    return ", ".join([name, *filter(None, parts)])


def _scopes(text: str) -> list[str]:
    wanted = [word for word in text.replace(",", " ").split() if word]
    for word in wanted:
        if word not in SCOPES:
            from lab.validation_messages import nearest

            raise typer.BadParameter(f'--scopes: there is no scope "{word}"; {nearest(word, SCOPES)}')
    return wanted


def _warn_of_plain_http(url: str) -> None:
    if url.startswith("http://") and not _HERE.match(url):
        err.print(Text(f"{url} is not https: password and token can be read on the way", style="yellow"))
