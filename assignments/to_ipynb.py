"""Turn a notebook kept as plain Python cells into an .ipynb, with the standard library only.

    python assignments/to_ipynb.py assignments/attention-and-transformers/A2S1.py

writes the .ipynb next to it. A line `# %%` starts a code cell, `# %% [markdown]` a text cell.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

MARKER = re.compile(r"^# %%(.*)$", re.MULTILINE)


def notebook(source: str) -> dict[str, Any]:
    """The cells of the source as a notebook of format 4."""
    before, *parts = MARKER.split(source)
    cells = [_cell("", before)] if before.strip() else []
    cells += [_cell(kind, text) for kind, text in zip(parts[::2], parts[1::2], strict=True)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


def _cell(kind: str, text: str) -> dict[str, Any]:
    text = text.strip("\n")
    if "[markdown]" in kind:
        lines = re.sub(r"^# ?", "", text, flags=re.MULTILINE).splitlines(keepends=True)
        return {"cell_type": "markdown", "metadata": {}, "source": lines}
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "metadata": {}, "source": lines, "outputs": [], "execution_count": None}


def written(source: str) -> str:
    """The content of the .ipynb."""
    return json.dumps(notebook(source), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(f"usage: python {sys.argv[0]} NOTEBOOK.py ...")
    for path in map(Path, sys.argv[1:]):
        path.with_suffix(".ipynb").write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(path.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
