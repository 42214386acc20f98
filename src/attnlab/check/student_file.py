"""Read a student's file: a Python file, a notebook downloaded as one, or the notebook itself.

Lines that only IPython understands (`!pip install ...`, `%matplotlib inline`) are replaced in place and code
cells are joined, so that every line number still leads back to what the student wrote.
"""

from __future__ import annotations

import ast
import bisect
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.check.results import Remark

# `!ls`, `%time f()`, `files = !ls`, `torch.tril?`
MAGIC = re.compile(r"^(?P<indent>\s*)(?P<target>[\w, ]+=\s*)?(?P<command>[!%].*|\?{1,2}[\w.]+|[\w.]+\?{1,2})\s*$")
# Cell magics whose body is Python; under any other (`%%bash`, `%%html`) the whole cell is not.
PYTHON_CELLS = {"time", "timeit", "capture", "prun"}
FUSED = {
    "scaled_dot_product_attention",
    "scaled_dot_product_flash_attention_for_cpu",
    "multi_head_attention_forward",
    "MultiheadAttention",
    "flex_attention",
    "TransformerEncoderLayer",
}
CHECKED = {
    "init_qkv_proj",
    "pairwise_similarities",
    "attn_scaled",
    "attn_softmax",
    "compute_outputs",
    "make_causal_mask",
    "apply_causal_mask",
    "split_heads",
    "split_heads_qkv",
    "merge_heads",
    "self_attention",
}


@dataclass(frozen=True)
class StudentFile:
    path: Path
    text: str
    cells: tuple[int, ...] = ()
    """For a notebook: the line of `text` on which each code cell starts."""

    def where(self, line: int | None) -> str:
        """The location of a line: `mine.py:12` or `mine.ipynb, code cell 3, line 2`."""
        if line is None:
            return self.path.name
        if not self.cells:
            return f"{self.path.name}:{line}"
        cell = bisect.bisect_right(self.cells, line)
        return f"{self.path.name}, code cell {cell}, line {line - self.cells[cell - 1] + 1}"


def read_student_file(path: Path) -> StudentFile:
    """The file as Python text that compiles, or a UserError that names the line where it does not."""
    raw = _read_text(path)
    file = _read_notebook(path, raw) if path.suffix == ".ipynb" else StudentFile(path, raw)
    error = _syntax_error(file.text)
    if error:  # only then look for magics: `% b)` can also be the second line of a Python expression
        file = StudentFile(path, blank_magics(file.text), file.cells)
        error = _syntax_error(file.text)
    if error:
        raise UserError(f"{file.where(error.lineno)} is not valid Python ({error.msg}): correct that line first.")
    return file


def _read_text(path: Path) -> str:
    if path.suffix not in (".py", ".ipynb"):
        raise UserError(f"{path} is neither a .py file nor an .ipynb notebook: give the file with your functions.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path} cannot be read ({reason}): save it again as a plain text file.") from None


def _read_notebook(path: Path, raw: str) -> StudentFile:
    """The code cells one after the other, each starting on a new line."""
    try:
        cells = [
            "".join(cell["source"])  # a list of lines or one string
            for cell in json.loads(raw)["cells"]
            if cell["cell_type"] == "code"
        ]
    except json.JSONDecodeError as error:
        raise UserError(f"{path.name}:{error.lineno} is not valid JSON: save the notebook again.") from None
    except (KeyError, TypeError):
        raise UserError(f"{path.name} has no list of cells: save the notebook again in format 4.") from None
    starts, lines = [], list[str]()
    for cell in cells:
        starts.append(len(lines) + 1)
        lines.extend(blank_foreign_cell(cell).split("\n"))
    return StudentFile(path, "\n".join(lines), tuple(starts))


