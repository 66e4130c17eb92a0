# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape of the house: who imports whom, how large things grow, what every error says of itself."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("kernels", "workloads", "lab", "workers", "web", "bench", "containers")
EDGES = {"celery", "kombu", "libvirt", "libvirt_qemu", "paramiko"}

# package or module → what it may import of ours; whether Django; whether Celery, libvirt, ssh.
# The longest matching name decides. bench stands outside and may use everything.
TABLE: dict[str, tuple[set[str], bool, bool]] = {
    "kernels": ({"kernels"}, False, False),
    "workloads": ({"workloads"}, False, False),
    "lab.analysis": ({"lab.analysis"}, False, False),
    "lab.experiments.spec": (
        {
            "kernels",
            "workloads",
            "lab.errors",
            "lab.harmful_characters",
            "lab.experiments.spec",
            "lab.validation_messages",
            "lab.experiments.spec_size",
        },
        False,
        False,
    ),
    "lab.harmful_characters": ({"lab.errors", "lab.harmful_characters"}, False, False),
    "lab.experiments.spec_size": ({"lab.errors", "lab.experiments.spec_size"}, False, False),
    "lab.validation_messages": ({"lab.errors", "lab.validation_messages"}, False, False),
    "lab.experiments.expand": (
        {"kernels", "workloads", "lab.errors", "lab.experiments.spec", "lab.experiments.expand"},
        False,
        False,
    ),
    "lab": ({"kernels", "workloads", "lab"}, True, False),
    "workers": ({"kernels", "workloads", "lab", "workers"}, True, True),
    "web": ({"lab", "web"}, True, False),
    "bench": (set(OURS), True, True),
    "docs": (set(OURS) | {"docs"}, True, True),
    "containers": ({"containers"}, False, False),
    "manage": ({"lab"}, True, False),
}


def tracked(*suffixes: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    files = [ROOT / name for name in listed if name.endswith(suffixes) and (ROOT / name).is_file()]
    assert files, f"no tracked files end in {suffixes}"
    return files


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_of_tests(path: Path) -> bool:
    return "tests" in path.parts or path.name.startswith("test_") or path.name == "conftest.py"


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for item in ast.walk(ast.parse(path.read_text())):
        if isinstance(item, ast.Import):
            found |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            if item.level:
                stem = ".".join([*package[: len(package) - item.level + 1], *filter(None, [item.module])])
            else:
                stem = item.module or ""
            found |= {stem} | {f"{stem}.{alias.name}" for alias in item.names}
    return found


def offences(path: Path) -> list[str]:
    name = module_name(path)
    rules = [key for key in TABLE if name == key or name.startswith(key + ".")]
    if not rules:
        return [f"{name}: not in the import table"]
    ours, django, edges = TABLE[max(rules, key=len)]
    wrong = []
    for imported in imports(path):
        top = imported.split(".")[0]
        if top in OURS and not any(imported == one or imported.startswith(one + ".") for one in ours):
            # `from lab import x` names the package alone as well: judged by what it takes from it.
            if imported in {one.split(".")[0] for one in ours}:
                continue
            wrong.append(f"{name} imports {imported}")
        if (top in {"django", "rest_framework"} and not django) or (top in EDGES and not edges):
            wrong.append(f"{name} imports {imported}")
    return wrong


def test_modules_import_only_what_the_table_allows() -> None:
    assert [line for path in tracked(".py") if not is_of_tests(path) for line in offences(path)] == []


def test_the_import_table_sees_an_offence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tests.test_house.ROOT", tmp_path)
    (tmp_path / "kernels").mkdir()
    culprit = tmp_path / "kernels" / "tree.py"
    culprit.write_text(
        "def late():\n    from django.db import models\n    from lab.models import tree as source\n"
    )
    assert {line.split(" imports ")[1].split(".")[0] for line in offences(culprit)} == {"django", "lab"}


def test_modules_stop_at_400_lines() -> None:
    sizes = {path: path.read_text().count("\n") for path in tracked(".py") if "migrations" not in path.parts}
    assert {path: lines for path, lines in sizes.items() if lines > 400} == {}


def test_functions_stop_at_50_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{item.lineno} {item.name}"
        for path in tracked(".py")
        if "migrations" not in path.parts
        for item in ast.walk(ast.parse(path.read_text()))
        if isinstance(item, ast.FunctionDef) and (item.end_lineno or 0) - item.lineno + 1 > 50
    ]
    assert long == []


def test_every_source_file_names_its_licence() -> None:
    sources = tracked(".py", ".c", ".h", ".sh", ".js", ".css", ".toml", ".config", "Makefile", "Kbuild")
    bare = [
        path
        for path in sources
        if path.stat().st_size and "SPDX-License-Identifier: GPL-2.0" not in path.read_text()[:600]
    ]
    assert bare == []


def test_no_file_names_a_registry_host_or_a_place_of_one_machine() -> None:
    # Written in halves, so that this file does not offend.
    hosts = [
        a + b
        for a, b in (
            ("py", "pi.org"),
            ("python", "hosted.org"),
            ("registry.", "npmjs"),
            ("deb.", "debian.org"),
        )
    ]
    places = ["/work/" + "main", "/work/" + "shared", "/tmp/" + "exp"]
    pattern = re.compile("|".join(map(re.escape, hosts + places)), re.IGNORECASE)
    suffixes = (
        ".py",
        ".lock",
        ".json",
        ".toml",
        ".md",
        ".c",
        ".h",
        ".js",
        "Makefile",
        "bootstrap",
        ".yml",
        ".html",
    )
    assert [path for path in tracked(*suffixes) if pattern.search(path.read_text())] == []


def our_exceptions() -> list[type[Exception]]:
    found = []
    for top in ("kernels", "workloads", "lab", "workers"):
        package = importlib.import_module(top)
        for info in pkgutil.walk_packages(package.__path__, prefix=f"{top}."):
            if ".tests" in info.name or ".migrations" in info.name or info.name.endswith("__main__"):
                continue
            module = importlib.import_module(info.name)
            found += [
                item
                for item in vars(module).values()
                if isinstance(item, type) and issubclass(item, Exception) and item.__module__ == info.name
            ]
    assert len(found) > 10
    return found


def test_every_exception_says_who_is_to_blame_and_whether_to_retry() -> None:
    vague = [
        error.__qualname__
        for error in our_exceptions()
        if getattr(error, "blame", None) not in {"submission", "kernel", "lab"}
        or not isinstance(getattr(error, "retry", None), bool)
    ]
    assert vague == []


def test_every_marker_is_told_from_the_tests_that_run_side_by_side() -> None:
    """One that the Makefile does not know would run among the fast ones, on whatever they all use.

    A hostile test runs in its own layer, fast or slow, as its other markers say.
    """
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    alone = re.search(r"^ALONE := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert alone is not None
    assert {marker.partition(":")[0] for marker in markers} - {"hostile"} <= set(alone[1].split(" or "))
