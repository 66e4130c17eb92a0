# SPDX-License-Identifier: GPL-2.0-or-later
"""The structure of the code: imports between packages, sizes of modules, attributes of every error."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
OURS = ("kernels", "workloads", "lab", "workers", "web", "bench", "containers")
EDGES = {"celery", "kombu", "libvirt", "libvirt_qemu", "paramiko"}

# package or module → what it may import of ours; whether Django; whether Celery, libvirt, ssh.
# The longest matching name decides. bench stands outside and may use everything.
TABLE: dict[str, tuple[set[str], bool, bool]] = {
    "kernels": ({"kernels"}, False, False),
    "workloads": ({"workloads"}, False, False),
    "lab.statistics": ({"lab.statistics"}, False, False),
    "lab.profiles.analysis": ({"lab.statistics", "lab.profiles.analysis"}, False, False),
    "lab.experiments.spec": (
        {
            "kernels",
            "workloads",
            "lab.errors",
            "lab.harmful_characters",
            "lab.validation_messages",
            "lab.experiments.spec",
            "lab.experiments.spec_part",
            "lab.experiments.measure",
            "lab.experiments.spec_size",
            "lab.experiments.switch_names",
            "lab.experiments.description_faults",
        },
        False,
        False,
    ),
    "lab.experiments.measure": (
        {"lab.experiments.questions", "lab.experiments.spec_part", "lab.validation_messages"},
        False,
        False,
    ),
    "lab.experiments.questions": (set(), False, False),
    "lab.experiments.spec_part": ({"lab.harmful_characters"}, False, False),
    "lab.harmful_characters": ({"lab.errors", "lab.harmful_characters"}, False, False),
    "lab.experiments.spec_size": ({"lab.errors", "lab.experiments.spec_size"}, False, False),
    "lab.experiments.switch_names": ({"kernels", "lab.harmful_characters"}, False, False),
    "lab.experiments.description_faults": (
        {"kernels", "workloads", "lab.validation_messages", "lab.experiments.switch_names"},
        False,
        False,
    ),
    "lab.validation_messages": ({"lab.errors"}, False, False),
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

# The rooms of lab and the folders of kernels, the lowest first. A module imports from its own room and from those before
# it in this order (DESIGN.md says why); the modules between the rooms belong to all of them.
ROOMS = {
    "lab": (
        *(
            "errors",
            "validation_messages",
            "one_line",
            "harmful_characters",
            "environment",
            "figures",
            "from_attributes",
        ),
        *("statistics", "models", "leases", "audit"),
        *("people", "storage", "experiments", "profiles", "trends", "comparisons", "notes", "hooks"),
        *("targets", "runs", "submission", "bisections", "standing", "operations"),
        *("service_urls", "settings", "postgres_moments", "apps", "management"),
    ),
    "kernels": (
        *(
            "printable",
            "errors",
            "architecture",
            "processes",
            "files",
            "diffs",
            "trees",
            "mails",
            "patches",
            "repair",
        ),
        *("sandbox", "configs", "artifacts", "builds"),
    ),
}


@cache
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
    return (
        "tests" in path.relative_to(ROOT).parts or path.name.startswith("test_") or path.name == "conftest.py"
    )


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return everything in a module's syntax tree, the module first; read once for all tests that ask for it."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return what a module imports."""
    names: set[str] = set()
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for item in nodes_of(path):
        if isinstance(item, ast.Import):
            names |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            if item.level:
                stem = ".".join([*package[: len(package) - item.level + 1], *filter(None, [item.module])])
            else:
                stem = item.module or ""
            names |= {stem} | {f"{stem}.{alias.name}" for alias in item.names}
    return frozenset(names)


def offences(path: Path) -> list[str]:
    name = module_name(path)
    rules = [key for key in TABLE if name == key or name.startswith(key + ".")]
    if not rules:
        return [f"{name}: not in the import table"]
    ours, django, edges = TABLE[max(rules, key=len)]
    wrong = []
    for imported in imports(path):
        top = imported.split(".")[0]
        if top in OURS and not any(
            imported == package or imported.startswith(package + ".") for package in ours
        ):
            # `from lab import x` names the package alone as well: judged by what it takes from it.
            if imported in {package.split(".")[0] for package in ours}:
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


def room_of(name: str) -> tuple[str, int] | None:
    """Return the package of a module and the place of its room there; none for what is in no package with rooms."""
    top, *rest = name.split(".")
    if top not in ROOMS or not rest or rest[0] == "migrations":
        return None
    return (top, ROOMS[top].index(rest[0])) if rest[0] in ROOMS[top] else None


