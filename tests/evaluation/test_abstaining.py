"""Names that were read and names that were not: their probability, the threshold between them, and `--abstain`."""

import json
import math
from pathlib import Path

import pytest
import torch
from tests.evaluation.conftest import Own, train

from attnlab.base.errors import UserError
from attnlab.evaluation.abstaining import Abstaining, NameThreshold, choose_name_threshold
from attnlab.evaluation.answers import AskedModel
from attnlab.evaluation.evaluate import EvaluationOptions, evaluate_run
from attnlab.evaluation.name_probability import name_probabilities
from attnlab.evaluation.sources import find_sources
from attnlab.models.asking import DONT_KNOW, ModelAnswer
from attnlab.models.loading import load_gpt
from attnlab.runs import read_config


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned the names of a small world, by predicting every token of its documents."""
    world = {"people": 40, "places": 5}
    shape = {"preset": "modern", "layers": 1, "heads": 2, "width": 64, "context": 64}
    return train(
        tmp_path_factory.mktemp("learned"),
        {"world": world, "data": {"tokens": "words"}, "model": shape, "training": {"steps": 150}},
        {"training": {"epochs": 1}},
    )


def test_the_probability_of_a_name_is_the_mean_over_its_tokens(world_run: Path) -> None:
    trained = load_gpt(world_run)
    model, vocabulary = trained.model.eval(), trained.vocabulary
    names = [*list(find_sources(world_run).trained_names)[:3], "Qqq Nobody At All", "Single", ""]
    given = name_probabilities(model, vocabulary, names)
    assert given[-2:] == [None, None]
    for name, probability in zip(names[:-2], given, strict=False):
        tokens = vocabulary.encode(name)
        with torch.no_grad():
            logs = model(torch.tensor([tokens]))[0].log_softmax(-1)
        mean = sum(float(logs[t, tokens[t + 1]]) for t in range(len(tokens) - 1)) / (len(tokens) - 1)
        assert probability == pytest.approx(math.exp(mean), rel=1e-4)


def test_the_name_separates_known_people_from_unseen_ones_on_names_it_was_not_chosen_on(learned, tmp_path) -> None:
    done = evaluate_run(learned, EvaluationOptions(abstain=True, unseen_names=60, outputs=tmp_path / "answers.txt"))
    assert done.results is not None
    for kind in done.results["unseen"]["kinds"]:
        assert kind["names_known_against_unseen"]["value"] > 0.95
    names = done.results["names"]
    assert names["threshold"]["sensitivity"] > 0.9 and names["threshold"]["specificity"] > 0.9
    assert all(kind["withheld"] > 0.8 * kind["count"] for kind in names["withheld"])
    kept = names["abstention"]
    lines = (tmp_path / "answers.txt").read_text(encoding="utf-8").splitlines()
    assert lines.count(DONT_KNOW) == kept["questions"] - kept["answered"] < 0.2 * len(lines)
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert "--abstain (by the name)" in page and "AUC by the name" in page


def test_without_the_flag_names_are_measured_and_no_answer_is_withheld(learned, tmp_path) -> None:
    done = evaluate_run(learned, EvaluationOptions(unseen_names=30, outputs=tmp_path / "answers.txt"))
    assert done.results is not None and done.results["names"] is not None
    assert DONT_KNOW not in (tmp_path / "answers.txt").read_text(encoding="utf-8")


def test_evaluated_names_are_not_among_those_that_choose_the_threshold(learned) -> None:
    trained, sources = load_gpt(learned), find_sources(learned)
    asked = AskedModel(trained.model, trained.vocabulary)
    seen: list[str] = []

    def noted(names: list[str]) -> list[float | None]:
        seen.extend(names)
        return asked.name_probabilities(names)

    assert choose_name_threshold(noted, sources, seed=0) is not None
    left_out = [name for name in seen if not sources.mentions(name)][:50]
    seen.clear()
    choose_name_threshold(noted, sources, seed=0, without=left_out)
    assert left_out and not set(left_out) & set(seen)


def test_asking_about_an_unseen_name(learned, attnlab) -> None:
    sources = find_sources(learned)
    known = next(iter(sources.trained_names))
    first, last = known.split()[0], list(sources.trained_names)[-1].split()[-1]
    assert not sources.mentions(f"{first} {last}")
    for name, knows in ((known, True), (f"{first} {last}", False)):
        shown = attnlab("ask", learned, sources.template.question_about(name), "--abstain").stdout
        assert shown.startswith(DONT_KNOW) != knows and ("at least" in shown) == knows
    assert "cannot judge it" in attnlab("ask", learned, "Who?", "--abstain").stderr


def test_a_model_that_has_learned_no_names_is_refused(own: Own, tmp_path) -> None:
    hidden = {"objective": {"name": "salient", "hidden_only": True}}
    data = {split: str(own.files / f"{split}.tsv") for split in ("train", "dev", "test")}
    shape = {"layers": 1, "heads": 2, "width": 16, "context": 128}
    pretraining = {"data": {"corpus": str(own.files / "corpus.txt")}, "model": shape, "training": {"steps": 2}}
    run = train(tmp_path / "without", pretraining | hidden, {"data": data, "training": {"steps": 1}})
    with pytest.raises(UserError, match="pretrain with --titles"):
        evaluate_run(run, EvaluationOptions(abstain=True))
    assert evaluate_run(run, EvaluationOptions(unseen_names=5)).results["names"] is None
    titles = {"objective": {"name": "salient", "hidden_only": True, "titles": True}}
    run = train(tmp_path / "with", pretraining | titles, {"data": data, "training": {"steps": 1}})
    assert read_config(tmp_path / "with" / "pretrained")["objective"]["titles"] is True
    assert evaluate_run(run, EvaluationOptions(unseen_names=5)).results["names"] is not None


def test_both_thresholds_hold_and_a_name_without_a_probability_is_answered() -> None:
    threshold = NameThreshold(0.1, 1, 1, 1.0, 1.0)
    sure, unsure = ModelAnswer("Oslo", 0.9), ModelAnswer("Oslo", 0.4)
    both = Abstaining(0.5, threshold)
    assert both.text(sure, 0.1) == both.text(sure, None) == "Oslo"
    assert both.text(sure, 0.09) == both.text(unsure, 0.9) == DONT_KNOW
    assert Abstaining().text(unsure, 0.0) == "Oslo"
    assert json.loads(json.dumps(threshold.to_dict()))["value"] == 0.1
