# SPDX-License-Identifier: GPL-2.0-or-later
"""A person submits, watches, cancels and runs again in a browser; the pretend kernel is built, a fake driver boots it."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, expect
from playwright.sync_api import Page as Tab

from kernels.tests.serving import served
from lab.models import Build, Experiment, Run, Target, Tree, User
from lab.tests.factories import make_build, make_grid
from lab.tests.fetchers import fetch_all
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at
from workers import local
from workers.tests.conftest import FakeLab, fake_home, fake_lab, opens, pretend_kernel

__all__ = ["fake_home", "fake_lab", "pretend_kernel"]
INODE = "fs/inode.c"
# The first compile of the pretend kernel takes seconds on a busy machine.
PATIENCE_MS = 20_000


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    expect.set_options(timeout=PATIENCE_MS)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def lab(transactional_db: None, fake_lab: FakeLab) -> FakeLab:
    """The lab with the pretend kernel as a registered tree; between tests the tables are emptied of all rows."""
    Target.objects.get_or_create(name="guest")
    Tree.objects.create(
        name="pretend", kind="git", location=str(fake_lab.kernel.work), default_revision="main"
    )
    return fake_lab


def mails(lab: FakeLab) -> list[str]:
    """Two patches of a series, each a mail as git writes it; the second stands on the first."""
    kernel = lab.kernel
    kernel.edited(INODE, "\tWARN_HERE();\n", "")
    kernel._git("commit", "--quiet", "--amend", "-m", "fs: do not warn\n\nIt is slow.")
    dummy = kernel.work / "drivers" / "dummy.c"
    dummy.write_text(dummy.read_text() + "/* more */\n")
    kernel._git("commit", "--quiet", "-am", "drivers: say more")
    kernel._git("branch", "-f", "work", "HEAD")
    mailbox = kernel._git("format-patch", "--stdout", "-n", f"{kernel.base.commit}..HEAD")
    return [f"From {mail}\n" for mail in re.split(r"(?m)^From (?=[0-9a-f]{40} )", mailbox)[1:]]


def fill(tab: Tab, lab: FakeLab, *, name: str = "pretend", boots: str = "3") -> None:
    tab.get_by_label("Name", exact=True).fill(name)
    tab.get_by_label("Tree", exact=True).select_option("pretend")
    tab.get_by_label("Base", exact=True).fill(lab.kernel.base.commit)
    tab.get_by_label("showgids", exact=True).check()
    tab.get_by_label("Preset of showgids").select_option("smoke")
    tab.get_by_label("Boots", exact=True).fill(boots)
    tab.get_by_label("Iterations", exact=True).fill("2")
    tab.get_by_label("Profile", exact=True).select_option("no")


def preview(tab: Tab, *, fetched: bool = False) -> dict[str, str]:
    """Press the button and return the figures of the preview. fetched: a worker has to fetch something first."""
    tab.get_by_role("button", name="Preview").first.click()
    if fetched:
        carry_out_fetch(tab)
    expect(tab.get_by_role("heading", name="Preview: nothing is queued yet")).to_be_visible()
    names, values = (
        tab.locator(".figures dt").all_text_contents(),
        tab.locator(".figures dt + dd").all_text_contents(),
    )
    return dict(zip(names, values, strict=True))


def carry_out_fetch(tab: Tab) -> None:
    """Wait for the page of a fetch, then do what a worker does for it."""
    expect(tab.locator("#live")).to_contain_text("Waiting for a worker")
    (row,) = fetch_all()
    assert not row.experiment_id


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def upload(tab: Tab, name: str, data: bytes) -> None:
    file: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    tab.get_by_label("Patches, mboxes, or an archive of them").set_input_files(file)


def test_a_pasted_patch_becomes_a_verdict_before_ones_eyes(visit: Open, lab: FakeLab, alice: User) -> None:
    lab.scripts["faster"] = lambda request: opens(800.0 + len(lab.driver.requests) % 3)
    tab = visit("/experiments/new", by=alice)
    fill(tab, lab)
    tab.get_by_label("Name of the switch").first.fill("faster")
    tab.get_by_label("The patch").first.fill(lab.diff(INODE, "\tWARN_HERE();\n", ""))
    assert preview(tab)["Boots"] == "9"
    expect(tab.locator("#preview")).to_contain_text(INODE)
    expect(tab.locator("#preview")).to_contain_text("to build")
    assert Experiment.objects.count() == 0

    tab.get_by_role("button", name="Submit this").click()
    expect(tab.get_by_role("heading", name="pretend")).to_be_visible()
    row = Experiment.objects.get()
    assert (row.submitter, row.state) == (alice, "queued")
    tab.evaluate("window.kept = true")
    expect(tab.locator("#live")).to_contain_text("Queued: 1st of 1 for a build.")
    local.build_all(row.pk)
    expect(tab.locator("#live a.chip.built")).to_have_count(3)
    local.boot_next(row.pk)
    expect(tab.locator("#live")).to_contain_text("1 of 9 boots")
    local.work_through(row.pk)
    tab.get_by_role("link", name="See the verdicts").click(timeout=PATIENCE_MS)
    expect(tab.locator("main")).to_contain_text("improvement")


def test_the_page_of_an_experiment_follows_it_without_being_loaded_again(
    visit: Open, lab: FakeLab, alice: User
) -> None:
    row = Experiment.objects.get(
        pk=local.take_up(lab.spec({"p": lab.diff(INODE, "\tWARN_HERE();\n", "")}), say=print)
    )
    tab = visit(f"/experiments/{row.pk}/", by=alice)
    tab.evaluate("window.kept = true")
    local.work_through(row.pk)
    expect(tab.locator("#live")).to_contain_text("9 of 9 boots")
    expect(tab.get_by_role("link", name="Cancel …")).to_have_count(0)
    expect(tab.get_by_role("button", name="Run it again")).to_be_visible()
    assert tab.evaluate("window.kept")


def test_an_uploaded_archive_shows_each_of_its_patches(visit: Open, lab: FakeLab, alice: User) -> None:
    first, second = mails(lab)
    tab = visit("/experiments/new", by=alice)
    fill(tab, lab)
    upload(tab, "work.tar.gz", archive({"0001-a.patch": first.encode(), "0002-b.patch": second.encode()}))
    assert preview(tab)["Kernels to build"] == "2"
    shown = tab.locator("#preview")
    for text in (
        "fs: do not warn",
        "drivers: say more",
        "kperflab <kperflab@localhost>",
        INODE,
        "2 patches, 2 files",
    ):
        expect(shown).to_contain_text(text)
    expect(tab.get_by_role("status").first).to_contain_text(
        "uploaded work.tar.gz: 2 files: 2 patches, as switch “work”"
    )

    tab.get_by_label("a switch for each patch").check()
    assert preview(tab)["Kernels to build"] == "3"
    expect(tab.get_by_role("rowheader", name="1-fs-do-not-warn+2-drivers-say-more")).to_be_visible()
    assert tab.get_by_label("Design", exact=True).input_value() == "cumulative"
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_role("heading", name="pretend")).to_be_visible()
    assert list(Experiment.objects.get().switches.values_list("title", flat=True)) == [
        "fs: do not warn",
        "drivers: say more",
    ]


def test_a_branch_over_http_becomes_its_series(visit: Open, lab: FakeLab, alice: User, settings: Any) -> None:
    settings.PRIVATE_ADDRESSES = True
    mails(lab)
    tab = visit("/experiments/new", by=alice)
    fill(tab, lab)
    with served(lab.kernel.work.parent) as root:
        tab.get_by_label("Repository").fill(f"{root}/{lab.kernel.work.name}/.git")
        tab.get_by_label("Branch", exact=True).fill("work")
        assert preview(tab, fetched=True)["Kernels to build"] == "2"
    expect(tab.locator("#preview")).to_contain_text("drivers: say more")
    expect(tab.get_by_label("Branch", exact=True)).to_have_value("")
    tab.get_by_role("button", name="Submit this").click()
    expect(tab.get_by_role("heading", name="pretend")).to_be_visible()
    assert Experiment.objects.get().switches.get().name == "work"


def test_a_double_click_queues_one_experiment(visit: Open, lab: FakeLab, alice: User) -> None:
    tab = visit("/experiments/new", by=alice)
    fill(tab, lab)
    tab.get_by_role("button", name="Submit", exact=True).dblclick()
    expect(tab.get_by_role("heading", name="pretend")).to_be_visible()
    tab.go_back()
    fill(tab, lab)
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_text("Already queued as #")).to_be_visible()
    assert Experiment.objects.count() == 1


def test_cancelling_is_asked_for_once_more_and_running_again_is_a_new_experiment(
    visit: Open, lab: FakeLab, alice: User, settings: Any
) -> None:
    settings.LOCAL_PATHS = True
    row = Experiment.objects.get(
        pk=local.take_up(lab.spec({"p": lab.diff(INODE, "\tWARN_HERE();\n", "")}), say=print)
    )
    Experiment.objects.update(submitter=alice)
    tab = visit(f"/experiments/{row.pk}/", by=alice)
    tab.get_by_role("link", name="Cancel …").click()
    assert faults(tab) == []
    tab.get_by_role("button", name="Cancel the experiment").click()
    expect(tab.get_by_text("The experiment is cancelled.")).to_be_visible()
    row.refresh_from_db()
    assert row.state == "cancelled"

    tab.get_by_role("button", name="Run it again").click()
    expect(tab.get_by_text(f"a new experiment of the same description as #{row.pk}")).to_be_visible()
    again = Experiment.objects.get(origin=row)
    assert tab.url.endswith(f"/experiments/{again.pk}/")
    assert (again.digest, again.submitter) == (row.digest, alice)

    tab.get_by_role("link", name="Clone with changes").click()
    expect(tab.get_by_label("The patch").first).to_contain_text("WARN_HERE")
    assert tab.get_by_label("Git address", exact=False).first.input_value() == str(lab.kernel.work)


BOMB = gzip.compress(bytes(17 << 20))


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"The patch": "no diff at all"}, "patch-0-text", "there is no diff in it"),
        (
            {"The patch": "--- a/fs/inode.c\n+++ b/fs/inode.c\n@@ -1,3 +1,3 @@\n nothing\n-like\n+it\n"},
            "patch-0-text",
            "repaired",
        ),
        ({"Base": "v9.9"}, "base", "has no revision"),
        ({"Repository": "ftp://example.org/x", "Branch": "work"}, "branch_git", "begins with https://"),
        ({"Repository": "http://127.0.0.1/x", "Branch": "work"}, "branch_git", "closed network"),
        ({"Branch": "no such branch"}, "branch", "cannot name a branch"),
        ({"Branch": "wrok"}, "branch", "has no branch"),
        ({"Message-id": "kernfs"}, "lore", "not a message-id"),
        ({"Boots": "many"}, "boots", "not a whole number"),
    ],
)
def test_what_is_wrong_is_told_beside_its_field_and_nothing_typed_is_lost(
    visit: Open, lab: FakeLab, alice: User, given: dict[str, str], field: str, said: str
) -> None:
    tab = visit("/experiments/new", by=alice, refused=422)
    fill(tab, lab)
    if "The patch" in given:
        tab.get_by_label("Name of the switch").first.fill("mine")
    for label, text in given.items():
        tab.get_by_label(label, exact=True).first.fill(text)
    tab.get_by_role("button", name="Submit", exact=True).click()
    if field == "branch":
        carry_out_fetch(tab)
    expect(tab.locator(f"#{field}-error")).to_contain_text(said)
    for label, text in given.items():
        expect(tab.get_by_label(label, exact=True).first).to_have_value(text)
    expect(tab.get_by_label("Name", exact=True)).to_have_value("pretend")
    assert faults(tab) == []
    assert Experiment.objects.count() == 0


def test_a_bomb_is_refused_with_its_limit(visit: Open, lab: FakeLab, alice: User) -> None:
    tab = visit("/experiments/new", by=alice, refused=422)
    fill(tab, lab)
    upload(tab, "bomb.tar.gz", BOMB)
    tab.get_by_role("button", name="Submit", exact=True).click()
    expect(tab.locator("#files-error")).to_contain_text("bomb.tar.gz: unpacked it is larger than 16 MiB")
    assert Experiment.objects.count() == 0


def test_a_file_that_is_too_large_is_not_even_sent(visit: Open, lab: FakeLab, alice: User) -> None:
    tab = visit("/experiments/new", by=alice)
    fill(tab, lab)
    upload(tab, "large.mbox", bytes((8 << 20) + 1))
    tab.get_by_role("button", name="Submit", exact=True).click()
    message = tab.get_by_label("Patches, mboxes").evaluate("one => one.validationMessage")
    assert message == "large.mbox is larger than 8 MiB."
    assert tab.url.endswith("/experiments/new")


def test_a_log_grows_on_its_page_until_it_is_complete(
    visit: Open, transactional_db: None, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("CC fs/one.o\n")
    build = make_build("b", log=str(log), state="building")
    tab = visit(f"/builds/{build.pk}/log")
    with log.open("a") as file:
        file.write('CC <img src=x onerror="document.title=`run`">\nCC fs/two')
    expect(tab.locator("pre[data-follow]")).to_contain_text("CC <img src=x")
    assert "fs/two" not in tab.locator("pre[data-follow]").inner_text()
    Build.objects.update(state="built", release="6.1-k")
    expect(tab.locator("#log-state")).to_have_text("It is complete.")
    expect(tab.locator("#live")).to_contain_text("6.1-k")
    expect(tab.locator("pre.tail")).to_contain_text("fs/two")


def test_a_console_grows_from_its_first_line_on(visit: Open, transactional_db: None, tmp_path: Path) -> None:
    run = make_grid().runs.all()[0]
    tab = visit(f"/runs/{run.pk}/console")
    console = tmp_path / "console"
    console.write_text("Linux version\n")
    Run.objects.filter(pk=run.pk).update(state="running", console=str(console))
    expect(tab.locator("pre[data-follow]")).to_contain_text("Linux version")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_form_with_its_preview_fits_and_can_be_used_by_all(
    visit: Open, lab: FakeLab, alice: User, width: int, dark: bool
) -> None:
    tab = visit("/experiments/new", by=alice, width=width, dark=dark)
    fill(tab, lab, boots="auto")
    first, second = mails(lab)
    upload(tab, "work.tar.gz", archive({"0001-a.patch": first.encode(), "0002-b.patch": second.encode()}))
    preview(tab)
    assert looked_at(tab, "preview", width=width, dark=dark) <= width
    assert faults(tab) == []
