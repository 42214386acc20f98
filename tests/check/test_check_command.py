"""`attnlab check` from outside: exit codes, output, and files that crash their process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnlab
from attnlab.check.judge.inside.limits import Limits
from attnlab.check.runner import Judge

Student = Callable[..., str]


def attnlab_check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attnlab", "check", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(Path(attnlab.__file__).parent.parent), "COLUMNS": "120"},
    )


def report(folder: Path, text: str, *options: str, name: str = "mine.py") -> tuple[int, dict[str, Any]]:
    (folder / name).write_text(text, encoding="utf-8")
    done = attnlab_check(folder / name, "--json", *options)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {r["function"]: r["status"] for r in found["results"] if not r["case"]}


def test_a_right_file_exits_with_0_and_a_table(tmp_path: Path, student: Student) -> None:
    (tmp_path / "mine.py").write_text(student() + "\nprint('demo')\n")
    done = attnlab_check(tmp_path / "mine.py")
    assert done.returncode == 0, done.stderr
    assert "18 of 18 checks pass up to stage heads" in done.stdout
    assert "demo" not in done.stdout


def test_a_wrong_file_exits_with_1_and_advice(tmp_path: Path, student: Student) -> None:
    wrong = student(attn_softmax="def attn_softmax(A):\n    return A.softmax(-2)\n")
    (tmp_path / "mine.py").write_text(wrong)
    done = attnlab_check(tmp_path / "mine.py", "--stage", "plain")
    assert done.returncode == 1
    line = wrong.splitlines().index("def attn_softmax(A):") + 1
    assert f"mine.py:{line}: attn_softmax: the numbers are wrong" in done.stdout
    for words in ("float32, entry [0, 0, 0] =", "largest difference", "softmax runs over the queries"):
        assert words in done.stdout
    assert "make_causal_mask" not in done.stdout, "a later stage was checked"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("mine.py", "x = 1\ndef f(:\n", "error: mine.py:2 is not valid Python"),
        ("absent.py", None, "absent.py does not exist"),
    ],
)
def test_an_unreadable_file_exits_with_2_and_one_sentence(
    name: str, text: str | None, sentence: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    done = attnlab_check(tmp_path / name)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ") and sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_time_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    done = attnlab_check(tmp_path / "mine.py", "--time-limit", "0")
    assert done.returncode == 2 and "above zero" in done.stderr


def test_an_endless_function_is_stopped_at_its_line(tmp_path: Path, student: Student) -> None:
    text = student(merge_heads="def merge_heads(y):\n    while True:\n        y = y + 0\n", self_attention="")
    code, found = report(tmp_path, text, "--time-limit", "5")  # enough for split_heads on a machine that is busy
    merge = next(r for r in found["results"] if r["function"] == "merge_heads")
    assert code == 1
    assert merge["problem"].startswith("stopped after 5 s")
    assert text.splitlines()[merge["line"] - 1].strip() in ("while True:", "y = y + 0")
    assert statuses(found)["split_heads"] == "pass"


@pytest.mark.slow
def test_functions_that_kill_the_process_fail_only_themselves(tmp_path: Path, student: Student) -> None:
    text = student(
        pairwise_similarities="import ctypes\ndef pairwise_similarities(Q, K):\n    ctypes.string_at(0)\n",
        split_heads="import os\ndef split_heads(Q, n_heads):\n    os._exit(0)\n",
        split_heads_qkv="",
        self_attention="",
    )
    code, found = report(tmp_path, text)
    problems = {r["function"]: r["problem"] for r in found["results"] if r["status"] == "fail"}
    assert code == 1
    assert problems["pairwise_similarities"] == "the process died of SIGSEGV"
    assert problems["split_heads"] == "the process exited with code 0"
    assert {statuses(found)[name] for name in ("attn_scaled", "make_causal_mask", "merge_heads")} == {"pass"}


def test_the_top_level_of_a_notebook_does_not_prevent_the_checks(tmp_path: Path, student: Student) -> None:
    text = (
        "# In[1]:\n!pip install mingpt\n%matplotlib inline\n"
        "get_ipython().system('ls')\nimport mingpt_of_nowhere\n# In[2]:\n"
        + student()
        + "\n# In[3]:\nprint(self_attention(*torch.randn(3, 1, 4, 8)))\nimport os\nos._exit(3)\n"
        "while True:\n    pass\nanswer = input()\nmodel = mingpt.train()\nimport sys\nsys.exit(7)\n"
    )
    code, found = report(tmp_path, text, "--time-limit", "5", name="A2S2.py")
    assert code == 0, found
    remarks = " ".join(remark["text"] for remark in found["remarks"])
    for reason in ("No module named 'mingpt_of_nowhere'", "stopped after", "EOFError", "NameError"):
        assert reason in remarks
    assert all(remark["where"].startswith("A2S2.py:") for remark in found["remarks"])


def test_a_notebook_is_checked_as_it_is(tmp_path: Path, student: Student, right_functions: dict[str, str]) -> None:
    names = list(right_functions)
    wrong = "# scores\ndef attn_scaled(A, n_embd, n_heads):\n    return A / n_embd ** 0.5\n"
    bodies = [wrong if name == "attn_scaled" else right_functions[name] for name in names]
    cells = ["import torch, math\nimport torch.nn as nn\nimport torch.nn.functional as F", *bodies]
    text = json.dumps({"cells": [{"cell_type": "code", "source": c.strip().splitlines(True)} for c in cells]})
    code, found = report(tmp_path, text, name="mine.ipynb")
    scaled = next(r for r in found["results"] if r["function"] == "attn_scaled")
    assert code == 1
    assert (scaled["mistake"], scaled["where"]) == ("scale-full-width", "mine.ipynb, code cell 4, line 2")


def test_json_is_strict_where_numbers_are_not(tmp_path: Path, student: Student) -> None:
    text = student(apply_causal_mask="def apply_causal_mask(mask, A):\n    return A * mask\n")
    (tmp_path / "mine.py").write_text(text)
    done = attnlab_check(tmp_path / "mine.py", "--json", "--stage", "causal")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads(done.stdout, parse_constant=refuse)
    mask = next(r for r in found["results"] if r["function"] == "apply_causal_mask")
    assert mask["first_difference"] == {"index": [0, 0, 1], "expected": "-inf", "came": 0.0}
    assert mask["mistake"] == "masked-with-zero" and found["passed"] is False


@pytest.mark.slow
def test_a_function_that_outlasts_the_alarm_is_killed(tmp_path: Path, student: Student, judge: Judge) -> None:
    deaf = """
        import signal
        def merge_heads(y):
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            while True:
                pass
    """
    (tmp_path / "mine.py").write_text(student(merge_heads=deaf, self_attention=""))
    found = judge.check(tmp_path / "mine.py", limits=Limits(seconds=1.0, grace_seconds=3.0))
    merge = next(result for result in found.results if result.function == "merge_heads")
    assert merge.problem == "did not return, killed after 4 s"


def test_results_are_on_disk_as_soon_as_they_are_known(tmp_path: Path, student: Student) -> None:
    (tmp_path / "mine.py").write_text(student())
    done = attnlab_check(tmp_path / "mine.py", "--record", tmp_path / "done.jsonl", "--seed", "3", "--json")
    lines = [json.loads(line) for line in (tmp_path / "done.jsonl").read_text().splitlines()]
    found = json.loads(done.stdout)
    assert lines == found["results"] and found["seed"] == 3
    refused = attnlab_check(tmp_path / "mine.py", "--record", tmp_path / "no" / "folder")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "--record" in refused.stderr
