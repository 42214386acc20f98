"""A real notebook: IPython's kernel runs its cells as for a user, with progress bars, results that show themselves,
data frames, and mistakes as sentences."""

from __future__ import annotations

from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

pytestmark = pytest.mark.slow

CELLS = {
    "setup": """
from pathlib import Path

import attnlab as lab
import torch
from torch import nn

Path("text.txt").write_text("the cat sat on the mat and the dog ate the cake. " * 60)
FAST = dict(batch_size=8, threads=1, precision="fp32")
gpt = lab.GPT(layers=2, heads=2, width=16, context=16)
""",
    "class": """
class MeanOfThePast(nn.Module):
    time = 1

    def __init__(self, shape):
        super().__init__()
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x):
        return self.output(x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None])
""",
    "train": 'run = lab.train(gpt, "text.txt", steps=6, save_every=2, keep=9, **FAST)',
    "Run": "run",
    "own": """
own = lab.GPT(attention=MeanOfThePast, layers=1, width=16, context=16)
mine = lab.train(own, "text.txt", steps=2, **FAST)
""",
    "stored": '(mine.path / "attention.py").read_text()',
    "Table": "lab.runs()",
    "frame": "lab.runs().to_pandas()",
    "mistake": 'lab.train(gpt, "nowhere.txt")',
    "AttentionMaps": 'run.inspect("the cat")',
    "HeadReport": "run.heads(draws=2)",
    "HeadHistory": "lab.head_history(run, draws=2)",
    "Ablation": 'run.ablate("text.txt", most=10)',
    "Curve": 'lab.removal_curve(run, "text.txt", most=10)',
    "TextLens": 'run.lens("the cat")',
    "Evaluation": 'run.evaluate("text.txt")',
    "Audit": "lab.audit(MeanOfThePast, cost=False, half=False)",
    "CheckReport": """
Path("mine.py").write_text("def dot_product_scores(Q, K):\\n    return Q @ K.transpose(-2, -1)\\n")
lab.check("mine.py", stage="plain")
""",
    "QueryExploration": "lab.explore.select([[1, 0], [0, 1]], [[1, 2], [3, 4]], 0)",
    "Comparison": 'lab.compare(gpt, "text.txt", attention=["vanilla", MeanOfThePast], steps=2, seeds=2, **FAST)',
    "Sweep": 'lab.sweep(gpt, "text.txt", job="language", vary={"optimizer.lr": [1e-3, 1e-2]}, steps=2, **FAST)',
    "knowledge": """
settings = {"pretrain.training.steps": 4, "finetune.training.steps": 4, "people": 20, "places": 4, "threads": 1}
asked = lab.knowledge(lab.GPT(layers=1, heads=2, width=16, context=64), **settings)
""",
    "Trace": "asked.trace(draws=1)",
    "Evaluation of answers": "asked.evaluate(unseen_names=5)",
    "QuestionLens": "asked.lens()",
    "interrupted": """
import os, signal, threading, time


def interrupt():
    while not Path("stopped/metrics.jsonl").is_file():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=interrupt).start()
lab.train(gpt, "text.txt", steps=100_000, run="stopped", evaluate_every="2 steps", **FAST)
""",
    "after": 'lab.load("stopped")',
    "plot": """
from matplotlib import pyplot
pyplot.plot([1, 2])
pyplot.show()
""",
}
RESULTS = [name for name in CELLS if name[0].isupper()]
DRAWN = set(RESULTS) - {"Table", "AttentionMaps", "Evaluation", "Audit", "CheckReport"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each cell has shown."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CONFIG", str(folder / "config"))
        patch.delenv("MPLBACKEND", raising=False)
        cells = [nbformat.v4.new_code_cell(source.strip("\n")) for source in CELLS.values()]
        client = nbclient.NotebookClient(
            nbformat.v4.new_notebook(cells=cells),
            timeout=300,
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
        )
        done = client.execute()
    return {name: cell.outputs for name, cell in zip(CELLS, done.cells, strict=True)}


def shown(outputs: list[Any], kind: str) -> list[str]:
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def test_only_the_mistake_is_an_error_and_it_is_one_sentence(outputs: dict[str, list[Any]]) -> None:
    errors = {name: output for name, cell in outputs.items() for output in cell if output.output_type == "error"}
    assert set(errors) == {"mistake", "interrupted"}
    assert errors["mistake"].ename == "UserError"
    assert errors["mistake"].evalue.endswith("nowhere.txt does not exist: check the name.")


def test_an_interrupted_kernel_leaves_a_run_that_can_be_resumed(outputs: dict[str, list[Any]]) -> None:
    (error,) = [output for output in outputs["interrupted"] if output.output_type == "error"]
    assert "\n" not in error.evalue and "stopped" in error.evalue
    assert shown(outputs["after"], "text/plain") == ["Run('stopped', language, interrupted)"]


def test_training_shows_a_bar_that_ends_full_and_no_warning(outputs: dict[str, list[Any]]) -> None:
    (bar,) = shown(outputs["train"], "text/html")
    assert '<progress value="6" max="6"></progress> 6/6' in bar and "dev: loss" in bar
    assert not [output for name in ("setup", "train") for output in outputs[name] if output.output_type == "stream"]
    bars = [bar for bar in shown(outputs["Comparison"], "text/html") if "<progress" in bar]
    assert len(bars) == 4 and all('value="2" max="2"' in bar for bar in bars)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_itself(name: str, outputs: dict[str, list[Any]]) -> None:
    (result,) = [output for output in outputs[name] if output.output_type == "execute_result"]
    page, text = result.data["text/html"], result.data["text/plain"]
    assert name == "Table" or text.startswith(name.split()[0])
    assert len(text) < 1500
    assert "<table" in page or name in ("AttentionMaps", "TextLens", "QuestionLens")
    assert ("data:image/png;base64," in page) == (name in DRAWN)
    assert "http" not in page.replace("http://www.w3.org/", "") or name == "AttentionMaps"


def test_a_table_is_a_data_frame(outputs: dict[str, list[Any]]) -> None:
    (page,) = shown(outputs["frame"], "text/html")
    assert 'class="dataframe"' in page and page.count("<td>language</td>") == 2


def test_the_class_of_a_cell_is_stored(outputs: dict[str, list[Any]]) -> None:
    (source,) = shown(outputs["stored"], "text/plain")
    assert "class MeanOfThePast(nn.Module)" in source and "import torch" in source


def test_the_plots_of_the_notebook_still_appear(outputs: dict[str, list[Any]]) -> None:
    assert shown(outputs["plot"], "image/png")
