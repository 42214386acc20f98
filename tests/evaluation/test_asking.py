"""Many questions at once are answered as one at a time, in order, with a probability."""

from pathlib import Path

import pytest
import torch

from attnlab.data.questions import Pair
from attnlab.models import asking
from attnlab.models.asking import answer, prompt_of
from attnlab.models.loading import load_gpt
from attnlab.runs.predictions import read_examples


@torch.no_grad()
def alone(model, vocabulary, question):
    """One question, no batch, no cache: the text and the product of the probabilities."""
    prompt = prompt_of(vocabulary, question)
    tokens, probability = list(prompt), 1.0
    while len(tokens) < len(prompt) + asking.LONGEST_ANSWER and len(tokens) <= model.shape.context:
        best = model(torch.tensor([tokens]))[0, -1].softmax(-1).max(-1)
        tokens.append(int(best.indices))
        probability *= float(best.values)
        if tokens[-1] == vocabulary.mask:
            break
    return vocabulary.decode([token for token in tokens[len(prompt) :] if token != vocabulary.mask]), probability


@pytest.mark.parametrize("which", ["world_run", "own"])
def test_in_batches_as_one_by_one(which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    found = request.getfixturevalue(which)
    run: Path = found if which == "world_run" else found.asked
    trained = load_gpt(run)
    model, vocabulary = trained.model, trained.vocabulary
    model.eval()
    stored = read_examples(run, "test") or []
    questions = [example.text for example in stored]
    questions = [*questions, "Where was Zz born?", "?", questions[0]]
    monkeypatch.setattr(asking, "QUESTIONS_AT_ONCE", 4)
    for question, said in zip(questions, answer(model, vocabulary, questions), strict=True):
        text, probability = alone(model, vocabulary, question)
        assert said.text == text
        assert said.confidence == pytest.approx(probability, rel=1e-3) and 0 <= said.confidence <= 1
    assert [each.predicted for each in stored] == [s.text for s in answer(model, vocabulary, questions[:-3])]


def test_the_score_is_the_share_of_right_answers() -> None:
    assert asking.score(["a", "b"], [Pair("?", "a"), Pair("?", "c")]) == 0.5
