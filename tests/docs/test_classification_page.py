"""docs/classification.md: the snippets of "From Python" run in order, with a tiny model for MiniLM."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_models import tiny_model

from attnlab.runs import is_run

PAGE = (Path(__file__).parents[2] / "docs" / "classification.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.partition("## From Python")[2], re.DOTALL)


@pytest.mark.slow
def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attnlab.report.figures.save", lambda figure, path: "<svg/>")
    model = tiny_model(tmp_path / "model")
    rows = [f"{word} film {n},{word}\n" for n in range(15) for word in ("good", "bad")]
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for snippet in SNIPPETS:
            exec(snippet.replace('"minilm"', repr(str(model))), names)
    assert len(SNIPPETS) == 4
    assert names["same"].predict(names["texts"]).tolist() == names["clf"].predict(names["texts"]).tolist()
    assert set(names["search"].best_params_) == {"tune", "lr"}
    assert len([path for path in (tmp_path / "runs").iterdir() if is_run(path)]) == 3 + 4 * 2 + 1
