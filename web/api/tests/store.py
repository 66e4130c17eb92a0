# SPDX-License-Identifier: GPL-2.0-or-later
"""A small lab with something in every table, some of it hostile."""

from __future__ import annotations

from pathlib import Path

from django.utils import timezone

from lab.models import (
    BasePoint,
    Build,
    Case,
    Comparison,
    Delivery,
    Experiment,
    Hook,
    LateAnswer,
    Note,
    Profile,
    Revision,
    Run,
    Sample,
    Tree,
    Triage,
    User,
    Variant,
)
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import (
    make_build,
    make_case,
    make_experiment,
    make_patch_switch,
    make_run,
    make_variant,
)
from lab.trends.stale import mark_stale

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e\"';--"
TREND = "a1b2c3d4e5f6"


def fill(people: dict[str, User], folder: Path, *, experiments: int = 2) -> Experiment:
    """Make experiments that are over, with all that hangs on them; returns the last."""
    for number in range(experiments):
        last = _experiment(people["alice"], folder, number)
    _talk(people, last)
    _hooks(people)
    _late(last)
    return last


def _experiment(submitter: User, folder: Path, number: int) -> Experiment:
    commit = f"{number:040x}"
    over = {"finished_at": timezone.now(), "started_at": timezone.now()}
    row = make_experiment(
        name=f"number {number} {HOSTILE}",
        state="done",
        submitter=submitter,
        base_commit=commit,
        spec=SPEC,
        **over,
    )
    make_patch_switch(row, "p", title=HOSTILE, author=HOSTILE)
    log = folder / f"build-{number}.log"
    log.write_bytes(b"  CC fs/inode.o\n\xff\x00" + HOSTILE.encode() + b"\n")
    build = make_build(f"{row.pk}/base", state="built", release="6.1-k1", log=str(log), cpu_seconds=1.5)
    base, mine = make_variant(row, build=build), make_variant(row, "p")
    make_variant(row, "p", "q", state="pruned", problem=HOSTILE)
    case = make_case(row)
    for variant in (base, mine):
        _runs(variant, case, folder)
    _judge(row, case, mine)
    tree = Tree.objects.get(name="tiny")
    Revision.objects.create(tree=tree, commit=commit, position=number, subject=HOSTILE, author=HOSTILE)
    BasePoint.objects.create(
        trend=TREND,
        case=case,
        metric="ns_per_open",
        primary=True,
        config="c",
        commit=commit,
        boots=[1.0, 2.0],
    )
    mark_stale([TREND])
    return row


SPEC = {
    "name": "stored",
    "git": "https://me:secret@example.org/linux.git",
    "patches": [{"name": "p", "text": "diff", "catalog": None}],
    "cases": [{"workload": "showgids", "preset": "smoke"}],
}


def _runs(variant: Variant, case: Case, folder: Path) -> None:
    over = {"state": "done", "outcome": "finished", "finished_at": timezone.now()}
    console = folder / f"console-{variant.pk}.txt"
    console.write_bytes(b"[    0.000000] Linux version\n" * 3)
    run = make_run(variant, case, console=str(console), extras={"odd": 1e300}, **over)
    Sample.objects.bulk_create(
        Sample(run=run, metric="ns_per_open", iteration=at, warmup=at == 0, value=value)
        for at, value in enumerate((1.5, 2.5, 3.5))
    )
    make_run(variant, case, block=1, state="failed", outcome="panicked", blame="kernel", problem=HOSTILE)
    profiled = make_run(variant, case, purpose="profiled", **over)
    # No record writes such a value; a table may hold it all the same.
    Sample.objects.create(run=profiled, metric="odd", iteration=0, value=float("inf"))
    for kind in Profile.Kind.values:
        tree = build_tree([(("walk", "down_read"), 60), ((HOSTILE,), 40)])
        Profile.objects.create(run=profiled, kind=kind, samples=100, tree=pack(tree))


def _judge(row: Experiment, case: Case, variant: Variant) -> None:
    Comparison.objects.create(
        experiment=row,
        case=case,
        variant=variant,
        metric="ns_per_open",
        unit="ns",
        better="lower",
        primary=True,
        boots=5,
        ratio=1.2,
        low=1.1,
        high=float("inf"),
        verdict="regression",
        margin=0.02,
    )


def _talk(people: dict[str, User], row: Experiment) -> None:
    case, variant = row.cases.get(), row.variants.get(name="p")
    Note.objects.create(author=people["alice"], experiment=row, text=HOSTILE)
    Note.objects.create(author=people["dora"], revision=Revision.objects.first(), trend=TREND, text="here")
    Note.objects.create(run=row.runs.first(), text="whose author is gone")
    Triage.objects.create(
        case=case, variant=variant, metric="ns_per_open", state="acknowledged", author=people["dora"]
    )


def _hooks(people: dict[str, User]) -> None:
    hook = Hook.objects.create(
        name="ci", owner=people["alice"], url="https://example.org/", secret="whsec_x", events=["alert"]
    )
    Delivery.objects.create(hook=hook, event="alert", subject="alert/1", payload={}, next_at=timezone.now())


def _late(row: Experiment) -> None:
    run, build = row.runs.all()[0], Build.objects.filter(variants__experiment=row)[0]
    for kind, work in (("run", run.pk), ("build", build.pk), ("run", 999_999)):
        LateAnswer.objects.create(
            kind=kind, work=work, worker="h1:1:1", target="guest", said=HOSTILE, why="it was deleted"
        )


def counts() -> dict[str, int]:
    """Return how many rows there are of what the API lists."""
    models = (Experiment, Variant, Build, Run, Sample, Profile, Comparison, Note, Triage)
    return {model.__name__: model.objects.count() for model in models}
