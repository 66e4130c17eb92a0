# SPDX-License-Identifier: GPL-2.0-or-later
"""Preferences of the command line: the server, its token, and defaults of `submit`.

An option of the command overrides an environment variable, which overrides `.labctl.toml` in the top of the current git
tree, which overrides the user's `config.toml`. A tree's file comes from its authors: it may set defaults, but
not the server that receives a token.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from workers.ctl.clients.errors import SettingsWrong

PROJECT_FILE = ".labctl.toml"
OWN = ("server", "token_file", "local", "defaults")
# The types of what `submit` may take from a file.
DEFAULTS: dict[str, tuple[type, ...]] = {
    "tree": (str,),
    "git": (str,),
    "base": (str,),
    "target": (str,),
    "workload": (str,),
    "preset": (str,),
    "design": (str,),
    "clock": (str,),
    "boots": (int, str),
    "profile": (bool, str),
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """All preferences, and the origin of each (a file's path or a variable's name).

    server: without a slash at its end, empty if none is named. token: LABCTL_TOKEN. defaults: keys of DEFAULTS.
    """

    server: str
    token: str
    token_file: Path
    local: bool
    defaults: Mapping[str, Any]
    origins: Mapping[str, str]


def config_file() -> Path:
    """Return the person's own configuration; need not exist."""
    return user_config_path("labctl") / "config.toml"


def read_preferences() -> Preferences:
    """Read both files and the environment. Raises SettingsWrong."""
    own, project = config_file(), _project_file()
    mine, trees = _read(own, OWN), _read(project, ("defaults",)) if project else {}
    origins: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for path, table in ((own, mine), (project, trees)):
        file_defaults = _defaults(path, table.get("defaults", {})) if path else {}
        if {"tree", "git"} & file_defaults.keys():
            # A tree named in this file replaces a tree or git URL from the file before.
            defaults.pop("tree", None)
            defaults.pop("git", None)
        defaults |= file_defaults
        origins |= dict.fromkeys(file_defaults, str(path))
    server = _text(own, mine, "server")
    origins |= {key: str(own) for key in ("server", "token_file", "local") if key in mine}
    if os.environ.get("LABCTL_SERVER"):
        server, origins["server"] = os.environ["LABCTL_SERVER"], "LABCTL_SERVER"
    local = mine.get("local", False)
    if not isinstance(local, bool):
        raise SettingsWrong(f"{own}: local: {local!r} is not true or false")
    if os.environ.get("LABCTL_LOCAL"):
        local, origins["local"] = _switch("LABCTL_LOCAL"), "LABCTL_LOCAL"
    elif os.environ.get("LABCTL_SERVER"):
        # A server in the environment overrides `local` in a file.
        local = False
    tokens = _text(own, mine, "token_file")
    return Preferences(
        server=server.rstrip("/"),
        token=os.environ.get("LABCTL_TOKEN", "").strip(),
        token_file=Path(tokens).expanduser() if tokens else own.with_name("tokens.toml"),
        local=local,
        defaults=defaults,
        origins=origins,
    )


# Environment variables that the user's own git needs in the user's own tree.
OF_GIT = (
    *("HOME", "XDG_CONFIG_HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL"),
    *("GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)


def git_top() -> Path | None:
    """Return the top of the git tree around the current directory; None outside of one."""
    here = Path.cwd()
    return next((path for path in (here, *here.parents) if (path / ".git").exists()), None)


def _project_file() -> Path | None:
    top = git_top()
    return top / PROJECT_FILE if top and (top / PROJECT_FILE).is_file() else None


def _read(path: Path, known: tuple[str, ...]) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise SettingsWrong(f'cannot read "{path}": {exc.strerror}') from exc
    except (ValueError, RecursionError) as exc:
        raise SettingsWrong(f"{path} is not valid TOML: {exc}") from exc
    for key in table:
        if key not in known and key in OWN:
            raise SettingsWrong(
                f"{path}: {key} cannot be set in a git tree, whose authors must not choose who receives your token; "
                f"set it in {config_file()}"
            )
        if key not in known:
            raise SettingsWrong(f'{path}: unknown key "{key}"; {_nearest(key, known)}')
    return table


def _defaults(path: Path, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsWrong(f"{path}: defaults is not a table; write [defaults]")
    for key, value in table.items():
        if key not in DEFAULTS:
            raise SettingsWrong(f'{path}: defaults: unknown key "{key}"; {_nearest(key, DEFAULTS)}')
        if type(value) not in DEFAULTS[key]:
            kinds = " or ".join(
                {str: "text", int: "a number", bool: "true or false"}[t] for t in DEFAULTS[key]
            )
            raise SettingsWrong(f"{path}: defaults.{key}: {value!r} is not {kinds}")
    return table


def _text(path: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise SettingsWrong(f"{path}: {key}: {value!r} is not text")
    return value


def _switch(variable: str) -> bool:
    value = os.environ[variable].strip().lower()
    if value not in {"", "0", "1", "false", "true", "no", "yes"}:
        raise SettingsWrong(f'{variable}: "{value}" is neither 1 nor 0')
    return value in {"1", "true", "yes"}


def _nearest(value: str, valid: Iterable[str]) -> str:
    from lab.validation_messages import nearest

    return nearest(value, valid)
