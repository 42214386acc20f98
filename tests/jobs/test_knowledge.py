"""The chain as one run: what its seed decides, that it goes on wherever it was stopped, and what it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec
from attnlab.evaluation.recall import recall_accuracy
from attnlab.jobs import knowledge as chain
from attnlab.jobs.job import RunOptions
from attnlab.jobs.knowledge import KnowledgeJob, fine_tuning, pretraining
from attnlab.jobs.pretrain import PretrainJob
from attnlab.models.gpt import GPT, preset
from attnlab.runs import read_record, read_status
from attnlab.runs.settings import flat

SMALL: dict[str, Any] = {
    "data": {"tokens": "words"},
    "world": {"people": 24, "places": 5, "documents": 2, "paraphrases": 2, "name_first": True},
    "model": {"layers": 1, "heads": 2, "width": 16, "context": 48, "dropout": 0.0},
    "pretrain": {"objective": {"name": "causal"}, "training": {"epochs": 2}},
    "finetune": {"training": {"epochs": 2}},
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
}


def small(**values: Any) -> KnowledgeConfig:
    return check(KnowledgeConfig, SMALL | values)


def weights(run: Path) -> bytes:
    return max((run / "checkpoints").glob("step-*")).joinpath("model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = KnowledgeJob(small(control=True)).run(RunOptions(tmp_path_factory.mktemp("chain") / "run"))
    assert path is not None
    return path


def test_the_results_of_the_chain_are_those_of_its_runs(whole: Path) -> None:
    results = read_record(whole)["results"]
    tuned, control = (read_record(whole / name)["results"] for name in ("finetune", "control"))
    assert results["test_accuracy"] == tuned["test_accuracy"] and results["dev_baseline"] == tuned["dev_baseline"]
    assert results["test_control"] == control["test_accuracy"] and 0 <= results["told_accuracy"] <= 1
    assert read_status(whole)["state"] == "finished" and (whole / "report.html").exists()
    assert read_record(whole / "finetune")["data"]["people"] == 24, "the questions are about the world that was read"


def test_stopped_between_or_within_its_halves_it_ends_the_same(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the second half, then within it, and taken up again: the same weights to the bit."""
    run_subrun, begun = chain.run_subrun, []

    def dies(kind: str, *rest: Any, **options: Any) -> None:
        begun.append(kind)
        if len(begun) == 2:
            raise MemoryError("killed")
        run_subrun(kind, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(chain, "run_subrun", dies)
        with pytest.raises(MemoryError):
            KnowledgeJob(small(control=True)).run(RunOptions(tmp_path / "run"))
    assert begun == ["pretrain", "finetune"] and read_status(tmp_path / "run")["state"] == "failed"
    (tmp_path / "run" / "finetune").mkdir()  # and killed once more, before the second half had written anything
    first = (tmp_path / "run" / "pretrain" / "run.json").read_bytes()
    KnowledgeJob(small(control=True)).run(RunOptions(tmp_path / "run", resume=True))
    assert (tmp_path / "run" / "pretrain" / "run.json").read_bytes() == first, "what is finished is not run again"
    for name in ("pretrain", "finetune", "control"):
        assert weights(tmp_path / "run" / name) == weights(whole / name)
    assert read_record(tmp_path / "run")["results"] == read_record(whole)["results"]


def test_a_seed_changes_weights_and_order_in_both_halves_and_not_the_world() -> None:
    one, two = (small(seed=seed) for seed in (1, 2))
    for half in (pretraining, lambda config: fine_tuning(config, Path("read"))):
        first, second = flat(half(one).model_dump()), flat(half(two).model_dump())
        assert {name for name in first if first[name] != second[name]} == {"training.seed"}
    parts = []
    for config in (one, two):
        torch.manual_seed(config.seed)
        parts.append(PretrainJob(pretraining(config)).build("cpu"))
    assert parts[0].facts == parts[1].facts and parts[0].files == parts[1].files  # the same text, the same words
    assert not torch.equal(*(next(part.model.parameters()) for part in parts))


def test_what_would_only_fail_after_pretraining_is_refused_before(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Ann Lee was born in Rome.\n")
    (tmp_path / "bad.tsv").write_text("no tab here\n")
    for data, sentence in (
        ({"corpus": str(tmp_path / "text.txt")}, "belong together"),
        ({"test": str(tmp_path / "bad.tsv")}, "need --train"),
        ({"corpus": str(tmp_path / "text.txt"), "train": str(tmp_path / "bad.tsv")}, "line 1"),
    ):
        with pytest.raises(UserError, match=sentence):
            KnowledgeJob(small(data=data)).run(RunOptions(tmp_path / "run"))
        assert not (tmp_path / "run").exists()


def test_a_place_is_known_in_the_text_when_every_token_of_it_is_predicted() -> None:
    """A model that repeats a table: the right place after the right prefix, and only there."""
    world = World(WorldSpec(people=8, places=4, documents=2, paraphrases=2, name_first=True))
    told = list(world.documents_with_answers("test")) + list(world.documents_with_answers("train"))
    vocabulary = Vocabulary.build([text for text, _ in told], "words")

    class Reader(GPT):
        known: tuple[str, ...] = ()

        def forward(self, tokens: torch.Tensor, **_: Any) -> torch.Tensor:
            rows = {tuple(vocabulary.encode(text)) for text in self.known}
            logits = torch.zeros(*tokens.shape, len(vocabulary))
            for b, row in enumerate(tokens.tolist()):
                for text in rows:
                    if row[: len(text) - 1] == list(text[:-1]):
                        logits[b, range(len(text) - 1), text[1:]] = 1.0
            return logits

    model = Reader(preset("vanilla", len(vocabulary), layers=1, heads=1, width=8, context=64))
    assert recall_accuracy(model, vocabulary, told) == 0.0
    model.known = tuple(text for text, _ in told[::2])
    assert recall_accuracy(model, vocabulary, told) == pytest.approx(len(told[::2]) / len(told))
