# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as files: what they hold, what they are called, and what is refused."""

import gzip
import json
import re
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from django.test import Client

from lab.models import Experiment, Profile
from lab.models.states import ExperimentState, Role
from lab.profiles.analysis.frame_tree import build_tree, pack, stacks_of, unpack
from lab.tests.factories import make_case, make_experiment, make_run, make_twin, make_variant

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>"
IDLE = ("swapper", "do_idle", "default_idle")
BOOTS = 3
Stacks = dict[tuple[str, ...], int]


def add_profile(experiment: Experiment, stacks: Stacks, *, switch: str = "", twin: bool = False) -> Profile:
    """One more profiled boot of the variant with that switch, made if there is none."""
    names = [switch] if switch else []
    row = experiment.variants.filter(switches=names, role=Role.AA if twin else variant_role(switch)).first()
    if row is None:
        row = make_twin(experiment) if twin else make_variant(experiment, *names)
    case = experiment.cases.first() or make_case(experiment)
    run = make_run(row, case, purpose="profiled", block=row.runs.count(), state="done", outcome="finished")
    tree = build_tree(stacks.items())
    return Profile.objects.create(run=run, samples=tree.samples, tree=pack(tree))


def variant_role(switch: str) -> Role:
    return Role.CANDIDATE if switch else Role.BASE


def stacks(reads: int, boot: int) -> Stacks:
    return {
        ("showgids", "path_openat", "kernfs_iop_permission", "down_read.isra.0"): 10 * reads + boot,
        ("showgids", "path_openat", HOSTILE): 10 * (100 - reads) - boot,
        IDLE: 500,
    }


@pytest.fixture
def experiment(db: None) -> Experiment:
    made = make_experiment(state=ExperimentState.DONE, profile=True)
    for boot in range(BOOTS):
        add_profile(made, stacks(68, boot))
        add_profile(made, stacks(26, boot), switch="p")
    return made


def get(client: Client, address: str, **headers: str) -> Any:
    response = client.get(address, headers=headers)
    assert response.headers["X-Content-Type-Options"] == "nosniff" or response.status_code != 200
    return response


def place(experiment: Experiment) -> str:
    return f"/experiments/{experiment.pk}/profile/{experiment.cases.get().pk}"


def test_a_boots_tree_is_the_bytes_that_are_stored(client: Client, experiment: Experiment) -> None:
    profile = Profile.objects.all()[0]
    response = get(client, f"/profiles/{profile.run_id}.tree")
    assert response.content == bytes(profile.tree)
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"] == f'attachment; filename="profile-{profile.run_id}.tree"'


@pytest.mark.parametrize("form", ["folded", "script.txt", "speedscope.json", "pb.gz", "svg"])
def test_a_boot_comes_in_every_form_and_is_saved_not_shown(
    client: Client, experiment: Experiment, form: str
) -> None:
    response = get(client, f"/profiles/{Profile.objects.all()[0].run_id}.{form}")
    assert response.status_code == 200
    assert response.headers["Content-Disposition"].startswith("attachment")


def test_all_boots_of_a_variant_are_added_up_under_the_names_of_the_source(
    client: Client, experiment: Experiment
) -> None:
    tree = unpack(get(client, f"{place(experiment)}/variant.tree?variant=p").content)
    assert dict(stacks_of(tree))["showgids", "path_openat", "kernfs_iop_permission", "down_read"] == 783
    assert IDLE not in dict(stacks_of(tree))
    with_idle = unpack(get(client, f"{place(experiment)}/variant.tree?variant=p&idle=1").content)
    assert dict(stacks_of(with_idle))[IDLE] == 1500


def test_a_difference_tells_of_each_frame_both_counts_and_how_certain_it_is(
    client: Client, experiment: Experiment
) -> None:
    difference = json.loads(get(client, f"{place(experiment)}/difference.json?base=base&variant=p").content)
    columns = ("parent", "name", "base", "candidate", "q", "log_ratio", "q_samples", "log_ratio_samples")
    assert len({len(difference[column]) for column in columns}) == 1
    node = difference["name"].index(difference["names"].index("down_read"))
    assert (difference["base"][node], difference["candidate"][node]) == (2043, 783)
    assert difference["log_ratio"][node] == pytest.approx(-1.383, abs=0.01)
    assert difference["q"][node] < difference["certain"]
    assert [(side["name"], side["boots"], side["samples"]) for side in difference["sides"]] == [
        ("base", 3, 3000),
        ("p", 3, 3000),
    ]
    assert difference["raw"] == {str(difference["names"].index("down_read")): ["down_read.isra.0"]}
    assert difference["doubt"] == ""
    assert difference["q"][difference["name"].index(difference["names"].index("do_idle"))] is None


