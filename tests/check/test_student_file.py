"""Files exported from notebooks: read as Python, with every line number kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.check.student_file import blank_magics, read_student_file, remarks_on_text


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def notebook(*cells: tuple[str, str]) -> str:
    return json.dumps({"cells": [{"cell_type": kind, "source": text} for kind, text in cells], "nbformat": 4})


def test_magics_are_blanked_line_for_line() -> None:
    text = "!pip install torch \\\n  numpy\n%time f()\nfiles = !ls\nif x:\n    !ls\n    y = 1\ntorch.tril?\n"
    blanked = blank_magics(text)
    assert blanked.split("\n") == ["pass", "", "pass", "files = None", "if x:", "    pass", "    y = 1", "pass", ""]


def test_a_percent_sign_that_starts_a_line_of_python_is_left_alone(tmp_path: Path) -> None:
    text = "x = (7\n     % 4)\n"
    assert read_student_file(write(tmp_path, "a.py", text)).text == text


@pytest.mark.parametrize("marker", ["# In[3]:", "# %%", "# COMMAND ----------"])
def test_a_downloaded_notebook_is_read(marker: str, tmp_path: Path) -> None:
    text = f"{marker}\n!pip install x\n\n{marker}\ndef attn_softmax(A):\n    return A\n"
    source = read_student_file(write(tmp_path, "a.py", text))
    assert source.text.split("\n")[4] == "def attn_softmax(A):"
    assert source.where(5) == "a.py:5"


def test_a_notebook_is_its_code_cells_and_lines_lead_back_to_them(tmp_path: Path) -> None:
    text = notebook(
        ("markdown", "# Attention"),
        ("code", "import torch\nx = 1"),
        ("code", "%%bash\necho (\nls"),
        ("code", "%%time\ny = 2\nz = 3"),
    )
    source = read_student_file(write(tmp_path, "a.ipynb", text))
    assert source.text.split("\n") == ["import torch", "x = 1", "", "", "", "pass", "y = 2", "z = 3"]
    assert source.where(2) == "a.ipynb, code cell 1, line 2"
    assert source.where(7) == "a.ipynb, code cell 3, line 2"


def test_a_syntax_error_is_one_sentence_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^a\.py:3 is not valid Python \(.*\): correct that line first\.$"):
        read_student_file(write(tmp_path, "a.py", "!ls\nx = 1\ndef f(:\n"))
    cells = notebook(("code", "x = 1"), ("code", "y = 2\nreturn 3"))
    with pytest.raises(UserError, match=r"^a\.ipynb, code cell 2, line 2 is not valid Python"):
        read_student_file(write(tmp_path, "a.ipynb", cells))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"x", "neither a .py file nor an .ipynb notebook"),
        ("a.py", b"\xff\xfe\x00x", "not UTF-8"),
        ("a.py", b"x = 1\x00", "not valid Python"),
        ("a.ipynb", b"{", "not valid JSON"),
        ("a.ipynb", b"[1]", "no list of cells"),
        ("a.ipynb", b'{"worksheets": []}', "no list of cells"),
        ("missing.py", None, "does not exist"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(name: str, content: bytes | None, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=sentence) as error:
        read_student_file(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        read_student_file(tmp_path / "a.py")


def test_loops_over_data_and_second_definitions_get_a_remark(tmp_path: Path) -> None:
    text = (
        "def attn_softmax(A):\n    return [row for row in A]\n"
        "def compute_outputs(A, V):\n    for x in (A, V):\n        pass\n"
        "def merge_heads(y):\n    while y:\n        pass\n"
        "def merge_heads(y):\n    return y\n"
    )
    source = read_student_file(write(tmp_path, "a.py", text))
    remarks = remarks_on_text(source)
    assert [(remark.line, remark.text.split(":")[0]) for remark in remarks] == [
        (2, "attn_softmax has a Python loop"),
        (7, "merge_heads has a Python loop"),
        (9, "merge_heads is defined twice"),
    ]
