"""Wrong uses from Python: each is one sentence, and a wrong argument is refused before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.api.conftest import FAST, SHAPE, TEXT

import attnlab as lab

Use = Callable[[Any], object]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and files that are no texts."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "text.txt").write_text(TEXT)
    (folder / "empty.txt").write_text("")
    (folder / "binary.txt").write_bytes(b"\xff\xfe\x00\x01")
    lab.train(lab.GPT(**SHAPE), folder / "text.txt", steps=2, run=folder / "runs" / "r", **FAST)
    return folder


OF_A_RUN: dict[str, tuple[Use, str]] = {
    "a prompt that is a number": (lambda run: run.sample(3), "prompt: expected a text, got 3"),
    "no length": (lambda run: run.sample("a", 0), "length is 0: give at least 1 token"),
    "a length in words": (lambda run: run.sample("a", "ten"), "length: expected a whole number, got 'ten'"),
    "half a token": (lambda run: run.sample("a", 5, top_k=2.5), "top_k: expected a whole number, got 2.5"),
    "a temperature in words": (lambda run: run.sample("a", 5, temperature="hot"), "temperature: expected a number"),
    "a negative temperature": (lambda run: run.stream("a", 5, temperature=-1), "temperature is -1"),
    "no probability": (lambda run: run.sample("a", 5, top_p=0), "top_p is 0"),
    "an unknown setting": (lambda run: run.sample("a", 5, topk=2), "unknown setting 'topk': did you mean 'top_k'?"),
    "a negative seed": (lambda run: run.sample("a", 5, seed=-1), "seed must be at least 0, got -1"),
    "no samples": (lambda run: run.samples("a", 0), "number must be at least 1, got 0"),
    "a context that is too long": (lambda run: run.sample("a", 5, context=99), "at most 16 tokens at once"),
    "an unknown end": (lambda run: run.sample("a", 5, stop="xyz"), "stop 'xyz' is not one of the characters"),
    "a missing file": (lambda run: run.evaluate("no.txt"), "no.txt does not exist: check the name"),
    "a number as a file": (lambda run: run.evaluate(3), "file: expected a path, a list of texts or .* got int"),
    "a list of numbers": (lambda run: run.ablate([1, 2]), "data: expected a path, a list of texts or .* got list"),
    "a dictionary as questions": (lambda run: run.trace({"a": 1}), "questions: expected a path, .* got dict"),
    "an empty file": (lambda run: run.evaluate("empty.txt"), "empty.txt is empty"),
    "a binary file": (lambda run: run.evaluate("binary.txt"), "binary.txt, line 1 is not UTF-8"),
    "a folder as a file": (lambda run: run.evaluate("runs"), "runs is a folder: give a text file"),
    "a stride of nothing": (lambda run: run.evaluate("text.txt", stride=0), "stride is 0"),
    "a setting of evaluate": (lambda run: run.evaluate("text.txt", strid=3), "unknown setting 'strid'"),
    "questions to no one": (lambda run: run.ask("Where?"), "was not trained to answer questions"),
    "a text that is a list": (lambda run: run.inspect(["a", "b"]), "text: expected a text, got"),
    "a long text": (lambda run: run.inspect("a" * 100), "more than the model's context of 16"),
    "an empty text": (lambda run: run.lens(" "), "the text is empty"),
    "a layer that is not there": (lambda run: run.inspect("the", layer=7), "layer 7 is not there"),
    "a head that is not there": (lambda run: run.inspect("the").weights(0, 9), "head 0.9 is not there"),
    "no draws": (lambda run: run.heads(draws=0), "draws must be at least 1"),
    "a path as a text": (lambda run: run.heads(Path("text.txt")), "text: expected a text"),
    "nothing to measure on": (lambda run: run.ablate(), "give a text file"),
    "an unknown removal": (lambda run: run.ablate("text.txt", how="zap"), "unknown way of removing 'zap'"),
    "a part that is a number": (lambda run: run.ablate("text.txt", parts=[3]), "parts: expected a list of texts"),
    "no examples": (lambda run: run.ablate("text.txt", most=0), "most must be at least 1"),
    "a curve of another ablation": (
        lambda run: lab.removal_curve(run, "text.txt", most=4, ablation=run.ablate("text.txt", most=5)),
        "give that of the same examples",
    ),
    "a trace without questions": (lambda run: run.trace(), "was not trained on questions"),
    "an unknown corruption": (lambda run: run.trace(corruption="blur"), "unknown corruption 'blur'"),
    "a text and questions": (lambda run: run.lens("a", questions="q.tsv"), "give one of them"),
    "an answer without a text": (lambda run: run.lens(answer="Rome"), "an answer needs a text"),
    "numbers as questions": (lambda run: lab.finetune(run, [(1, 2)]), "a list of \\(question, answer\\) pairs"),
    "no history": (lambda run: lab.head_history("text.txt"), "text.txt is no run"),
}
OF_THE_LAB: dict[str, tuple[Callable[[], object], str]] = {
    "a dictionary as data": (lambda: lab.train(None, {"a": 1}), "expected a path, a list of texts"),  # type: ignore[arg-type]
    "a tensor as data": (lambda: lab.train(None, torch.zeros(3)), "expected a path, a list of texts"),  # type: ignore[arg-type]
    "bytes as data": (lambda: lab.train(None, b"abc"), "expected a path, a list of texts"),  # type: ignore[arg-type]
    "an empty text": (lambda: lab.train(None, "empty.txt"), "empty.txt is empty"),
    "a run that is a number": (lambda: lab.train(None, "text.txt", run=3), "run: expected a path, got 3"),
    "a recipe that is a number": (lambda: lab.train(None, "text.txt", recipe=3), "recipe: expected a path, got 3"),
    "a device": (lambda: lab.train(None, "text.txt", device="gpu"), "'gpu' is not a device"),
    "heads that do not divide": (lambda: lab.GPT(width=15, heads=2).build(5), "width 15 cannot be split into 2 heads"),
    "a vocabulary in words": (lambda: lab.GPT().build("many"), "vocabulary_size: expected a whole number"),  # type: ignore[arg-type]
    "nothing to load": (lambda: lab.load(None), "run: expected a path or a run, got None"),  # type: ignore[arg-type]
    "a state": (lambda: lab.runs(state="done"), "unknown state 'done'"),
    "no attention": (lambda: lab.compare(None, "text.txt", attention=[]), "give at least one name"),
    "no values": (lambda: lab.sweep(None, "text.txt", job="language", vary={"optimizer.lr": []}), "at least one value"),
    "an audit of a number": (lambda: lab.audit(3), "expected a name, a .py file, a class or a module, got int"),  # type: ignore[arg-type]
    "an audited width": (lambda: lab.audit("linear", width=15), "width 15 cannot be split into 4 heads"),
    "an audited shape": (lambda: lab.audit("linear", wdth=16), "unknown setting 'wdth': did you mean 'width'?"),  # type: ignore[call-arg]
    "an audited file": (lambda: lab.audit("nowhere.py"), "there is no file nowhere.py"),
    "a checked number": (lambda: lab.check(3), "file: expected a path or a run, got 3"),  # type: ignore[arg-type]
    "no time": (lambda: lab.check("text.txt", time_limit=0), "the time limit must be above zero"),
    "an unknown model": (lambda: lab.inspect("nowhere", "a text"), "is neither a folder nor a known name"),
    "no text": (lambda: lab.inspect("minilm"), "inspect: missing a required argument: 'text'"),  # type: ignore[call-arg]
    "a lens without a run": (lambda: lab.lens("nowhere", "a text"), "nowhere does not exist"),
    "shapes": (lambda: lab.explore.select([[1, 0], [0, 1]], [[1, 2]], 0), "K has 2 rows and V has 1"),
    "words as keys": (lambda: lab.explore.select([["a", "b"]], [[1, 2]], 0), "keys: expected numbers"),
    "no keys": (lambda: lab.explore.select([], [], 0), "keys: no numbers found"),
    "labels": (lambda: lab.Classifier().fit(["a", "b"], [0]), "X has 2 texts and y 1 labels"),
}


def is_one_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(lab.UserError, match=sentence) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("mistake", OF_A_RUN)
def test_a_wrong_use_of_a_run(mistake: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    use, sentence = OF_A_RUN[mistake]
    is_one_sentence(lambda: use(lab.load("runs/r")), sentence)


@pytest.mark.parametrize("mistake", OF_THE_LAB)
def test_a_wrong_use_of_the_lab(mistake: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    before = set(place.rglob("*"))
    is_one_sentence(*OF_THE_LAB[mistake])
    assert set(place.rglob("*")) == before


def test_numbers_of_numpy_are_numbers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.chdir(place)
    run = lab.load("runs/r")
    assert run.sample("the ", np.int64(5), temperature=np.float64(0.5), seed=np.int64(1)) == run.sample(
        "the ", 5, temperature=0.5, seed=1
    )