def upward_arrows(path: Path) -> list[str]:
    own = room_of(module_name(path))
    if own is None:
        return []
    theirs = {name: room_of(name) for name in imports(path) if name.split(".")[1:2] != ["tests"]}
    return [
        f"{module_name(path)} imports {name}"
        for name, room in theirs.items()
        if room is not None and room[0] == own[0] and room[1] > own[1]
    ]


def sources_of_rooms() -> list[Path]:
    return [
        path for path in tracked(".py") if path.relative_to(ROOT).parts[0] in ROOMS and not is_of_tests(path)
    ]


def test_rooms_import_only_from_rooms_below_them() -> None:
    assert [line for path in sources_of_rooms() for line in upward_arrows(path)] == []


def test_the_order_of_rooms_names_every_room_and_no_other() -> None:
    names = [module_name(path).split(".") for path in sources_of_rooms()]
    rooms = {(parts[0], parts[1]) for parts in names if len(parts) > 1 and parts[1] != "migrations"}
    assert rooms == {(top, room) for top, order in ROOMS.items() for room in order}


def test_an_upward_arrow_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tests.test_house.ROOT", tmp_path)
    (tmp_path / "lab" / "storage").mkdir(parents=True)
    culprit = tmp_path / "lab" / "storage" / "store.py"
    culprit.write_text(
        "from lab.models import Run\n\ndef late():\n    from lab.runs.blocks import block_of\n"
    )
    assert {line.partition(" imports ")[2] for line in upward_arrows(culprit)} == {
        "lab.runs.blocks",
        "lab.runs.blocks.block_of",
    }


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_name(path): path for path in tracked(".py") if not is_of_tests(path)}
    waiting = {
        name: {imported for imported in imports(path) if imported in modules} - {name}
        for name, path in modules.items()
    }
    # Modules that import nothing that remains are taken away again and again; those of a circle stay.
    while free := {name for name, needs in waiting.items() if not needs & set(waiting)}:
        waiting = {name: needs for name, needs in waiting.items() if name not in free}
    assert sorted(waiting) == []


def test_names_of_modules_say_what_is_inside() -> None:
    vague = {
        *[
            "util",
            "utils",
            "helper",
            "helpers",
            "common",
            "misc",
            "manager",
            "given",
            "backing",
            "waits",
            "vitals",
            "tallies",
        ]
    }
    vague |= {*["holding", "holdings", "keeping", "appear", "placing"]}
    assert [path for path in tracked(".py") if not is_of_tests(path) and path.stem in vague] == []


def test_no_two_public_classes_share_a_name() -> None:
    """One name, one thing, so that a search finds it. Names for the outside are exempt."""
    exempt = {
        *("Command", "Meta"),  # Django names them
        "ModuleSource",  # kernels and workloads know nothing of each other, and say the same with it
    }
    places: dict[str, set[str]] = {}
    for path in tracked(".py"):
        parts = path.relative_to(ROOT).parts
        if (
            is_of_tests(path)
            or parts[0] in {"bench", "docs"}
            or "migrations" in parts
            or parts[:2] == ("web", "api")
        ):
            continue
        for item in ast.iter_child_nodes(nodes_of(path)[0]):
            if isinstance(item, ast.ClassDef) and not item.name.startswith("_") and item.name not in exempt:
                places.setdefault(item.name, set()).add(module_name(path))
    assert {name: sorted(where) for name, where in places.items() if len(where) > 1} == {}


def test_modules_stop_at_400_lines() -> None:
    sizes = {path: path.read_text().count("\n") for path in tracked(".py") if "migrations" not in path.parts}
    assert {path: lines for path, lines in sizes.items() if lines > 400} == {}


def test_functions_stop_at_50_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{item.lineno} {item.name}"
        for path in tracked(".py")
        if "migrations" not in path.parts
        for item in nodes_of(path)
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
    exceptions = []
    for top in ("kernels", "workloads", "lab", "workers"):
        package = importlib.import_module(top)
        for info in pkgutil.walk_packages(package.__path__, prefix=f"{top}."):
            if ".tests" in info.name or ".migrations" in info.name or info.name.endswith("__main__"):
                continue
            module = importlib.import_module(info.name)
            exceptions += [
                item
                for item in vars(module).values()
                if isinstance(item, type) and issubclass(item, Exception) and item.__module__ == info.name
            ]
    assert len(exceptions) > 10
    return exceptions


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
    assert {marker.partition(":")[0] for marker in markers} - {"hostile", "process"} <= set(
        alone[1].split(" or ")
    )
