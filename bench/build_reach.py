# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU time that gcc takes for the objects that a change truly reaches: no build of the change can compile less."""

from collections.abc import Sequence
from pathlib import Path

from bench.speed import Used, cpu_seconds
from kernels.builds import kbuild
from kernels.builds.layers import Layers, own_directory
from kernels.builds.request import BuildRequest
from kernels.files.scratch import scratch
from kernels.sandbox.command import Layer, Limits, SandboxPlace, run

# kbuild keeps each object's command beside it; behind a semicolon come the checks of the object.
_COMPILE = r"""
while read -r object; do
    kept=$(dirname "$object")/.$(basename "$object").cmd
    command=$(sed -n 's/^cmd_[^ ]* := //p; q' "$kept")
    command=${command%%" ; "*}
    case $command in gcc\ *) eval "$command" || exit 1 ;; esac
done < /build/out/objects
"""


def reach(home: Path, request: BuildRequest, objects: Path, names: Sequence[str]) -> Used:
    """Compile these objects of a base once more, one after the other; return what that used.

    objects: the base's object directory, which stays as it is. names: in it. Raises RuntimeError if one does not compile.
    """
    layers = Layers(home)
    with (
        scratch(layers.scratch) as own,
        layers.source(request.tree, request.base.tree_id, lambda: None) as source,
    ):
        out = own_directory(own / "out")
        (out / "objects").write_text("".join(f"{name}\n" for name in names))
        (own / "work").mkdir()
        place = SandboxPlace(Layer(source), Layer(objects, own_directory(own / "upper")), out, own / "work")
        with cpu_seconds() as used:
            ended = run(["bash", "-c", _COMPILE], place, dict(kbuild.ENVIRONMENT), Limits())
        if ended.status:
            raise RuntimeError("an object of the base does not compile again by the command that kbuild kept")
    return used
