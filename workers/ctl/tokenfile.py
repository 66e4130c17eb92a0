# SPDX-License-Identifier: GPL-2.0-or-later
"""Tokens of `labctl login`, one for each server, in a TOML file that only its owner can read."""

import os
import tomllib
from pathlib import Path

from workers.ctl.clients.errors import SettingsWrong

MODE = 0o600


def read_token(path: Path, server: str) -> str:
    """Return the token kept for a server, empty if there is none. Raises SettingsWrong, also if others may read it."""
    return _read(path).get(server, "")


def keep_token(path: Path, server: str, token: str) -> None:
    """Keep a server's token, in place of the one before. Raises SettingsWrong."""
    _write(path, {**_read(path), server: token})


def forget_token(path: Path, server: str) -> bool:
    """Remove a server's token; False if there was none. Raises SettingsWrong."""
    kept = _read(path)
    if server not in kept:
        return False
    _write(path, {name: token for name, token in kept.items() if name != server})
    return True


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            if mode & 0o077:
                raise SettingsWrong(f"{path} can be read by others (mode {mode:03o}): chmod 600 {path}")
            table = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise SettingsWrong(f'cannot read "{path}": {exc.strerror}') from exc
    except (ValueError, RecursionError) as exc:
        raise SettingsWrong(f"{path} is not valid TOML; remove it and log in again: {exc}") from exc
    if not all(isinstance(token, str) for token in table.values()):
        raise SettingsWrong(f"{path} does not contain tokens; remove it and log in again")
    return table


def _write(path: Path, tokens: dict[str, str]) -> None:
    import tomli_w

    text = "# Tokens of labctl: as good as a password.\n" + tomli_w.dumps(tokens)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        # Made with its mode: there is no moment at which others could read it.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "w") as file:
            file.write(text)
        draft.replace(path)
    except OSError as exc:
        raise SettingsWrong(f'cannot write "{path}": {exc.strerror}') from exc
