# SPDX-License-Identifier: GPL-2.0-or-later
from pathlib import Path
from typing import Any

import pytest

from kernels.patches.series import read_series
from lab.errors import SpecError
from lab.experiments.spec import ExperimentSpec, read_spec, spec_digest, spec_from_mapping

PRODUCT = b"""
name = "kernfs iattr rwsem"
tree = "debian-6.1"
base = "v6.1.192"
design = "full"
target = "guest"

[[patches]]
name = "iattr-global"
file = "0001.patch"
excludes = ["iattr-hashed"]

[[patches]]
name = "iattr-hashed"
catalog = "kernfs-iattr-hashed-rwsem"

[[configs]]
name = "no-mitigations"
lines = ["# CONFIG_SPECULATION_MITIGATIONS is not set"]

[[cases]]
workload = "showgids"
preset = "small"
params = { threads = 2 }

[measure]
clock = "wall"
boots = 10
iterations = 5
warmup = 1
profile = true
seed = 1
"""


def small(**fields: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "name": "x",
        "tree": "debian-6.1",
        "patches": [{"name": "p", "text": "diff"}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
    }
    return defaults | fields


def refused(**fields: Any) -> str:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping(small(**fields))
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_the_products_own_description_is_read(tmp_path: Path) -> None:
    (tmp_path / "0001.patch").write_text("--- a/x\n+++ b/x\n")
    spec = read_spec(PRODUCT, tmp_path)
    assert [switch.name for switch in spec.switches] == ["iattr-global", "iattr-hashed", "no-mitigations"]
    first = spec.patches[0]
    assert (first.text, first.origin, first.excludes) == (
        "--- a/x\n+++ b/x\n",
        "0001.patch",
        ("iattr-hashed",),
    )
    assert spec.configs[0].text == "# CONFIG_SPECULATION_MITIGATIONS is not set\n"
    assert (spec.measure.boots, spec.measure.profile, spec.measure.verify) == (10, True, False)
    assert spec.measure.profile_boots == 3


def test_a_stored_description_reads_back_as_itself(tmp_path: Path) -> None:
    (tmp_path / "0001.patch").write_text("--- a/x\n+++ b/x\n")
    spec = read_spec(PRODUCT, tmp_path)
    again = ExperimentSpec.model_validate(spec.model_dump(mode="json"))
    assert again == spec
    assert spec_digest(again) == spec_digest(spec)


def test_the_digest_sees_the_text_of_a_patch_file(tmp_path: Path) -> None:
    (tmp_path / "0001.patch").write_text("one")
    before = spec_digest(read_spec(PRODUCT, tmp_path))
    (tmp_path / "0001.patch").write_text("two")
    assert spec_digest(read_spec(PRODUCT, tmp_path)) != before


def test_a_description_from_before_there_were_off_cpu_profiles_keeps_its_digest() -> None:
    plain = small(measure={"profile": True})
    waits = small(measure={"profile": True, "off_cpu": True})
    assert spec_digest(spec_from_mapping(small())).startswith("ac3ccc01bd4ee2c9")
    assert spec_digest(spec_from_mapping(waits)) != spec_digest(spec_from_mapping(plain))


def test_a_catalogued_switch_needs_no_name_of_its_own() -> None:
    spec = spec_from_mapping(small(patches=[{"catalog": "kernfs-iattr-rwsem"}]))
    assert spec.patches[0].name == "kernfs-iattr-rwsem"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"design": "ful"}, 'design: "ful" is not valid; did you mean "full"? valid: full, one-at-a-time'),
        ({"boots": 3}, 'the description: unknown field "boots"; valid: name, tree, git'),
        (
            {"measure": {"boot": 3}},
            'measure: unknown field "boot"; did you mean "boots"? valid: clock, boots',
        ),
        ({"measure": {"boots": 1}}, 'measure.boots: 1 is neither a number from 2 to 500 nor "auto"'),
        ({"measure": {"profile_boots": 0}}, "measure.profile_boots: must be at least 1, not 0"),
        ({"measure": {"boots": 501}}, "measure.boots: 501 is neither"),
        ({"measure": {"boots": "5"}}, 'measure.boots: "5" is neither'),
        ({"measure": {"boots": True}}, "measure.boots: True is neither"),
        (
            {"measure": {"clock": "instructions", "boots": "auto"}},
            "measure: boots: under the instruction clock",
        ),
        ({"measure": {"clock": "cpu"}}, 'measure.clock: "cpu" is not valid; valid: wall, instructions'),
        (
            {"measure": {"off_cpu": True}},
            "measure.off_cpu: waits are recorded in profiled boots, and no case is profiled",
        ),
        ({"cases": []}, "cases: give at least 1 entry"),
        (
            {"cases": [{"workload": "showgid"}]},
            'cases[0].workload: there is no workload "showgid"; did you mean',
        ),
        (
            {"cases": [{"workload": "showgids", "preset": "tiny"}]},
            'cases[0]: no preset of showgids is called "tiny"',
        ),
        (
            {"cases": [{"workload": "showgids", "params": {"treads": 2}}]},
            'cases[0]: no parameter of showgids is called "treads", did you mean "threads"?',
        ),
        (
            {"cases": [{"workload": "showgids", "params": {"threads": -1}}]},
            "cases[0]: showgids: threads = -1 is not valid: a whole number from 1",
        ),
        ({"patches": [{"name": "p"}]}, "patches[0]: give one of file, text, catalog, range, not none"),
        (
            {"patches": [{"name": "p", "text": "x", "catalog": "vfs-iget-rcu"}]},
            "patches[0]: give one of file, text, catalog, range, not text and catalog",
        ),
        (
            {"patches": [{"name": "a b", "text": "x"}]},
            'patches[0].name: "a b" has characters that are not allowed',
        ),
        ({"patches": [{"name": "a+b", "text": "x"}]}, 'patches[0].name: "a+b" has characters'),
        ({"patches": [{"name": "base", "text": "x"}]}, 'patches[0].name: "base" is reserved for a variant'),
        (
            {"patches": [{"name": "p", "text": "x", "requires": ["q"]}]},
            'patches[0].requires: there is no switch "q"; there are no others',
        ),
        (
            {"patches": [{"name": "p", "text": "x", "excludes": ["p"]}]},
            'patches[0].excludes: switch "p" names itself',
        ),
        (
            {"patches": [{"name": "p", "text": "x"}, {"name": "p", "text": "y"}]},
            'patches[0].name: two switches are named "p"; each needs its own name',
        ),
        (
            {"patches": [{"name": "p", "catalog": "vfs-iget-rc"}]},
            'patches[0].catalog: there is no switch "vfs-iget-rc"; did you mean "vfs-iget-rcu"?',
        ),
        ({"patches": [{"name": "p", "range": "--all"}]}, 'patches[0].range: "--all" has characters'),
        ({"patches": [{"name": "p", "file": "x.patch"}]}, "patches[0].file: files are read by labctl only"),
        (
            {"configs": [{"name": "c", "lines": []}]},
            "configs[0].lines: give at least 1 entry",
        ),
        ({"tree": None}, "give one of tree (a registered tree) and git (a URL or path)"),
        ({"git": "https://x/y"}, "give one of tree (a registered tree) and git (a URL or path)"),
        ({"base": "-x y"}, 'base: "-x y" has characters that are not allowed'),
        ({"name": "two\nlines"}, 'name: "two lines" has characters that are not allowed'),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_the_way_out(fields: dict[str, Any], line: str) -> None:
    assert refused(**fields).startswith(line)