def test_the_bases_twin_is_more_of_the_base_but_not_against_itself(
    client: Client, experiment: Experiment
) -> None:
    add_profile(experiment, stacks(68, 4), twin=True)
    difference = json.loads(get(client, f"{place(experiment)}/difference.json?variant=p").content)
    assert [side["boots"] for side in difference["sides"]] == [4, 3]
    difference = json.loads(get(client, f"{place(experiment)}/difference.json?variant=base-again").content)
    assert [side["boots"] for side in difference["sides"]] == [3, 1]


def test_a_folded_difference_has_two_counts_a_line(client: Client, experiment: Experiment) -> None:
    text = get(client, f"{place(experiment)}/difference.folded?variant=p").content.decode()
    assert "showgids;path_openat;kernfs_iop_permission;down_read 2043 783\n" in text


@pytest.mark.parametrize("form", ["variant.svg?variant=p", "difference.svg?variant=p"])
def test_a_picture_holds_names_as_text_only(client: Client, experiment: Experiment, form: str) -> None:
    response = get(client, f"{place(experiment)}/{form}")
    picture = Xml.fromstring(response.content)
    kinds = {element.tag.rsplit("}", 1)[1] for element in picture.iter()}
    assert kinds == {"svg", "title", "rect", "text", "g"}
    assert HOSTILE in "".join(picture.itertext())


def test_the_mails_text_trees_of_all_variants(client: Client, experiment: Experiment) -> None:
    text = get(client, f"{place(experiment)}/callers.txt?symbols=down_read,up_read").content.decode()
    assert "base, 3 boots, 3,000 samples of busy CPUs" in text
    heads = re.findall(r"^-.*down_read$", text, re.MULTILINE)
    assert heads == [
        "-   68.10%    68.10%  showgids  [kernel.kallsyms]  [k] down_read",
        "-   26.10%    26.10%  showgids  [kernel.kallsyms]  [k] down_read",
    ]


def test_a_symbol_opens_into_its_callers_and_callees(client: Client, experiment: Experiment) -> None:
    symbol = json.loads(get(client, f"{place(experiment)}/symbol.json?symbol=path_openat").content)
    assert symbol["variants"] == ["base", "p"]
    assert [row["caller"] for row in symbol["callers"]] == ["showgids"]
    assert {row["caller"] for row in symbol["callees"]} == {HOSTILE, "kernfs_iop_permission"}
    none = json.loads(get(client, f"{place(experiment)}/symbol.json?symbol=nothing").content)
    assert none["callers"] == []


def test_long_answers_are_squeezed_for_who_takes_that(client: Client, experiment: Experiment) -> None:
    add_profile(experiment, {("main", f"function_{number}"): 3 for number in range(900)})
    address = f"{place(experiment)}/difference.json?variant=p"
    squeezed = get(client, address, accept_encoding="gzip")
    assert squeezed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(squeezed.content) == get(client, address).content


@pytest.mark.parametrize(
    ("address", "status", "line"),
    [
        ("/profiles/999999.tree", 404, "there is no profile of run 999999"),
        (
            "{place}/variant.tree?variant=q",
            404,
            'no profile of a variant "q" in this case; there are: base, p',
        ),
        ("{place}/difference.json?variant=q", 404, "there are: base, p"),
        ("{place}/difference.tree?variant=p", 404, 'no format "tree"; there are: json, folded, svg'),
        ("{place}/callers.txt?variant=q", 404, "there are: base, p"),
    ],
)
def test_what_there_is_no_file_of_is_one_line_of_text(
    client: Client, experiment: Experiment, address: str, status: int, line: str
) -> None:
    response = client.get(address.format(place=place(experiment)))
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("text/plain")
    assert line in response.content.decode()


def test_a_damaged_profile_is_one_line_of_text(client: Client, experiment: Experiment) -> None:
    profile = Profile.objects.all()[0]
    Profile.objects.filter(pk=profile.pk).update(tree=b"\x00")
    for address in (f"/profiles/{profile.run_id}.folded", f"{place(experiment)}/difference.json?variant=p"):
        response = client.get(address)
        assert (response.status_code, b"a stored profile is damaged" in response.content) == (422, True)


