"""The page contains everything and nothing that a text could break; its numbers are the weights."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.interpret.subjects import TEXT, subject
from tests.tiny_models import tiny_model

from attnlab.base.errors import UserError
from attnlab.interpret import attention_page
from attnlab.interpret.attention_figures import save_figure
from attnlab.interpret.attention_page import MODULES, PAGE, bundle, label, page_data, write_attention_page
from attnlab.interpret.maps import AttentionMaps, attention_maps
from attnlab.interpret.subject import open_subject

MEAN = 'a</script><script>alert(1)</script><img src="http://x.invalid/"> & $x_1$ [red]"'


class Parts(HTMLParser):
    """All tags with their attributes, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    return attention_maps(subject("naive-mask"), TEXT)


def written(folder: Path, maps: AttentionMaps) -> Parts:
    write_attention_page(folder / "page.html", maps)
    return Parts((folder / "page.html").read_text(encoding="utf-8"))


def decoded(data: dict[str, Any], place: int) -> torch.Tensor:
    stored = data["tensors"][place]
    numbers = np.frombuffer(base64.b64decode(stored["data"]), "<f4")
    return torch.from_numpy(numbers.copy()).reshape(stored["shape"])


def test_the_data_of_the_page_are_the_weights(maps: AttentionMaps, tmp_path: Path) -> None:
    data = json.loads(written(tmp_path, maps).scripts[0])
    for stored, each in zip(data["attentions"], maps.attentions, strict=True):
        assert each.weights is not None and each.influence is not None
        assert torch.equal(decoded(data, stored["weights"]), each.weights)
        assert torch.equal(decoded(data, stored["influence"]["matrix"]), each.influence.matrix)
    assert data["sides"] == [{"tokens": [label(token) for token in TEXT], "special": [False] * len(TEXT)}]


def test_nothing_is_loaded_from_elsewhere(maps: AttentionMaps, tmp_path: Path) -> None:
    parts = written(tmp_path, maps)
    for tag, attributes in parts.tags:
        assert not {"src", "href", "srcset", "action", "onload", "onclick"} & set(attributes), (tag, attributes)
    policy = next(each["content"] for _, each in parts.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert "http" not in bundle().replace("http://www.w3.org/2000/svg", "")


def test_a_text_cannot_leave_its_place(tmp_path: Path) -> None:
    looked_at = open_subject(tiny_model(tmp_path / "model", max_position_embeddings=80))
    looked_at.name = MEAN
    looked_at.reader = _mean(looked_at.reader)
    maps = attention_maps(looked_at, "the film")
    parts = written(tmp_path, maps)
    assert [tag for tag, _ in parts.tags].count("script") == 2 and "img" not in [tag for tag, _ in parts.tags]
    assert json.loads(parts.scripts[0])["sides"][0]["tokens"][0] == label(MEAN)
    for arguments in ((), (0, 1)):
        assert save_figure(tmp_path / "figure.png", maps, *arguments).stat().st_size > 1000


def _mean(reader: Any) -> Any:
    def read(text: str, second: str | None) -> Any:
        read = reader(text, second)
        read.tokens[0] = MEAN
        return read

    return read


def test_modules_can_be_put_one_after_the_other() -> None:
    """Imports come before the module that uses them, all on lines of their own; nothing ends the script."""
    assert {f"{name}.js" for name in MODULES} == {path.name for path in PAGE.glob("*.js")}
    for n, name in enumerate(MODULES):
        imported = [line for line in (PAGE / f"{name}.js").read_text().splitlines() if line.startswith("import ")]
        assert all(line.rpartition('"./')[2].removesuffix('.js";') in MODULES[:n] for line in imported)
    assert "</script" not in bundle() and "<!--" not in bundle()


def test_what_is_large_loses_its_steps_then_is_refused(maps: AttentionMaps, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = page_data(maps)
    assert all(each["steps"] for each in whole["attentions"]) and not whole["notes"]
    monkeypatch.setattr(attention_page, "LARGEST", 2 * (4 + 1) * len(TEXT) ** 2 * 4)
    smaller: Any = page_data(maps)
    assert not any(each["steps"] for each in smaller["attentions"])
    assert "no cell can be stepped through" in smaller["notes"][0]
    monkeypatch.setattr(attention_page, "LARGEST", 1000)
    with pytest.raises(UserError, match=r"MB of weights.*shorten the text, or give one --layer"):
        page_data(maps)


def test_only_our_own_pages_are_overwritten(maps: AttentionMaps, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_attention_page(page, maps)
    write_attention_page(page, maps)
    page.write_text("<p>mine</p>")
    with pytest.raises(UserError, match="was not written by attnlab inspect"):
        write_attention_page(page, maps)
    assert page.read_text() == "<p>mine</p>"
    for wrong, said in ((tmp_path, "is a folder"), (tmp_path / "no" / "page.html", "there is no folder")):
        with pytest.raises(UserError, match=said):
            write_attention_page(wrong, maps)
