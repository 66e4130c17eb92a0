# SPDX-License-Identifier: GPL-2.0-or-later
"""Every limit that refuses what strangers send is listed where they can read it before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from web.limits import all_limits

pytestmark = pytest.mark.hostile

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"MAX|MOST|LONGEST|LARGEST|LIMIT|_BYTES$")
# Constants that look like limits and that no stranger's size meets. Module or module.CONSTANT → why.
OTHERS = {
    "lab.statistics": "bounds of estimators",
    "lab.profiles.analysis": "bounds of estimators",
    "lab.bisections.search": "faults of the lab",
    "lab.comparisons.exports": "how much of a result is shown",
    "lab.comparisons.model_and_machine": "how much of a result is shown",
    "lab.comparisons.reply": "how much of a result is shown",
    "lab.profiles.exports": "how much of a result is shown",
    "lab.one_line": "how much of a name is shown",
    "lab.runs.guest_limits": "listed by their names there",
    "lab.operations": "of the lab's own tables and logs",
    "lab.audit.log": "of the lab's own tables and logs",
    "kernels.artifacts.structures": "beyond them fields have no names",
    "kernels.builds.btf": "beyond them fields have no names",
    "kernels.builds.written_types": "beyond them fields have no names",
    "workers.microscope.field_names": "how many names of a line are shown",
    "kernels.builds.front_build": "of the lab's own stores and logs",
    "lab.comparisons.explanation": "how much of a result is shown",
    "lab.experiments.list_page": "how much of a list is searched",
    "lab.profiles.case_profiles": "how much of a list is shown",
    "lab.models.bounded": "how far a list is counted",
    "web.api.paging": "numbers of pages and rows: a larger one is refused",
    "lab.profiles.claims": "how much of a list is shown",
    "lab.runs.validity": "surroundings of a boot: beyond them it does not count",
    "lab.service_urls": "of the lab's own connections",
    "lab.standing.pages": "how much of a list is shown",
    "lab.trends.page": "how much of a list is shown",
    "lab.trends.other_branches": "how much of a list is shown",
    "kernels.trees.branches": "how many branches are searched for a commit",
    "lab.runs.rounds": "retakes of the lab",
    "lab.validation_messages": "how many mistakes are named at once",
    "lab.storage": "of the lab's own files",
    "lab.targets": "what operators say of machines",
    "lab.submission.received_series": "listed as kernels.mails.uploads.MAX_MEMBERS",
    "lab.submission.fetches.problem": "how much of a problem is stored",
    "lab.people.sign_in._MOST_ROWS": "rows of the lab's own table",
    "lab.hooks.deliver": "tries of the lab, and its own look-ups",
    "lab.hooks.outgoing_http": "how much of an answer is kept",
    "lab.targets.netboot.boots": "pieces that are read at once",
    "lab.settings.AXES_FAILURE_LIMIT": "for one name; lab.people.sign_in.MOST_WRONG is what an address meets",
    "lab.settings.FILE_UPLOAD_MAX_MEMORY_SIZE": "where a file is kept, not how large it may be",
    "kernels.repair.alignment": "effort of repairs: what does not fit is refused as unplaceable",
    "kernels.trees.address": "an address's length, named in the refusal",
    "kernels.sandbox.reader": "between the lab's own processes",
    "kernels.sandbox.reader_server": "between the lab's own processes",
    "kernels.trees.tarball.MAKEFILE_BYTES": "how much of a Makefile is searched for a version",
    "kernels.repair.base_text": "effort of repairs",
    "kernels.repair.damage": "effort of repairs",
    "kernels.builds.compiled_files": "what the store of compiled files takes; the rest is compiled again",
    "kernels.builds.decode_oops": "how much of an oops is decoded",
    "kernels.artifacts.elf": "the kernel's own format",
    "kernels.artifacts.elf_segments": "the kernel's own format",
    "kernels.artifacts.elf_sections._LONGEST_NAME": "names of sections that are compared",
    "kernels.trees.git_bundle": "between the lab's own machines",
    "kernels.repair.indentation": "effort of repairs",
    "kernels.artifacts.kernel_files": "modules of the lab's own workloads",
    "kernels.builds.layers": "room that the lab needs",
    "kernels.builds.layer_steps": "how far a guess at a build's steps looks",
    "kernels.mails.lore": "memory of the lab's own reader",
    "kernels.mails.mbox": "where a mail's head is looked for",
    "kernels.repair.mend": "effort of repairs",
    "kernels.sandbox.output": "longer lines are cut, not refused",
    "kernels.sandbox.disk_quota": "the least that a build is given",
    "kernels.artifacts.metadata": "the lab's own record of an artifact",
    "kernels.trees.repack": "packs of the lab's own repositories",
    "kernels.builds.reproducer": "how much of a diff a script carries",
    "kernels.artifacts.signature": "the lab's own key",
    "workers.beat": "of the lab's own queue",
    "workers.collect": "what is shown, or the format of a file; lab.runs.guest_limits has what is refused",
    "workers.ctl": "the caller's own terminal and files",
    "workers.drivers.calls": "what the lab's own plugin of QEMU may write",
    "workers.microscope.contention": "numbers of JSON",
    "workers.microscope.line_names": "how much of a name is shown",
    "workers.microscope.replay": "memory and processors of the lab's own model",
    "workloads.machines": "how much of a machine's own numbers is read",
    "workers.microscope.calltree": "how much of a call tree is kept",
    "workers.drivers.kexec": "how much of a refusal is shown",
    "workers.drivers.metal": "what operators write",
    "workers.drivers.netboot_streams": "pieces that are read at once",
    "workers.drivers.streams": "aliases of lab.runs.guest_limits",
    "workers.power": "of BMCs",
    "workers.readiness": "room that the lab needs",
    "workers.run": "of the lab's own artifacts",
    "workers.service": "of the lab's own services",
    "web.api.bodies.MOST_FAULTS": "how many mistakes are named at once",
    "web.api.fields": "how many mistakes are named at once",
    "web.api.filters.MOST_ID": "the tables' own numbers",
    "web.api.logs.MOST_OFFSET": "numbers of JSON",
    "web.api.profiles": "how much is shown",
    "web.forms.MOST_DOTS": "of a field's name in a form",
    "web.listing": "as web.api.filters",
    "web.logs": "how much is shown",
    "web.stripchart": "how much is drawn",
    "web.targetform": "what operators write",
    "web.trendchart": "how much is drawn",
    "web.views": "how much is shown",
    "workloads.guest.greeting": "named in the refusal of a hello",
    "workloads.guest.pack": "of the lab's own initramfs",
    "workloads.shared_lines": "how much of perf's report is kept",
    "workloads.guest.strictjson._MOST_DETAIL": "how much of a refusal is shown",
    "workloads.guest.tuning": "what operators write",
    "workloads.contention": "CPUs that the lab's own plugin of QEMU records",
    "workloads.param": "of the lab's own catalogue",
    "workloads.passes": "how much of a reason is kept",
    "workloads.programs": "the format of one program",
    "workloads.readings": "named in the refusal of a step's output",
}


def constants() -> Iterator[str]:
    """Every module-level number in capitals whose name says that it is a limit, as module.NAME."""
    for package in ("kernels", "lab", "workers", "web", "workloads"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "tests" in parts or "migrations" in parts:
                continue
            for name in names_in(ast.parse(path.read_text())):
                yield f"{'.'.join(parts)}.{name}"


def names_in(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        value = getattr(node, "value", None)
        if not targets or value is None or not is_number(value):
            continue
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and name.id.isupper() and NAME.search(name.id):
                    yield name.id


def is_number(value: ast.expr) -> bool:
    allowed = (ast.Constant, ast.BinOp, ast.Tuple, ast.Name, ast.Attribute, ast.operator, ast.expr_context)
    nodes = list(ast.walk(value))
    texts = any(isinstance(node, ast.Constant) and not isinstance(node.value, int | float) for node in nodes)
    return all(isinstance(node, allowed) for node in nodes) and not texts


def listed(sources: set[str], constant: str) -> bool:
    parts = constant.split(".")
    return constant in sources or any(".".join(parts[:end]) in OTHERS for end in range(2, len(parts) + 1))


@pytest.fixture
def sources(db: None) -> set[str]:
    settings = "django.conf.LazySettings."
    return {limit.source.replace(settings, "lab.settings.") for limit in all_limits()}


def test_every_limit_is_listed_or_said_to_be_none_of_a_strangers(sources: set[str]) -> None:
    assert [constant for constant in constants() if not listed(sources, constant)] == []


def test_a_new_limit_that_nobody_lists_is_noticed(sources: set[str]) -> None:
    module = ast.parse("MOST_SPOONS, FORKS = 3, 4\nLONGEST_KNIFE: Final = 2 << 10\nMOST_WORDS = 'x'\n")
    names = list(names_in(module))
    assert names == ["MOST_SPOONS", "LONGEST_KNIFE"]
    assert not any(listed(sources, f"kernels.cutlery.{name}") for name in names)


def test_nothing_is_excused_that_is_gone() -> None:
    known = list(constants())
    assert [
        name for name in OTHERS if not any(f"{constant}.".startswith(f"{name}.") for constant in known)
    ] == []


def test_every_limit_of_a_guest_and_of_a_build_is_listed(sources: set[str]) -> None:
    from kernels.sandbox.command import Limits
    from lab.runs import guest_limits

    ours = {"cores", "reserve", "reserve_files", "total_memory", "cpu_seconds"}
    assert {
        f"kernels.sandbox.command.Limits.{name}" for name in Limits.__slots__ if name not in ours
    } <= sources
    assert {f"lab.runs.guest_limits.{name}" for name in vars(guest_limits) if name.isupper()} <= sources


def test_names_are_unique_and_every_row_reads_as_a_sentence(db: None) -> None:
    rows = all_limits()
    assert len({row.name for row in rows}) == len(rows) > 100
    assert all(row.value > 0 and row.unit and row.what and row.group for row in rows)


def test_strangers_read_them_on_a_page_and_over_the_api(client: Client, db: None) -> None:
    page = client.get("/limits/").content.decode()
    rows = client.get("/api/v1/limits/").json()
    assert all(f">{row['name']}<" in page for row in rows)
    assert {"build_seconds", "build_log_bytes", "build_disk_bytes", "build_files", "console_bytes", "profile_bytes",
            "upload_bytes", "archive_bytes", "mail_parts", "series_patches", "requests_submit", "fetches_open",
            "previews_here", "records"} <= {row["name"] for row in rows}  # fmt: skip


def test_the_value_is_the_constants_own(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.mails.uploads.MAX_UPLOAD_BYTES", 12345)
    values = {row["name"]: row["value"] for row in client.get("/api/v1/limits/").json()}
    assert values["upload_bytes"] == 12345
