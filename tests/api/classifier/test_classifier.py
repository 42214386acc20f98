"""`Classifier`: the engine of the command, behind the four verbs of scikit-learn."""

from __future__ import annotations

import json
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score
from tests.api.classifier.conftest import QUICK

import attnlab as lab
from attnlab.api.classifier import Classifier
from attnlab.base.errors import UserError
from attnlab.base.interrupts import Interrupted
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.runs import read_config, read_record, read_status

Make = Callable[..., Classifier]
Command = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def fitted(model: Path, tmp_path_factory: pytest.TempPathFactory, texts: list[str], labels: list[str]) -> Classifier:
    """Trained until it can tell good from bad."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnlab.report.figures.save", lambda figure, path: "<svg/>")
        runs = tmp_path_factory.mktemp("runs")
        made = Classifier(model, steps=30, lr=0.02, device="cpu", runs=runs, verbose=False, settings=QUICK)
        return made.fit(texts, labels)


def test_it_learns(fitted: Classifier, texts: list[str], labels: list[str]) -> None:
    predicted, probabilities = fitted.predict(texts), fitted.predict_proba(texts)
    assert fitted.classes_.tolist() == ["neg", "pos"] and predicted.shape == (40,) and probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-12)
    assert (predicted == fitted.classes_[probabilities.argmax(1)]).all()
    assert fitted.score(texts, labels) == accuracy_score(labels, predicted) == 1.0
    assert fitted.n_iter_ == 30 and fitted.results_["dev_accuracy"] == 1.0
    np.testing.assert_allclose(fitted.predict_proba(tuple(texts[3:4])), probabilities[3:4], atol=1e-6)
    assert "Classifier" in dir(lab) and lab.Classifier is Classifier


def test_the_command_predicts_the_same(fitted: Classifier, texts: list[str], attnlab: Command, tmp_path: Path) -> None:
    odd = [*texts[::10], "good", "\u2028 unknown words"]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in odd), encoding="utf-8")
    done = attnlab("predict", fitted.run_, "--file", tmp_path / "new.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    expected = [[row["probabilities"][word] for word in fitted.classes_] for row in rows]
    np.testing.assert_allclose(fitted.predict_proba(odd), expected, atol=2e-6)
    assert fitted.predict(odd).tolist() == [row["predicted"] for row in rows]
    np.testing.assert_array_equal(fitted.predict_proba(tmp_path / "new.jsonl"), fitted.predict_proba(odd))


def test_the_run_is_one_like_any_other(fitted: Classifier) -> None:
    record, data = read_record(fitted.run_), read_config(fitted.run_)["data"]
    assert read_status(fitted.run_)["state"] == "finished" and (fitted.run_ / "report.html").is_file()
    assert Path(data["task"]) == fitted.run_ / "inputs" / "train.jsonl" and data["hold_out"] is False
    assert record["data"]["examples"] == {"train": 36, "dev": 4} and record["data"]["data"] == "inputs/train.jsonl"
    assert "dev (4) taken from the 40 training rows, the same share of every class, with seed 0." in record["changes"]
    assert record["command"].startswith("lab.Classifier(") and record["command"].endswith(".fit(X, y)")


@pytest.mark.slow
def test_the_commands_take_the_run(fitted: Classifier, texts: list[str], attnlab: Command, tmp_path: Path) -> None:
    done = attnlab("export", fitted.run_, "--to", tmp_path / "export", "--weights-only")
    assert done.returncode == 0, done.stderr
    assert "dev_accuracy" in attnlab("runs", "show", fitted.run_).stdout
    done = attnlab("classify", "-c", fitted.run_ / "config.yaml", "--run", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(Classifier.from_run(tmp_path / "again").predict(texts), fitted.predict(texts))


def test_the_constructor_only_stores(tmp_path: Path) -> None:
    settings = {"no such": "setting"}
    given: dict[str, Any] = {"model": tmp_path, "lr": -1, "tune": 5, "settings": settings, "run": "x", "epochs": "many"}
    made = Classifier(**given)
    assert all(made.get_params()[name] is value for name, value in given.items())
    assert clone(made).get_params() == made.get_params() and made.set_params(lr=1e-3).lr == 1e-3
    assert {*made.__dict__} == {*made.get_params()}
    with pytest.raises(ValueError, match="Invalid parameter 'learning_rate'"):
        made.set_params(learning_rate=1)


@pytest.mark.parametrize("call", ["predict", "predict_proba", "score"])
def test_nothing_works_before_fit(call: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(Classifier(), call)(["a"], *([["a"]] if call == "score" else []))


@pytest.mark.parametrize("classes", [(0, 7), (False, True), ("1", "0"), (" a", "a")], ids=str)
def test_predictions_have_the_type_of_the_labels(make: Make, texts: list[str], classes: tuple[Any, Any]) -> None:
    labels = [classes[n % 2] for n in range(40)]
    made = make(steps=1).fit(np.array(texts), np.array(labels))
    assert made.classes_.tolist() == sorted(classes) and made.classes_.dtype == np.array(labels).dtype
    predicted = made.predict(texts)
    assert predicted.dtype == made.classes_.dtype and {*predicted.tolist()} <= {*classes}


def test_pairs_of_texts(make: Make, texts: list[str], labels: list[str]) -> None:
    made = make(steps=1).fit([(text, "yes") for text in texts], labels, validation=([("good", "no")], ["pos"]))
    assert made.predict(np.array([["good", "no"], ["bad", ""]])).shape == (2,)
    assert read_record(made.run_)["data"]["examples"] == {"train": 40, "dev": 1}
    with pytest.raises(UserError, match="reads pairs of texts, got single texts"):
        made.predict(["good"])


def test_single_texts_for_pairs_are_refused(fitted: Classifier) -> None:
    with pytest.raises(UserError, match="reads single texts, got pairs of texts"):
        fitted.predict([("a", "b")])
    with pytest.raises(UserError, match=r"'Dull.', which is not a file: give a file, or a list of texts, \['Dull.'\]"):
        fitted.predict("Dull.")


def test_a_file_has_the_splits_of_the_command(make: Make, texts: list[str], tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("body,stars\n" + "".join(f"{text},{n // 20 + 1}\n" for n, text in enumerate(texts)))
    made = make(steps=1, settings={"data.text": "body"}).fit(file)
    assert read_record(made.run_)["data"]["examples"] == {"train": 32, "dev": 4, "test": 4}
    assert made.classes_.tolist() == [1, 2] and "test_accuracy" in made.results_
    numbers = [1] * 20 + [2] * 20
    assert made.score(str(file)) == made.score(texts, numbers) == accuracy_score(numbers, made.predict(file))
    again = Classifier.from_run(made.run_)
    np.testing.assert_array_equal(again.predict_proba(texts), made.predict_proba(texts))
    assert again.get_params()["tune"] == "head" and again.settings is not None
    assert again.settings["machine.precision"] == "fp32" and again.classes_.tolist() == [1, 2]
    with pytest.raises(UserError, match="a file with its own labels"):
        made.score(file, numbers)
    with pytest.raises(UserError, match="requires y to be passed"):
        made.score(texts)
    (tmp_path / "bare.jsonl").write_text('{"body": "good"}\n')
    with pytest.raises(UserError, match="has no labels"):
        made.score(tmp_path / "bare.jsonl")


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "method": ({"tune": "lorra"}, {}, "tune: tuning.method: unknown tuning method 'lorra': did you mean 'lora'"),
    "rate": ({"lr": -1}, {}, "lr: optimizer.lr: expected a number above 0, got -1"),
    "both lengths": ({"epochs": 2}, {}, "epochs and steps exclude each other"),
    "setting": ({"settings": {"ranc": 3}}, {}, "unknown setting 'ranc': did you mean 'tuning.rank'"),
    "value": ({"settings": {"rank": 0}}, {}, "settings: tuning.rank must be greater than or equal to 1, got 0"),
    "parameter": ({"settings": {"optimizer.lr": 1}}, {}, "optimizer.lr is the parameter lr"),
    "column": ({"settings": {"data.text": "body"}}, {}, "data.text is for files, and X is not a file"),
    "model": ({"model": "no-such"}, {}, "no-such"),
    "file with labels": ({}, {"X": "reviews.csv"}, "has its own labels: leave out y"),
    "no file": ({}, {"X": "reviews.csv", "y": None}, "neither a task nor a file"),
    "share of a file": ({"dev_share": 0.2}, {"X": "sentiment", "y": None}, "dev_share is for texts handed over"),
    "validation of a file": ({}, {"X": "sentiment", "y": None, "validation": ([], [])}, "give the path of a file"),
    "no texts": ({}, {"X": [1, 2]}, r"X\[0\] is 1"),
    "seed": ({"random_state": -1}, {}, "random_state: training.seed must be greater than or equal to 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_sentence_and_leaves_nothing(case: str, make: Make, tmp_path: Path) -> None:
    changes, data, message = WRONG[case]
    settings = changes.get("settings", {})
    before = {*tmp_path.rglob("*.*")}
    made = make(settings=settings).set_params(**{name: value for name, value in changes.items() if name != "settings"})
    with pytest.raises(UserError, match=message) as caught:
        made.fit(**({"X": ["a", "b", "c", "d"], "y": [0, 1, 0, 1]} | data))
    assert "\n" not in str(caught.value) and {*tmp_path.rglob("*.*")} == before
    assert not (tmp_path / "runs").exists() or not [*(tmp_path / "runs").iterdir()]


def test_weights_of_samples_are_not_ignored() -> None:
    with pytest.raises(TypeError, match=r"does not support sample_weight: .*class_weights"):
        Classifier().fit(["a"], ["b"], sample_weight=[1.0])


def test_every_fit_has_a_folder_of_its_own(make: Make, texts: list[str], labels: list[str], tmp_path: Path) -> None:
    made = make(steps=1)
    first = made.fit(texts, labels).run_
    assert made.fit(texts, labels).run_ != first and first.is_dir()
    named = make(steps=1, run=tmp_path / "mine").fit(texts, labels)
    assert named.run_ == tmp_path / "mine"
    with pytest.raises(UserError, match=r"mine is not empty: choose another folder, or leave out run"):
        clone(named).fit(texts, labels)
    assert named.predict(texts[:1]).shape == (1,)


def test_a_seed_repeats_a_fit_and_leaves_the_generators_alone(make: Make, texts: list[str], labels: list[str]) -> None:
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = random.getstate()[1][:5], np.random.get_state()[1][:5].tolist(), torch.get_rng_state()[:64].tolist()
    one, two, other = (make(steps=2, random_state=seed).fit(texts, labels) for seed in (5, np.int64(5), 6))
    probabilities = one.predict_proba(texts)
    np.testing.assert_array_equal(probabilities, two.predict_proba(texts))
    assert (probabilities != other.predict_proba(texts)).any() and read_record(one.run_)["seed"] == 5
    after = random.getstate()[1][:5], np.random.get_state()[1][:5].tolist(), torch.get_rng_state()[:64].tolist()
    assert before == after


def test_a_pickle_holds_the_path_and_not_the_weights(fitted: Classifier, texts: list[str], tmp_path: Path) -> None:
    fitted.predict(texts)  # the model is loaded
    content = pickle.dumps(fitted)
    assert len(content) < 5_000
    again = pickle.loads(content)
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    assert pickle.loads(pickle.dumps(Classifier("x"))).get_params() == Classifier("x").get_params()
    shutil.copytree(fitted.run_, tmp_path / "moved")
    again.run_ = tmp_path / "moved"
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    shutil.rmtree(tmp_path / "moved")
    with pytest.raises(UserError, match=r"the run folder of this classifier, .*moved, is gone: put it back"):
        again.predict(texts)
    assert "does not exist" in again._repr_html_()


def test_quiet_and_not(make: Make, texts: list[str], labels: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(ConvergenceWarning, match="the classifier has collapsed"):
        make(steps=1, lr=1e-9).fit(texts, labels).predict(["good " * 60])
    printed = capfd.readouterr()
    assert printed.out == "" and "note:" not in printed.err and "step" not in printed.err
    made = make(steps=1, verbose=True).fit(texts, labels)
    made.predict(["good " * 60])
    told = capfd.readouterr().err
    assert "dev (4) taken from the 40" in told and "step 1/1" in told and f"run: {made.run_}" in told
    assert "reads 16 tokens: 1 of 1 were cut" in told


def test_ctrl_c_ends_a_search(make: Make, texts: list[str], labels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    def interrupted(*_: object) -> None:
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(ClassifyJob, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make().fit(texts, labels)


@pytest.mark.slow
def test_a_run_that_stopped_is_resumed_by_the_command(
    make: Make, texts: list[str], labels: list[str], attnlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the machine went down")

    whole = make(steps=4).fit(texts, labels)
    with monkeypatch.context() as patch:
        patch.setattr(ClassifyJob, "_finish", fails)
        with pytest.raises(RuntimeError):
            make(steps=4, run=tmp_path / "stopped").fit(texts, labels)
    with pytest.raises(UserError, match="is not finished: finish it with 'attnlab resume"):
        Classifier.from_run(tmp_path / "stopped")
    shutil.copytree(tmp_path / "stopped", tmp_path / "moved")  # all that it needs is in its folder
    (tmp_path / "stopped" / "inputs" / "train.jsonl").write_text("changed")
    done = attnlab("resume", tmp_path / "moved")
    assert done.returncode == 0, done.stderr
    resumed = Classifier.from_run(tmp_path / "moved")
    np.testing.assert_array_equal(resumed.predict_proba(texts), whole.predict_proba(texts))
    assert resumed.classes_.tolist() == ["neg", "pos"]


def test_other_runs_are_no_classifiers(tmp_path: Path) -> None:
    from attnlab.runs import RunFolder

    RunFolder.create(tmp_path / "run", "language", {}, seed=0).close()
    with pytest.raises(UserError, match="is a language run: it contains no classifier"):
        Classifier.from_run(tmp_path / "run")


def test_the_notebook_shows_results(fitted: Classifier, make: Make, tmp_path: Path) -> None:
    page = fitted._repr_mimebundle_()["text/html"]
    for shown in (page, fitted._repr_html_()):
        assert "dev accuracy" in shown and f'href="{fitted.run_.as_uri()}/report.html"' in shown
        assert "src=" not in shown and "dev accuracy" not in make()._repr_html_()
    odd = tmp_path / "<b> & co"
    shutil.copytree(fitted.run_, odd)
    shown = Classifier.from_run(odd)._repr_html_()
    assert "<b> & co" not in shown and "&lt;b&gt; &amp; co" in shown


def test_importing_the_package_stays_cheap() -> None:
    code = "import sys, attnlab as lab; lab.__version__; dir(lab); print(sorted({'torch', 'sklearn'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
