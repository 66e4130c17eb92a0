# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes over a layer: those that make can follow, and what it would keep of them wrongly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.builds.layer_changes import forget_script, not_followed, write_forgotten
from kernels.sandbox.command import OBJECTS, OUT, SOURCE
from kernels.trees.extract import ChangedFile

BLOB = "1" * 40


def changed(path: str) -> ChangedFile:
    """Return a file whose text differs."""
    return ChangedFile(path, "100644", BLOB)


@pytest.mark.parametrize(
    "path",
    [
        "fs/inode.c",
        "include/linux/fs.h",
        "arch/x86/entry/entry_64.S",
        "arch/x86/kernel/vmlinux.lds.S",
        "fs/ext4/Makefile",
        "fs/Kconfig",
        "Kconfig",
        "arch/x86/kernel/Makefile",
        "Documentation/filesystems/proc.rst",
        "tools/testing/selftests/mm/run_vmtests.sh",
        "drivers/gpu/.gitignore",
        "MAINTAINERS",
        "drivers/staging/TODO",
        "scripts/checkpatch.pl",
        "arch/arm64/Makefile",
        "arch/arm64/boot/dts/a.dts",
    ],
)
def test_make_can_follow_what_compilers_and_makefiles_read(path: str) -> None:
    assert not_followed([changed("mm/slub.c"), changed(path)]) == ""


@pytest.mark.parametrize(
    "change",
    [
        changed("Makefile"),
        changed("arch/x86/Makefile"),
        changed("arch/x86/include/asm/Kbuild"),
        changed("include/asm-generic/Kbuild"),
        changed("scripts/Makefile.build"),
        changed("scripts/mod/modpost.c"),
        changed("tools/objtool/check.c"),
        changed("tools/testing/selftests/kselftest_module.h"),
        changed("arch/x86/tools/relocs.c"),
        changed("arch/x86/entry/syscalls/syscall_64.tbl"),
        changed("lib/oid.pl"),
        ChangedFile("net/wireless/certs/sforshee.hex", "", ""),
        ChangedFile("certs/list.c_shipped", "100644", BLOB, added=True),
        changed("fs/a b.h"),
        ChangedFile("fs/asm.h", "120000", BLOB, added=True),
        ChangedFile("fs/asm.h", "120000", BLOB),
    ],
    ids=lambda change: f"{change.path} {change.mode}",
)
def test_a_build_from_nothing_is_for_what_a_rule_may_read_without_naming_it(change: ChangedFile) -> None:
    assert not_followed([changed("mm/slub.c"), change]) == change.path


def forget(place: Path, *changes: ChangedFile, same_config: bool = True) -> set[str]:
    """Run the script over the objects below a place; return the files that are left, without commands."""
    out = place / "out"
    out.mkdir(exist_ok=True)
    write_forgotten(changes, out)
    script = (
        forget_script(same_config=same_config).replace(OBJECTS, str(place / "objects")).replace(OUT, str(out))
    )
    script = script.replace(SOURCE, str(place / "linux"))
    subprocess.run(["sh", "-c", "set -e\n" + script], check=True, timeout=30)
    files = (path for path in (place / "objects").rglob("*") if path.is_file() and path.name[0] != ".")
    return {str(path.relative_to(place / "objects")) for path in files}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return a place with objects that a build has left, most with their commands."""
    (tmp_path / "linux/lib/fonts").mkdir(parents=True)
    (tmp_path / "linux/lib/fonts/Makefile").touch()
    inputs = {
        "fs/inode.o": "fs/own.h",
        "kernel/bounds.s": "include/own.h",
        "fs/file.o": "include/other.h",
        "lib/bits.o": "lib/bits.c",
        "lib/sort.o": "lib/sort.c",
        "lib/table.h": "",
        "lib/oid.c": "lib/oid.h",
        "lib/zlib/trees.h": "",
        "lib/fonts/glyphs.h": "",
        "lib/include/generated/asm.h": "",
        "tools/objtool.o": "tools/own.h",
        "lib/zlib/inflate.o": "lib/zlib/inflate.c",
        "lib/fonts/fonts.o": "lib/fonts/fonts.c",
        "include/generated/bounds.h": "",
        "mm/slub.o": "lib/table.h",
    }
    for name, read in inputs.items():
        made = tmp_path / "objects" / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
        if read:
            (made.parent / f".{made.name}.cmd").write_text(
                f"deps_{name} := \\\n  {tmp_path}/linux/{read} \\\n"
            )
    (tmp_path / "objects/.config").touch()
    return tmp_path


# What lib's makefile made without a command beside it, and what includes it.
RULED = {"lib/table.h", "lib/zlib/trees.h", "mm/slub.o"}
EVERYTHING = {
    *RULED,
    "lib/bits.o",
    "lib/sort.o",
    "lib/oid.c",
    "lib/zlib/inflate.o",
    "lib/fonts/glyphs.h",
    "lib/include/generated/asm.h",
    "tools/objtool.o",
    "fs/inode.o",
    "kernel/bounds.s",
    "fs/file.o",
    "lib/fonts/fonts.o",
    "include/generated/bounds.h",
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("change", "forgotten"),
    [
        (changed("lib/bits.c"), set()),
        (
            ChangedFile("fs/new/own.h", "100644", BLOB, added=True),
            {"fs/inode.o", "kernel/bounds.s"},
        ),
        (ChangedFile("lib/bits.c", "", ""), {"lib/bits.o", *RULED}),
        (ChangedFile("include/linux/other.h", "", ""), {"fs/file.o"}),
        (ChangedFile("lib/oid.c", "100644", BLOB, added=True), {"lib/oid.c", *RULED}),
        (changed("lib/Makefile"), RULED),
        (changed("lib/fonts/Makefile"), {"lib/fonts/glyphs.h"}),
        (ChangedFile("lib/Kconfig.bits", "100644", BLOB, added=True), set()),
        (ChangedFile("arch/arm64/include/asm/own.h", "", ""), set()),
        (ChangedFile("tools/testing/own.h", "100644", BLOB, added=True), set()),
        (ChangedFile("top.h", "100644", BLOB, added=True), set()),
        (ChangedFile("include/new.h", "100644", BLOB, added=True), set()),
    ],
    ids=[
        "a changed file: make knows",
        "an added one may be found first",
        "a source is gone",
        "a header is gone",
        "a made file becomes one of the tree",
        "a makefile has rules of its own",
        "a makefile below another",
        "a list of symbols",
        "another architecture's",
        "a test's",
        "at the top",
        "what the top makes",
    ],
)
def test_what_make_would_wrongly_keep_is_forgotten(
    built: Path, change: ChangedFile, forgotten: set[str]
) -> None:
    assert forget(built, change) == EVERYTHING - forgotten
    assert (built / "objects/.config").exists()
    assert not any(
        (built / "objects" / name).parent.joinpath(f".{Path(name).name}.cmd").exists() for name in forgotten
    )


@pytest.mark.process
def test_nothing_is_forgotten_without_a_change(built: Path) -> None:
    assert forget(built) == EVERYTHING


@pytest.mark.process
def test_under_another_config_what_puts_a_symbols_name_together_is_forgotten(built: Path) -> None:
    (built / "linux/lib/bits.c").write_text("#define HAS(option) IS_ENABLED(CONFIG_LIB_ ## option)\n")
    (built / "linux/lib/sort.c").write_text("#if IS_ENABLED(CONFIG_SORT)\n#endif\n#define PASTE(a, b) a##b\n")
    assert forget(built, same_config=False) == EVERYTHING - {"lib/bits.o"}
