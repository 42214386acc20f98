"""Training from Python is training by command: the same runs, the same sentences."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from tests.api.conftest import FAST, SHAPE, TEXT

import attnlab as lab
from attnlab.base.interrupts import Stopped
from attnlab.jobs.job import RunOptions
from attnlab.training.callbacks import Callback, StepReport, TrainState

WORLD: dict[str, Any] = {"people": 12, "places": 4}


def test_a_call_and_a_command_train_the_same_weights(small: lab.GPT, attnlab: Callable[..., Any], folder: Path) -> None:
    run = lab.train(small, "text.txt", steps=6, seed=3, **FAST)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {**SHAPE, **FAST, "steps": 6, "seed": 3}.items()]
    done = attnlab("language", "--corpus", "text.txt", "--run", "typed", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    typed = lab.load("typed")
    assert run.results["dev_loss"] == typed.results["dev_loss"]
    for ours, theirs in zip(run.model.parameters(), typed.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert run.config["model"] == typed.config["model"]


def test_a_run_shows_what_it_is(small: lab.GPT) -> None:
    run = lab.train(small, "text.txt", steps=4, run="runs/<b>mine", log_every=2, **FAST)
    assert (run.kind, run.state, run.path) == ("language", "finished", Path("runs/<b>mine"))
    assert [line["step"] for line in run.metrics if line["split"] == "train"] == [2, 4]
    assert run.report.is_file() and repr(run) == "Run('runs/<b>mine', language, finished)"
    page = run._repr_html_()
    assert "&lt;b&gt;mine" in page and "<b>" not in page and "data:image/png;base64," in page
    assert "src=" not in page.replace('src="data:', "")
    record = json.loads((run.path / "run.json").read_text())
    assert record["command"].startswith("lab.train(GPT(layers=1, heads=2, width=16, context=16), 'text.txt', steps=4")
    assert [row["run"] for row in lab.runs()] == ["runs/<b>mine"] and lab.runs(state="failed") == []


def test_samples_come_from_the_seed(small: lab.GPT) -> None:
    run = lab.train(small, "text.txt", steps=4, **FAST)
    assert run.sample("the ", length=8).startswith("the ")
    assert run.sample("the ", length=8, seed=1) == run.sample("the ", length=8, seed=1)
    measured = run.evaluate("text.txt")
    assert measured["loss"] == pytest.approx(np.log(measured["perplexity"])) and measured["unknown_share"] == 0


def test_texts_handed_in_are_kept_in_the_run(small: lab.GPT, folder: Path) -> None:
    from_file = lab.train(small, "text.txt", steps=3, **FAST)
    from_list = lab.train(small, [TEXT], steps=3, **FAST)
    kept = Path(from_list.config["data"]["corpus"])
    assert kept == folder / from_list.path / "inputs" / "corpus.txt" and kept.read_text() == TEXT + "\n"
    assert from_list.results["train_loss"] == pytest.approx(from_file.results["train_loss"], abs=0.05)
    array = lab.train(small, np.array(["the cat sat"] * 200), steps=2, **FAST)
    assert Path(array.config["data"]["corpus"]).read_text().count("\n") == 200


def test_questions_are_pairs_and_a_run_is_where_to_start(folder: Path) -> None:
    places = {"Ada": "London", "Alan": "London", "Grace": "Paris"}
    pairs = [(f"Where was {name} born?", place) for name, place in places.items()]
    documents = [f"{name} was born in {place}." for name, place in places.items()]
    shape = lab.GPT(**{**SHAPE, "context": 64})
    vocabulary = folder / "questions.txt"
    vocabulary.write_text("\n".join(" ".join(pair) for pair in pairs))
    first = lab.pretrain(shape, documents, epochs=1, vocabulary_from=vocabulary, **FAST)
    second = lab.finetune(first, pairs, dev=pairs, epochs=60, lr=1e-2, **FAST)
    assert second.config["start"]["run"] == str(folder / first.path)
    assert (second.path / "inputs" / "train.tsv").read_text().splitlines()[0] == "Where was Ada born?\tLondon"
    answers = second.ask([question for question, _ in pairs])
    right = sum(given.text == place for given, (_, place) in zip(answers, pairs, strict=True))
    assert right / len(pairs) == second.results["dev_accuracy"] and 0 <= answers[0].confidence <= 1
    assert second.ask(pairs[0][0]) == answers[0]
    evaluated = second.evaluate(second.path / "inputs" / "train.tsv")
    assert evaluated.count == 3 and evaluated.predictions is not None and evaluated.predictions.is_file()
    with pytest.raises(lab.UserError, match="was not trained to answer questions"):
        first.ask("Where was Ada born?")


def test_a_chain_takes_the_settings_of_its_halves() -> None:
    chain = lab.knowledge(lab.GPT(**{**SHAPE, "context": 64}), pretrain_epochs=1, finetune_epochs=1, **WORLD, threads=1)
    assert chain.kind == "knowledge" and "test_accuracy" in chain.results
    assert chain.config["pretrain"]["training"]["epochs"] == 1


def test_an_interrupted_run_resumes_to_the_same_weights(small: lab.GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Callback):
        def on_step(self, state: TrainState, report: StepReport) -> None:
            if state.step == 3:
                raise Stopped("enough")

    whole = lab.train(small, [TEXT], steps=6, save_every=2, **FAST)
    before = RunOptions.__init__

    def stopping(options: RunOptions, *args: Any, **settings: Any) -> None:
        before(options, *args, **{**settings, "callbacks": (Stop(),)})

    with monkeypatch.context() as patched:
        patched.setattr(RunOptions, "__init__", stopping)
        with pytest.raises(Stopped):
            lab.train(small, [TEXT], steps=6, save_every=2, run="stopped", **FAST)
    stopped = lab.load("stopped")
    assert stopped.state == "interrupted" and stopped.results == {}
    assert stopped.resume().results["dev_loss"] == whole.results["dev_loss"]
    with pytest.raises(lab.UserError, match="is finished: there is nothing to resume"):
        stopped.resume()


@pytest.mark.slow
def test_a_run_of_several_processes_is_resumed_in_several(small: lab.GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = lab.train(small, [TEXT], steps=4, processes=2, run="whole", save_every=2, keep=9, **FAST)
    shutil.copytree("whole", "stopped")
    shutil.rmtree(max(Path("stopped/checkpoints").glob("step-*")))
    status = Path("stopped/status.json")
    status.write_text(json.dumps({**json.loads(status.read_text()), "state": "interrupted"}))
    again = lab.load("stopped").resume()
    assert again.state == "finished" and len(json.loads((again.path / "run.json").read_text())["resumed"]) == 1
    assert again.results["dev_loss"] == pytest.approx(ended.results["dev_loss"], abs=1e-6)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a setting of the model": (lambda: lab.GPT(layer=2), "unknown key 'layer' in model: did you mean 'layers'?"),
    "a value of the model": (lambda: lab.GPT(layers="two"), "model.layers must be a whole number, got 'two'"),
    "an attention": (lambda: lab.GPT(attention="linaer"), "unknown attention 'linaer': did you mean 'linear'?"),
    "columns": (lambda: lab.train(None, pandas.DataFrame([["a", "b", "c"]])), "got DataFrame"),  # type: ignore[arg-type]
    "texts without order": (lambda: lab.train(None, {"a", "b"}), "got set"),  # type: ignore[arg-type]
    "labelled texts without labels": (lambda: lab.compare(None, ["a"], job="classify"), r"a list of \(text, label\)"),
    "a number": (lambda: lab.GPT(attention=3), "expected a name, a .py file, a class or a module, got int"),  # type: ignore[arg-type]
    "no model": (lambda: lab.train("linear", "text.txt"), r"expected lab.GPT\(...\) or None, got str"),  # type: ignore[arg-type]
    "a setting": (lambda: lab.train(None, "text.txt", stesp=3), "unknown setting 'stesp'"),
    "an ambiguous one": (lambda: lab.knowledge(steps=3), "write one of pretrain.training.steps"),
    "a value": (lambda: lab.train(None, "text.txt", steps=0), "--steps: training.steps must be greater than or equal"),
    "a missing file": (lambda: lab.train(None, "nowhere.txt"), "nowhere.txt does not exist"),
    "a text as a path": (lambda: lab.train(None, TEXT + "\n" + TEXT), "a str is a path: hand in a list"),
    "no texts": (lambda: lab.train(None, []), "got an empty list"),
    "numbers": (lambda: lab.train(None, [1, 2]), "expected a path, a list of texts"),  # type: ignore[list-item]
    "a document of two lines": (lambda: lab.pretrain(None, ["a\nb"]), "a text contains a new line"),
    "a tab": (lambda: lab.finetune(None, [("a\tb", "c")]), "contains a tab"),
    "a recipe": (lambda: lab.train(None, "text.txt", recipe="knowlegde"), "knowlegde"),
    "no run": (lambda: lab.load("text.txt"), "text.txt"),
    "no folder": (lambda: lab.runs("nowhere"), "there is no such folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(mistake: str, folder: Path) -> None:
    call, sentence = MISTAKES[mistake]
    with pytest.raises(lab.UserError, match=sentence) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1
    assert not list(folder.glob("runs/*"))


def test_an_existing_run_is_replaced_only_on_request(small: lab.GPT) -> None:
    lab.train(small, [TEXT], steps=2, run="mine", **FAST)
    with pytest.raises(lab.UserError, match="mine already exists"):
        lab.train(small, "text.txt", steps=2, run="mine", **FAST)
    assert Path("mine/inputs/corpus.txt").is_file()
    again = lab.train(small, "text.txt", steps=3, run="mine", overwrite=True, **FAST)
    assert again.config["training"]["steps"] == 3 and not Path("mine/inputs").exists()


@pytest.mark.slow
def test_several_processes_train_a_class_that_was_handed_in(small: lab.GPT) -> None:
    from tests.api.test_own import Mean

    one = lab.train(lab.GPT(attention=Mean, **SHAPE), [TEXT], steps=4, dropout=0.0, **FAST)
    two = lab.train(lab.GPT(attention=Mean, **SHAPE), [TEXT], steps=4, dropout=0.0, processes=2, **FAST)
    assert two.results["dev_loss"] == pytest.approx(one.results["dev_loss"], abs=1e-4)
