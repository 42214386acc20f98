"""Malformed inputs: mutations of good bytes, and values drawn by hypothesis."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Drawn = TypeVar("Drawn")

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    -(10**400),
    1e400,
    float("nan"),
    1e-320,
    "",
    " ",
    "[/]",
    "$\\frac",
    "\x1b[31mred",
    "a\u2028b\u0085c",
    "=1+1",
    "../../x",
    "\ud800",
    "x" * 3000,
    [],
    [[]],
    [None],
    ["a", 1],
    {},
    {"": None},
    {"a": {"b": {}}},
)
ODD_BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\x1b[2J\x1b]0;title\x07",
    b"[/]",
    b"[lr=0.1]",
    b"$x$",
    b"$",
    b'"',
    b"\t",
    b"\r",
    b"\n\n",
    b",,,",
    b"{",
    b"}",
    b"[" * 3000,
    b"{" * 300,
    b"- " * 300,
    b"9" * 5000,
    b"1e999",
    b"NaN",
    b"&a [*a]",
    b": ",
    b"!!python/object:os.system ",
    b"\x80\x04\x95cos\nsystem\n.",
)


def mutate(content: bytes, draw: random.Random) -> bytes:
    """One to three changes of a file's bytes, or of its values if it is JSON."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        content = (_mutate_json(content, draw) if draw.random() < 0.5 else None) or _mutate_bytes(content, draw)
    return content


def _mutate_bytes(content: bytes, draw: random.Random) -> bytes:
    start, end = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    lines = content.split(b"\n")
    line = draw.randrange(len(lines))
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: content[:start],
        lambda: content[start:],
        lambda: content[:start] + content[end:],
        lambda: content[:end] + content[start:],
        lambda: content[:start] + draw.choice(ODD_BYTES) + content[start:],
        lambda: content[:start] + draw.choice(ODD_BYTES) + content[end:],
        lambda: content[:start] + bytes([draw.randrange(256)]) + content[start + 1 :],
        lambda: content[:start] + draw.randbytes(draw.randrange(1, 40)) + content[start:],
        lambda: b"\n".join([*lines[:line], lines[line] + draw.choice(ODD_BYTES), *lines[line + 1 :]]),
        lambda: b"\n".join([*lines[:line], *lines[line + 1 :]]),
        lambda: b"\n".join([*lines[:line], lines[line], *lines[line:]]),
        lambda: b"\n".join([*lines[:line], b"  " + lines[line], *lines[line + 1 :]]),
        lambda: b"\n".join(_shuffled(lines, draw)),
        lambda: b"",
    )
    return draw.choice(choices)()


def _shuffled(lines: list[bytes], draw: random.Random) -> list[bytes]:
    return draw.sample(lines, len(lines))


def _mutate_json(content: bytes, draw: random.Random) -> bytes | None:
    """A value or a key exchanged for an odd one; None if the content is not JSON. A JSONL is changed in one line."""
    head, newline, tail = content, b"", b""
    if content.count(b"\n") > 1 and content.startswith(b"{"):
        lines = content.split(b"\n")
        at = draw.randrange(len(lines))
        head, tail = lines[at], b"\n".join(lines[at + 1 :])
        newline = b"\n".join([*lines[:at], b""])
    try:
        changed = _exchange(json.loads(head), draw)
    except (ValueError, RecursionError):
        return None if not newline else _mutate_json_whole(content, draw)
    text = json.dumps(changed).encode()
    return newline + text + b"\n" + tail if tail or newline else text


def _mutate_json_whole(content: bytes, draw: random.Random) -> bytes | None:
    try:
        return json.dumps(_exchange(json.loads(content), draw), indent=1).encode()
    except (ValueError, RecursionError):
        return None


def _exchange(value: Any, draw: random.Random) -> Any:
    """The value with one part of it exchanged, removed, or wrapped."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        kind = draw.random()
        if kind < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if kind < 0.15:
            return {draw.choice(("", "x", "[/]", "\x1b[1m")) if name == key else name: v for name, v in value.items()}
        return value | {key: _exchange(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        return [*value[:at], _exchange(value[at], draw), *value[at + 1 :]]
    return draw.choice((*ODD_VALUES, [value], {"value": value}, str(value)))


def drawn(strategy: st.SearchStrategy[Drawn], count: int, number: int) -> list[Drawn]:
    """Values of a strategy, always the same for the same number."""
    values: list[Drawn] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Drawn) -> None:
        values.append(value)

    collect()
    return values or [strategy.example()]


def json_values() -> st.SearchStrategy[Any]:
    numbers = st.booleans() | st.integers() | st.floats()
    leaves = st.none() | numbers | st.text(max_size=20) | st.sampled_from(ODD_VALUES)

    def inside(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)

    return st.recursive(leaves, inside, max_leaves=12)


def texts() -> st.SearchStrategy[str]:
    controls = ("\x1b[31m", "\u2028", "\u0085", "\x9b", "\t", "\r", "\u202e")
    odd = st.sampled_from(("[/]", "[bold]", "$", "$x_$", "=1", "%s", "{}", "~", ":bug:", *controls))
    return st.lists(odd | st.text(max_size=12), max_size=6).map("".join)
