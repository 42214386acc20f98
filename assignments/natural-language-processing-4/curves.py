"""Accuracy by step as an SVG file, with the standard library alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from files import write_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # distinct for the colour-blind as well
WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 40, 50  # margins


class Curve(NamedTuple):
    name: str
    points: Sequence[Sequence[float]]
    """Step and accuracy."""
    colour: int | None = None
    """By number; None: the place of the curve. Curves of one name have one entry in the legend."""


def draw(path: Path, title: str, curves: Sequence[Curve]) -> None:
    steps = [point[0] for curve in curves for point in curve.points]
    shares = [point[1] for curve in curves for point in curve.points]
    last, low, high = max(steps), floor(min(shares) * 20) / 20, ceil(max(shares) * 20) / 20  # whole 5%
    high = max(high, low + 0.05)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(share: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - share) / (high - low)

    parts = [_text(LEFT, TOP - 16, title, 'font-size="15"')]
    for n in range(round((high - low) * 20) + 1):
        share = low + n / 20
        parts.append(_line(LEFT, y(share), WIDTH - RIGHT, y(share), "#ddd"))
        parts.append(_text(LEFT - 8, y(share) + 4, f"{share:.0%}", 'text-anchor="end"'))
    for quarter in range(5):
        step = last * quarter / 4
        parts.append(_text(x(step), HEIGHT - BOTTOM + 20, f"{step:.0f}", 'text-anchor="middle"'))
    parts.append(_text(x(last / 2), HEIGHT - 10, "step", 'text-anchor="middle"'))
    legend: dict[str, str] = {}
    for place, curve in enumerate(curves):
        colour = COLOURS[(place if curve.colour is None else curve.colour) % len(COLOURS)]
        legend[curve.name] = colour
        points = " ".join(f"{x(step):.1f},{y(share):.1f}" for step, share in curve.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(s):.1f}" cy="{y(a):.1f}" r="3" fill="{colour}"/>' for s, a in curve.points]
    for place, (name, colour) in enumerate(legend.items()):
        height = TOP + 8 + 20 * place
        parts.append(_line(WIDTH - RIGHT + 12, height, WIDTH - RIGHT + 32, height, colour, 2))
        parts.append(_text(WIDTH - RIGHT + 38, height + 4, name))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    body = "\n".join([f"{head} {style}>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *parts, "</svg>\n"])
    write_whole(path, [body.encode()])


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'
