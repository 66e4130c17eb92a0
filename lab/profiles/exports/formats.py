# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of the forms in which a profile, or the difference of two, leaves the lab, by file suffix.

Pages, API and labctl read it. To add a form, write its module and add a line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any


@dataclass(frozen=True, slots=True)
class ProfileForm:
    """One form. name: in the addresses of the API.

    writer: "module:function" below lab.profiles, imported when it is needed, since most need numpy. takes: its arguments
    beside the tree or the difference, out of title, unit and lines.
    """

    name: str
    media_type: str
    writer: str
    takes: tuple[str, ...] = ()

    def write(self, profile: Any, **context: Any) -> str | bytes:
        """Write a tree, with its title, the unit of its weights and the lines of its functions, or a difference. May raise ExportTooLarge or NoSuchForm."""
        accepted = {name: value for name, value in context.items() if name in self.takes}
        body: str | bytes = resolve_name(f"lab.profiles.{self.writer}")(profile, **accepted)
        return body


TEXT, JSON, BINARY, SVG = (
    "text/plain; charset=utf-8",
    "application/json",
    "application/octet-stream",
    "image/svg+xml",
)
TREE_FORMS: Mapping[str, ProfileForm] = {
    "tree": ProfileForm("tree", BINARY, "analysis.frame_tree:pack"),
    "folded": ProfileForm("folded", TEXT, "exports.stacks:write_folded"),
    "script.txt": ProfileForm("script", TEXT, "exports.stacks:write_script", ("unit",)),
    "speedscope.json": ProfileForm(
        "speedscope", JSON, "exports.speedscope:write_speedscope", ("title", "unit", "lines")
    ),
    "pb.gz": ProfileForm("pprof", BINARY, "exports.pprof:write_pprof", ("unit", "lines")),
    "svg": ProfileForm("svg", SVG, "exports.svg:write_svg", ("title", "unit")),
}
DIFFERENCE_FORMS: Mapping[str, ProfileForm] = {
    "json": ProfileForm("json", JSON, "exports.difference:write_json"),
    "folded": ProfileForm("folded", TEXT, "exports.difference:write_folded_pair"),
    "svg": ProfileForm("svg", SVG, "exports.difference:write_diff_svg"),
}