def _syntax_error(text: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a string is not an error here
            compile(text, "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:  # a null byte
        return SyntaxError(str(error))
    return None


def blank_foreign_cell(cell: str) -> str:
    """A cell under `%%bash` or the like contains no Python: keep its line count, drop its text."""
    head = re.match(r"\s*%%(\w+)", cell)
    if head and head[1] not in PYTHON_CELLS:
        return "\n" * cell.count("\n")
    return cell


def blank_magics(text: str) -> str:
    """Replace IPython's commands by `pass`, line for line."""
    lines, continued = [], False
    for line in text.split("\n"):
        magic = MAGIC.match(line)
        if continued:
            lines.append("")
        elif magic:
            lines.append(magic["indent"] + (f"{magic['target']}None" if magic["target"] else "pass"))
        else:
            lines.append(line)
        continued = (continued or bool(magic)) and line.endswith("\\")
    return "\n".join(lines)


def file_facts(file: StudentFile) -> dict[str, set[str]]:
    """What the text alone shows: what `self_attention` calls, what is defined, and what is taken from attnlab."""
    body = ast.parse(file.text).body
    return {"calls": _reached(body, "self_attention"), "names": _defined(body), "from_lab": _from_lab(file.text)}


def _reached(body: list[ast.stmt], start: str) -> set[str]:
    """Every name that a function uses, and those it reaches through other functions and classes of the file."""
    used: dict[str, set[str]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            used[node.name] = names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    reached, new = set[str](), {start}
    while new:
        reached |= new
        new = set().union(*(used.get(name, set()) for name in new)) - reached
    return reached - {start}


def _defined(body: list[ast.stmt]) -> set[str]:
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return names | {n.id for node in body for n in ast.walk(node) if isinstance(n, ast.Name) and _is_stored(n)}


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _from_lab(text: str) -> set[str]:
    names = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnlab":
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def remarks_on_text(file: StudentFile) -> list[Remark]:
    """Python loops where none are needed, functions defined twice, and torch's own attention."""
    remarks = []
    seen: dict[str, int] = {}
    body = ast.parse(file.text).body
    for node in body:
        if not isinstance(node, ast.FunctionDef) or node.name not in CHECKED:
            continue
        if node.name in seen:
            remarks.append(Remark(f"{node.name} is defined twice: this definition is used", node.lineno))
        seen[node.name] = node.lineno
        if (line := _loop_line(node)) is not None:
            text = f"{node.name} has a Python loop: attention needs none, and is faster without"
            remarks.append(Remark(text, line))
    return [*remarks, *_fused_remarks(body)]


def _fused_remarks(body: list[ast.stmt]) -> list[Remark]:
    """Torch's own attention in a function that is checked, or in one that it calls."""
    remarks = {}
    for function in sorted(CHECKED):
        reached = {function} | _reached(body, function)
        for node in body:
            name = getattr(node, "name", None)
            line = _fused_line(node) if name in reached else None
            if line is not None:
                remarks[line] = Remark(
                    f"{name} leaves the work to torch's own attention: the exercise is to write it", line
                )
    return list(remarks.values())


def _fused_line(node: ast.stmt) -> int | None:
    for part in ast.walk(node):
        names = {getattr(part, "id", None), getattr(part, "attr", None), getattr(part, "value", None)}
        if isinstance(part, ast.Name | ast.Attribute | ast.Constant) and _is_fused(names):
            return part.lineno
    return None


def _is_fused(names: set[object]) -> bool:
    return any(isinstance(name, str) and name.lstrip("_") in FUSED for name in names)


def _loop_line(function: ast.FunctionDef) -> int | None:
    """The first line with a loop over data."""
    lines = []
    for node in ast.walk(function):
        if isinstance(node, ast.While) or (isinstance(node, ast.For) and not _is_short(node.iter)):
            lines.append(node.lineno)
        elif isinstance(node, ast.comprehension) and not _is_short(node.iter):
            lines.append(node.iter.lineno)
    return min(lines, default=None)


def _is_short(items: ast.expr) -> bool:
    """A loop over (Q, K, V) or range(3) is not a loop over data."""
    if isinstance(items, ast.Call):
        return ast.unparse(items.func) == "range" and all(isinstance(a, ast.Constant) for a in items.args)
    return isinstance(items, ast.Tuple | ast.List)