def test_a_profile_that_would_be_gigabytes_of_text_is_refused_as_text(
    client: Client, experiment: Experiment
) -> None:
    deep = tuple(f"{'f' * 200}{depth}" for depth in range(500))
    wide = {(*deep, f"leaf{number}"): 1 for number in range(1_000)}
    profile = add_profile(experiment, wide, switch="p")
    response = client.get(f"/profiles/{profile.run_id}.folded")
    assert (response.status_code, b"the limit is 64" in response.content) == (422, True)
    assert client.get(f"/profiles/{profile.run_id}.tree").status_code == 200
    assert client.get(f"/profiles/{profile.run_id}.svg").status_code == 200


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({("a", "b"): 300}, "no symbol in common"),
        ({IDLE: 300}, "no sample of a busy CPU"),
    ],
)
def test_profiles_that_cannot_be_compared_say_so(
    client: Client, experiment: Experiment, other: Stacks, line: str
) -> None:
    for _ in range(2):
        add_profile(experiment, other, switch="odd")
    difference = json.loads(get(client, f"{place(experiment)}/difference.json?variant=odd").content)
    assert line in difference["doubt"]


def test_a_difference_seen_from_a_symbols_callers_has_its_certainty(
    client: Client, experiment: Experiment
) -> None:
    address = f"{place(experiment)}/difference.json?variant=p&callers=down_read"
    difference = json.loads(get(client, address).content)
    names = [difference["names"][name] for name in difference["name"]]
    assert names == ["down_read", "down_read", "kernfs_iop_permission", "path_openat", "showgids"]
    assert difference["base"][-1] == 680 * BOOTS + 3
    assert difference["q"][-1] < 0.05
    assert [side["samples"] for side in difference["sides"]] == [1000 * BOOTS] * 2
    assert json.loads(get(client, address.replace("down_read", "*")).content)["names"].count(HOSTILE) == 1


def test_both_halves_of_a_sandwich_come_in_every_form(client: Client, experiment: Experiment) -> None:
    variant, differs = (
        f"{place(experiment)}/{name}" for name in ("variant.folded?variant=p", "difference.folded?variant=p")
    )
    assert get(client, f"{variant}&callees=path_openat").content.decode().splitlines() == [
        "path_openat;<img src=x onerror=alert(1)> 2217",
        "path_openat;kernfs_iop_permission;down_read 783",
    ]
    assert (
        get(client, f"{variant}&callers=down_read").content
        == b"down_read;kernfs_iop_permission;path_openat;showgids 783\n"
    )
    assert get(client, f"{differs}&callees=down_read").content == b"down_read 2043 783\n"
    tree = unpack(
        get(client, f"{place(experiment)}/variant.tree?variant=p&callees=path_openat&idle=1").content
    )
    assert tree.samples == 3000
    both = get(client, f"{variant}&callees=down_read&callers=down_read")
    assert (both.status_code, both.content) == (
        404, b"callers and callees are two trees: request one at a time\n",
    )  # fmt: skip
    assert (
        b"what down_read calls"
        in get(client, f"{place(experiment)}/difference.svg?variant=p&callees=down_read").content
    )


def test_both_halves_of_a_sandwich_come_over_rest(client: Client, experiment: Experiment) -> None:
    at = f"/api/v1/experiments/{experiment.pk}/profile/folded/?variant=p"
    assert get(client, f"{at}&callees=down_read").content == b"down_read 783\n"
    assert get(client, f"{at}&callers=down_read&base=base").content.decode().endswith(";showgids 2043 783\n")
    both = get(client, f"{at}&callers=down_read&callees=down_read")
    assert both.status_code == 422
    assert "they are two trees" in both.content.decode()


@pytest.mark.parametrize("sides", ["variant=p", "variant=p&against=base", ""])
def test_the_page_of_a_symbol_links_to_both_halves_as_files(
    client: Client, experiment: Experiment, sides: str
) -> None:
    text = client.get(f"{place(experiment)}/?{sides}&around=kernfs_iop_permission").content.decode()
    halves = re.findall(r'href="([^"]+&amp;calle(?:r|e)s=kernfs_iop_permission)"', text)
    bodies = [get(client, half.replace("&amp;", "&")).content.decode() for half in halves]
    callers, callees = (body for body in bodies if not body.startswith("<svg"))
    assert len(bodies) == 4
    assert callers.startswith("kernfs_iop_permission;path_openat;showgids ")
    assert callees.startswith("kernfs_iop_permission;down_read ")
    assert "callees=" not in client.get(f"{place(experiment)}/?{sides}&around=nobody").content.decode()
