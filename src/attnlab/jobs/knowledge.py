"""The chain of the main job: a GPT is pretrained, fine-tuned on questions, and scored on people it only read about.

    run/
        config.yaml, run.json, status.json    the settings of the chain, and its results
        pretrain/, finetune/                  a run folder each, with its own report
        control/                              the same fine-tuning without pretraining, with --control

A seed decides the initial weights and the order of the data in both halves; the world has its own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.questions import read_pairs
from attnlab.data.world.world import world_of
from attnlab.distributed.team import current
from attnlab.evaluation.recall import recall_accuracy
from attnlab.jobs.engine import stored_scores
from attnlab.jobs.job import RunOptions, TrainedModel
from attnlab.jobs.pretrain import PretrainJob
from attnlab.jobs.subruns import ending_recorded, run_subrun
from attnlab.models.loading import load_gpt
from attnlab.report.page import Passage, write_run_page
from attnlab.runs import RunFolder, fresh_path, read_record
from attnlab.runs.shared import open_shared
from attnlab.training import setup
from attnlab.training.estimate import Estimate


class KnowledgeJob:
    """Implements `Job` with several runs instead of one training."""

    kind: ClassVar[str] = "knowledge"
    prunable: ClassVar[bool] = False

    def __init__(self, config: KnowledgeConfig) -> None:
        self.config = config.model_copy(deep=True)

    def run(self, options: RunOptions) -> Path | None:
        """Run both halves, skipping what is finished; returns the folder, or None after a dry run."""
        config = self.config
        _must_fit(config)
        team = current()
        config.machine = team.from_first(lambda: setup.resolve(config.machine))
        if options.dry_run:
            PretrainJob(pretraining(config)).run(options)
            console.result("this is the first half, pretraining; the second, fine-tuning, needs its weights")
            return None
        run = open_shared(lambda: self._open(options))
        with ending_recorded(run):
            self._stages(run, options)
            team.from_first(lambda: self._conclude(run))
        return run.path

    def estimate(self) -> Estimate | None:
        return None

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        return stored_scores(run)

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        return load_gpt(run)

    @classmethod
    def passages(cls, run: Path, record: dict[str, Any]) -> Sequence[Passage]:
        return ()

    def _conclude(self, run: RunFolder) -> None:
        run.update_record(**_results(run.path, self.config))
        write_run_page(run.path, status={"state": "finished"})
        run.set_status("finished")

    def _open(self, options: RunOptions) -> RunFolder:
        if options.resume:
            assert options.path is not None
            return RunFolder.reopen(options.path)
        path = options.path or fresh_path(options.root, self.kind)
        settings = self.config.model_dump(mode="json")
        return RunFolder.create(path, self.kind, settings, self.config.seed, options.overwrite, settings=settings)

    def _stages(self, run: RunFolder, options: RunOptions) -> None:
        config, pretrained = self.config, run.path / "pretrain"
        command = options.resume_command or f"attnlab resume {run.path}"
        label = f"{options.label}: " if options.label else ""
        first = pretraining(config)
        run_subrun("pretrain", first, pretrained, f"{label}pretraining", command, changes=options.changes)
        run_subrun("finetune", fine_tuning(config, pretrained), run.path / "finetune", f"{label}fine-tuning", command)
        if config.control:
            control = fine_tuning(config, pretrained, fresh=True)
            run_subrun("finetune", control, run.path / "control", f"{label}fine-tuning, not pretrained", command)


def pretraining(config: KnowledgeConfig) -> PretrainConfig:
    """The configuration of the first half."""
    part = config.pretrain.model_dump()
    part["training"]["seed"] = config.seed
    data = config.data.model_dump(exclude={"train", "dev", "test"})
    data["vocabulary_from"] = config.data.vocabulary_from or config.data.train  # the questions of the second half
    shared = {"data": data, "world": config.world.model_dump(), "model": config.model.model_dump()}
    return check(PretrainConfig, {**part, **shared, "machine": config.machine.model_dump()})


def fine_tuning(config: KnowledgeConfig, pretrained: Path, fresh: bool = False) -> FinetuneConfig:
    """The configuration of the second half; world, vocabulary and shape come from the pretrained run."""
    part = config.finetune.model_dump()
    part["training"]["seed"] = config.seed
    shared = {"start": {"run": str(pretrained), "fresh": fresh}, "machine": config.machine.model_dump()}
    return check(FinetuneConfig, {**part, **shared, "data": config.data.model_dump(include={"train", "dev", "test"})})


def _must_fit(config: KnowledgeConfig) -> None:
    """Raise before the first half for mistakes that only the second would meet."""
    data = config.data
    if (data.corpus is None) != (data.train is None):
        raise UserError("--corpus and --train belong together: a text to read and questions about it.")
    if (data.dev or data.test) and data.train is None:
        raise UserError("--dev and --test need --train: questions to fine-tune on.")
    for path in (data.train, data.dev, data.test):
        if path is not None:
            read_pairs(Path(path))


def _results(path: Path, config: KnowledgeConfig) -> dict[str, Any]:
    """The record of the chain, gathered from its runs."""
    halves = {name: read_record(path / name) for name in ("pretrain", "finetune")}
    results = dict(halves["finetune"]["results"])
    if config.control:
        control = read_record(path / "control")["results"]
        results |= {
            f"{split}_control": control[f"{split}_accuracy"]
            for split in ("dev", "test")
            if f"{split}_accuracy" in control
        }
    if config.data.corpus is None and config.pretrain.objective.name == "causal":
        reader = load_gpt(path / "pretrain")
        results["told_accuracy"] = recall_accuracy(
            reader.model, reader.vocabulary, list(world_of(config.world).documents_with_answers("test"))
        )
    training = {
        name: sum(half["training"][name] for half in halves.values())
        for name in ("step", "tokens", "positions", "seconds")
    }
    return {
        "results": results,
        "training": training,
        "steps": training["step"],
        "data": halves["pretrain"]["data"]
        | {
            "questions": halves["finetune"]["data"]["questions"],
            "pretraining_positions": halves["pretrain"]["training"]["positions"],
        },
        "parameters": halves["pretrain"]["parameters"],
        "changes": [c for h in halves.values() for c in h["changes"]],
        "padding": halves["pretrain"]["padding"],
        "learning_parameters": halves["finetune"]["learning_parameters"],
    }
