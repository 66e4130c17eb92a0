# SPDX-License-Identifier: GPL-2.0-or-later
"""A static flame graph as SVG: no script, no style sheet, every name escaped.

Frames too thin to see are not drawn, nor those above the highest row; a line below the title says how many.
"""

import zlib
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from lab.one_line import one_line
from lab.profiles.analysis.frame_tree import FrameTree
from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.analysis.weight_unit import unit_name as amount

WIDTH, ROW, MARGIN, LETTER = 1200.0, 16, 10, 6.6
# Frames thinner than this in pixels, or higher than this in rows, are not drawn.
LEAST, ROWS = 0.3, 400
# Viewers do not show longer titles, and hostile symbols are long.
TITLE = 200


@dataclass(frozen=True, eq=False)
class Paint:
    """Colours and titles of nodes: one entry a node."""

    colours: list[str]
    words: list[str]


def write_svg(
    tree: FrameTree,
    title: str,
    paint: Paint | None = None,
    total: NDArray[np.float64] | None = None,
    *,
    unit: Unit = "samples",
) -> str:
    """The picture's text. total: float64[nodes], widths of the frames; the samples in or below them if None."""
    weights = np.asarray(tree.total if total is None else total, dtype=float)
    whole = max(float(weights[0]), 1e-300)
    scale = (WIDTH - 2 * MARGIN) / whole
    left = _lefts(tree, weights)
    depth = tree.depth
    drawn = np.flatnonzero((weights * scale >= LEAST) & (depth < ROWS))
    rows = int(depth[drawn].max(initial=0)) + 1
    height = ROW * (rows + 2) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" '
        f'font-family="monospace" font-size="11" role="img">',
        f"<title>{_text(title)}</title>",
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{MARGIN}" y="{MARGIN + 8}">{_text(title)}</text>',
        f'<text x="{MARGIN}" y="{MARGIN + 8 + ROW}" fill="#666">{_left_out(int(np.count_nonzero(weights > 0)) - len(drawn))}</text>',
    ]
    for node in drawn.tolist():
        x, width = MARGIN + left[node] * scale, weights[node] * scale
        y = height - MARGIN - ROW * (int(depth[node]) + 1)
        name = tree.names[int(tree.name[node])]
        colour = paint.colours[node] if paint else _warm(name)
        words = (
            paint.words[node]
            if paint
            else f"{amount(weights[node], unit)}, {100 * weights[node] / whole:.2f} %"
        )
        parts.append(_frame(name, words, colour, (x, y, width)))
    parts.append("</svg>\n")
    return "\n".join(parts)


def _left_out(frames: int) -> str:
    what = f"{frames:,} frames are" if frames > 1 else "1 frame is"
    return (
        f"{what} not drawn: thinner than {LEAST} of {WIDTH:.0f} pixels, or above row {ROWS}" if frames else ""
    )


def _lefts(tree: FrameTree, weights: NDArray[np.float64]) -> list[float]:
    """Return where each frame begins, in weights: siblings are side by side in preorder."""
    left, filled = [0.0] * len(tree), [0.0] * len(tree)
    for node, (above, weight) in enumerate(zip(tree.parent.tolist(), weights.tolist(), strict=True)):
        if above >= 0:
            left[node] = filled[above]
            filled[above] += weight
        filled[node] = left[node]
    return left


def _frame(name: str, words: str, colour: str, place: tuple[float, float, float]) -> str:
    x, y, width = place
    letters = int((width - 4) / LETTER)
    label = ""
    if letters >= 3:
        shown = name if len(name) <= letters else name[: letters - 1] + "…"
        label = f'<text x="{x + 2:.1f}" y="{y + 12:.1f}">{_text(shown)}</text>'
    title = f"<title>{_text(name)}: {_text(words)}</title>"
    return f'<g>{title}<rect x="{x:.1f}" y="{y:.1f}" width="{max(width - 0.2, 0.1):.1f}" height="{ROW - 1}" fill="{colour}"/>{label}</g>'


def _text(raw: str) -> str:
    short = raw if len(raw) <= TITLE else raw[: TITLE - 1] + "…"
    return escape(one_line(short), {'"': "&quot;"})


def _warm(name: str) -> str:
    """One warm colour a name, the same in every picture."""
    draw = zlib.crc32(name.encode())
    return f"rgb({205 + draw % 50},{80 + (draw >> 8) % 140},{(draw >> 16) % 55 + 40})"
