"""Questions mixed into reading: they are learnt from, watched on dev, and can be asked about at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.batching import IGNORE
from attnlab.data.world.world import world_of
from attnlab.evaluation.evaluate import EvaluationOptions, evaluate_run
from attnlab.evaluation.sources import find_sources
from attnlab.jobs.engine import train_run
from attnlab.jobs.finetune import FinetuneJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.pretrain import PretrainJob
from attnlab.runs import read_metrics

SMALL = {
    "model": {"preset": "modern", "layers": 1, "heads": 2, "width": 16, "context": 48},
    "world": {"people": 40, "places": 5},
    "objective": {"name": "salient", "hidden_only": True},
    "training": {"epochs": 1},
    "machine": {"threads": 1, "precision": "fp32"},
}


def config(**changes: object) -> PretrainConfig:
    return check(PretrainConfig, SMALL | changes)


def test_questions_of_the_world_are_learnt_and_watched(tmp_path: Path) -> None:
    job = PretrainJob(config(data={"tokens": "words", "world_questions": True}))
    run = train_run(job, RunOptions(tmp_path / "run"))
    assert run is not None
    watched = [line for line in read_metrics(run / "metrics.jsonl") if line["split"] == "dev"]
    assert [set(line) >= {"accuracy", "best"} for line in watched] == [True]
    sources = find_sources(run)
    assert sources.trained_on == world_of(job.config.world).questions("train")
    done = evaluate_run(run, EvaluationOptions(unseen_names=5, out=tmp_path / "report"))
    assert done.count == len(world_of(job.config.world).questions("test"))


def test_only_answers_are_asked_of_questions() -> None:
    job = PretrainJob(config(data={"tokens": "words", "world_questions": True}))
    parts = job.build("cpu")
    world = world_of(job.config.world)
    asked = len(world.questions("train"))
    inputs = parts.data.collate(range(len(parts.data.lengths) - asked, len(parts.data.lengths)), 0)
    answers = [place for _, place in world.questions("train")]
    targets = (inputs["targets"] != IGNORE).sum(1).tolist()
    assert targets == [len(place.split()) + 1 for place in answers]  # the words of the place and the end


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"dev": "dev.tsv"}, "--dev needs --questions"),
        ({"world_questions": True, "questions": "q.tsv"}, "leave out --corpus and --questions"),
    ],
)
def test_what_contradicts_itself_is_refused(data: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        PretrainJob(config(data=data)).build("cpu")


@pytest.mark.parametrize("name", ["spam", "", "span,spam"])
def test_an_objective_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UserError, match="objective"):
        config(objective={"name": name})


def test_causal_hides_nothing() -> None:
    with pytest.raises(UserError, match="hidden_only needs an objective that hides tokens"):
        config(objective={"name": "span,causal", "hidden_only": True})


def test_titles_are_targets_anyway_when_everything_is() -> None:
    with pytest.raises(UserError, match="titles needs hidden_only"):
        config(objective={"name": "salient", "titles": True})


def test_the_kind_of_tokens_comes_from_the_pretrained_run(tmp_path: Path) -> None:
    world = {"people": 40, "places": 5}
    pretrained = train_run(PretrainJob(config(data={"tokens": "words"})), RunOptions(tmp_path / "read"))
    asked = {"start": {"run": str(pretrained)}, "machine": SMALL["machine"], "training": {"epochs": 1}}
    tuned = FinetuneJob(check(FinetuneConfig, asked | {"world": world}))
    tuned.build("cpu")
    assert tuned.config.data.tokens == "words"
    with pytest.raises(UserError, match="reads words: leave out --tokens"):
        FinetuneJob(check(FinetuneConfig, asked | {"data": {"tokens": "characters"}})).build("cpu")
