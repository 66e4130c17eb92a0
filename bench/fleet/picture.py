# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the cost of a run as the fleet grows, as a small SVG with logarithmic axes."""

import math
from collections.abc import Callable, Sequence

from bench.fleet.report import Growth

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 150, 40, 48
# Colours that stay apart for people who see no red or green; Okabe and Ito.
LINES: tuple[tuple[str, str, Callable[[Growth], float]], ...] = (
    ("CPU of the service, ms", "#0072b2", lambda growth: growth.service_ms),
    ("of it PostgreSQL, ms", "#d55e00", lambda growth: growth.cpu_ms["postgres"]),
    ("CPU of the hosts, ms", "#009e73", lambda growth: growth.cpu_ms["hosts"]),
    ("statements", "#cc79a7", lambda growth: growth.statements),
    ("Redis operations", "#666666", lambda growth: growth.redis),
    ("database, kB", "#000000", lambda growth: growth.kilobytes),
)


def draw_growth(rows: Sequence[Growth]) -> str:
    """Return the picture."""
    values = [max(1.0, of(row)) for row in rows for _, _, of in LINES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = (
        math.log10(rows[0].targets),
        max(math.log10(rows[-1].targets), math.log10(rows[0].targets) + 1),
    )

    def x(targets: float) -> float:
        return LEFT + (math.log10(targets) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (math.log10(max(1.0, value)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 20, "The cost of one run as the fleet grows", "start", 14)]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, at + 4, f"{10**power:,}", "end"))
    parts += [_text(x(row.targets), HEIGHT - BOTTOM + 20, f"{row.targets:,}") for row in rows]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "targets"))
    ends = _apart([y(of(rows[-1])) for _, _, of in LINES])
    for (name, colour, of), end in zip(LINES, ends, strict=True):
        points = " ".join(f"{x(row.targets):.1f},{y(of(row)):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(WIDTH - RIGHT + 8, end + 4, name, "start", 11, colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img">'
    title = "<title>The cost of one run for fleets of several sizes, logarithmic axes</title>"
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, title, ground, *parts, "</svg>", ""])


def _apart(places: Sequence[float], least: float = 14.0) -> list[float]:
    """Move labels down until none covers another."""
    positions = list(places)
    below = -math.inf
    for number in sorted(range(len(places)), key=lambda number: places[number]):
        positions[number] = below = max(places[number], below + least)
    return positions


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 12, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{text}</text>'
