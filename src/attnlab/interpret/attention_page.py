"""The page of `attnlab inspect`: one self-contained HTML file around the element <attention-view>.

The element is plain JavaScript in page/, a few modules that a server can hand out as they are; here they are put
into the page one after the other, without their imports and exports. Its data are JSON: text and tokens as they
are, tensors as base64 of float32, the precision of the model, so that numbers on the page are those of the pass.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import torch
from jinja2 import Environment, PackageLoader, select_autoescape
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.interpret.maps import AttentionMap, AttentionMaps, Side
from attnlab.interpret.steps import Steps, steps_of
from attnlab.version import __version__

PAGE = Path(__file__).with_name("page")
MODULES = ("numbers", "matrix", "steps", "links", "heatmap", "keyboard", "parts", "words", "style", "attention-view")
"""In the order of their imports."""
MARK = "attnlab inspect"
LARGEST = 24_000_000
"""Bytes of tensors in a page, which base64 makes a third larger."""


@dataclass
class _Tensors:
    """Tensors as text, each content once: the layers of a T5 share their bias."""

    stored: list[dict[str, object]] = field(default_factory=list)
    places: dict[tuple[tuple[int, ...], bytes], int] = field(default_factory=dict)
    bytes: int = 0

    def add(self, tensor: Tensor | None) -> int | None:
        """The place of the tensor in the list."""
        if tensor is None:
            return None
        content = tensor.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4").tobytes()
        key = (tuple(tensor.shape), hashlib.sha256(content).digest())
        if key not in self.places:
            self.places[key] = len(self.stored)
            self.stored.append({"shape": list(tensor.shape), "data": base64.b64encode(content).decode()})
            self.bytes += len(content)
        return self.places[key]


class PageData(TypedDict):
    """ViewData of attention-view.js."""

    model: str
    text: str
    notes: list[str]
    remarks: list[str]
    sides: list[dict[str, object]]
    attentions: list[dict[str, object]]
    tensors: list[dict[str, object]]
    selected: list[int]


def page_data(maps: AttentionMaps, place: int = 0, head: int = 0) -> PageData:
    """What <attention-view> takes; the attention at `place` and its `head` are shown first.

    Above LARGEST bytes the numbers of the steps are left out, which a note says; if that is not enough it raises.
    """
    notes = list(maps.reading.notes)
    data = _packed(maps, True)
    if data.bytes > LARGEST:
        data = _packed(maps, False)
        notes.append("the text is long: the page has no queries, keys and values, so no cell can be stepped through.")
    if data.bytes > LARGEST:
        raise UserError(
            f"the page would contain {data.bytes / 1e6:.0f} MB of weights, more than {LARGEST / 1e6:.0f} MB: "
            "shorten the text, or give one --layer."
        )
    return {
        "model": maps.model,
        "text": maps.reading.text,
        "notes": notes,
        "remarks": maps.remarks,
        "sides": data.sides,
        "attentions": data.attentions,
        "tensors": data.tensors,
        "selected": [place, head],
    }


def write_attention_page(path: Path, maps: AttentionMaps, place: int = 0, head: int = 0) -> list[str]:
    """Write the page, not over a file that is none; returns what a reader should know, one sentence each."""
    check_page_path(path)
    data = page_data(maps, place, head)
    write_text(path, rendered(maps, data))
    return data["notes"]


def attention_page(maps: AttentionMaps, place: int = 0, head: int = 0) -> str:
    """The page, complete in itself, with one attention (`place`) and one of its heads shown large."""
    return rendered(maps, page_data(maps, place, head))


def rendered(maps: AttentionMaps, data: PageData) -> str:
    environment = Environment(
        loader=PackageLoader("attnlab.interpret", "page"), autoescape=select_autoescape(), keep_trailing_newline=True
    )
    script, style = bundle(), (PAGE / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        title=f"Attention of {Path(maps.model).name or maps.model}",
        mark=MARK,
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'",
        style=style,
        script=script,
        data=json_for_html(data),
        version=__version__,
    )


def check_page_path(path: Path) -> None:
    """Raise where the page cannot be written, before any work is done."""
    if not path.absolute().parent.is_dir():
        raise UserError(f"--out: there is no folder {path.parent}.")
    if path.is_dir():
        raise UserError(f"--out: {path} is a folder: give the name of a file.")
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as file:
            is_ours = f'content="{MARK}"' in file.read(2000)
        if not is_ours:
            raise UserError(f"{path} exists and was not written by attnlab inspect: give another name with --out.")


def bundle() -> str:
    """The modules as one, in which every name is visible to those after it."""
    parts = []
    for name in MODULES:
        code = (PAGE / f"{name}.js").read_text(encoding="utf-8")
        code = re.sub(r"^import [^;]*;\n", "", code, flags=re.MULTILINE)
        parts.append(re.sub(r"^export ", "", code, flags=re.MULTILINE))
    return "\n".join(parts)


def json_for_html(data: object) -> str:
    """JSON that no text in it can end or turn into markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def label(token: str) -> str:
    """A token as it is shown: white space gets a visible form."""
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥") or "∅"


@dataclass
class _Packed:
    sides: list[dict[str, object]]
    attentions: list[dict[str, object]]
    tensors: list[dict[str, object]]
    bytes: int


def _packed(maps: AttentionMaps, with_steps: bool) -> _Packed:
    tensors, sides = _Tensors(), _sides(maps)
    attentions = [_attention(each, sides, tensors, with_steps) for each in maps.attentions]
    shown = [{"tokens": [label(token) for token in side.tokens], "special": side.special} for side in sides]
    return _Packed(shown, attentions, tensors.stored, tensors.bytes)


def _sides(maps: AttentionMaps) -> list[Side]:
    """The text, and what the decoder has written."""
    sides: list[Side] = []
    for side in (side for each in maps.attentions for side in (each.queries, each.keys)):
        if all(side is not other for other in sides):
            sides.append(side)
    return sides


def _attention(each: AttentionMap, sides: list[Side], tensors: _Tensors, with_steps: bool) -> dict[str, object]:
    steps = steps_of(each.attended) if with_steps and each.attended is not None else None
    influence = each.influence
    return {
        "name": each.name,
        "heads": each.heads,
        "rows": next(n for n, side in enumerate(sides) if side is each.queries),
        "columns": next(n for n, side in enumerate(sides) if side is each.keys),
        "weights": tensors.add(each.weights),
        "influence": None
        if influence is None
        else {"matrix": tensors.add(influence.matrix), "exact": influence.exact, "probes": influence.probes},
        "agreement": each.agreement.sentence if each.agreement else "",
        "steps": None if steps is None else _steps(steps, tensors),
    }


def _steps(steps: Steps, tensors: _Tensors) -> dict[str, object]:
    return {
        "queries": tensors.add(steps.queries),
        "keys": tensors.add(steps.keys),
        "values": tensors.add(steps.values),
        "scale": steps.scale,
        "bias": tensors.add(steps.bias),
        "scores": tensors.add(steps.scores),
    }