def test_further_faults_are_counted_and_kept_as_detail() -> None:
    with pytest.raises(SpecError, match=r"\(and 1 more\)$") as caught:
        spec_from_mapping(small(design="x", measure={"boots": 0}))
    assert len(caught.value.detail.splitlines()) == 2


def test_text_that_is_no_toml_is_refused() -> None:
    with pytest.raises(SpecError, match="not valid TOML"):
        read_spec(b"name = ", None)
    with pytest.raises(SpecError, match="not valid TOML"):
        read_spec(b"\xff", None)


def test_a_patch_file_that_is_missing_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r'patches\[0\]\.file: cannot read "0001.patch" in .*No such file'):
        read_spec(PRODUCT, tmp_path)


def test_a_patch_file_that_is_not_utf_8_keeps_its_bytes_in_a_plain_description(tmp_path: Path) -> None:
    (tmp_path / "0001.patch").write_bytes(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\xe9\n+\xe8\n")
    spec = read_spec(PRODUCT, tmp_path)
    text = next(patch.text for patch in spec.patches if patch.text)
    assert "\n-=E9\n+=E8\n" in text
    (patch,) = read_series(text.encode()).patches
    assert patch.diff.encode("utf-8", "surrogateescape").endswith(b"\n-\xe9\n+\xe8\n")


def test_a_patch_file_and_a_text_together_are_refused(tmp_path: Path) -> None:
    mapping = small(patches=[{"name": "p", "file": "x", "text": "y"}])
    (tmp_path / "x").write_text("z")
    with pytest.raises(SpecError, match="not file and text"):
        spec_from_mapping(mapping, tmp_path)


@pytest.mark.parametrize("patches", [5, {}, [5], [{"file": 5}], "x"])
def test_nonsense_of_any_shape_is_a_fault_of_the_submission(patches: object, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        spec_from_mapping(small(patches=patches), tmp_path)


def test_few_boots_are_enough_where_they_agree_to_the_last_instruction() -> None:
    spec = spec_from_mapping(small(measure={"clock": "instructions"}))
    assert spec.measure.boots == 2
    assert spec_from_mapping(small(measure={"boots": "auto"})).measure.boots == "auto"


@pytest.mark.parametrize("given", [{"base": "\0v6.1"}, {"patches": [{"name": "p", "range": "a\0..b"}]}])
def test_a_revision_has_no_control_characters(given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="characters that are not allowed there"):
        spec_from_mapping(small(**given))
