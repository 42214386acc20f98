"""The kinds of jobs by name: settings, measures, and the class of the job. Does not import torch: --help is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.base.errors import UserError
from attnlab.config.gpt import GPTSection
from attnlab.config.kinds import CONFIGS
from attnlab.config.recipe import Key, check, leaves
from attnlab.config.sections import Section
from attnlab.runs.own_attention import own_attention
from attnlab.runs.record import read_record
from attnlab.runs.settings import trained_config
from attnlab.runs.status import read_status
from attnlab.stats.intervals import ACCURACIES, Measure, ranking

if TYPE_CHECKING:
    from attnlab.jobs.job import Job


@dataclass(frozen=True)
class Kind:
    """One kind of job. Its class loads torch, so `job` imports it when it is called."""

    name: str
    help: str
    example: str
    config: type[Section]
    job: Callable[[], type[Job]]
    measures: tuple[Measure, ...] = ()
    """The measures of its runs; without any, runs cannot be compared or searched."""
    without_test: Mapping[Key, Any] = field(default_factory=dict)
    """Settings of a run that is one of many: it does not use its test split, which `Job.score_test` does for the
    winner, and is put beside nothing."""

    @property
    def seed(self) -> Key:
        """The key of the seed."""
        return next(key for key in leaves(self.config) if key[-1] == "seed")

    @property
    def chooses_by(self) -> Measure:
        return ranking(self.measures)


def _knowledge() -> type[Job]:
    from attnlab.jobs.knowledge import KnowledgeJob

    return KnowledgeJob


def _pretrain() -> type[Job]:
    from attnlab.jobs.pretrain import PretrainJob

    return PretrainJob


def _finetune() -> type[Job]:
    from attnlab.jobs.finetune import FinetuneJob

    return FinetuneJob


def _language() -> type[Job]:
    from attnlab.jobs.language import LanguageJob

    return LanguageJob


def _classify() -> type[Job]:
    from attnlab.jobs.classify.job import ClassifyJob

    return ClassifyJob


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "knowledge",
            "Pretrain, fine-tune on questions and score, in one run.",
            "attnlab knowledge -c knowledge --people 200",
            CONFIGS["knowledge"],
            _knowledge,
            (*ACCURACIES, Measure("told_accuracy", "place known in the text", "test")),
        ),
        Kind(
            "pretrain",
            "Pretrain a GPT or a BERT on a corpus or a synthetic world.",
            "attnlab pretrain --corpus my.txt --layers 2 --width 128",
            CONFIGS["pretrain"],
            _pretrain,
        ),
        Kind(
            "finetune",
            "Fine-tune a GPT on questions and answers.",
            "attnlab finetune --from runs/my-pretraining --train train.tsv --dev dev.tsv",
            CONFIGS["finetune"],
            _finetune,
            ACCURACIES,
        ),
        Kind(
            "language",
            "Train a GPT on a text read as one stream.",
            "attnlab language --corpus my.txt --steps 500",
            CONFIGS["language"],
            _language,
            (Measure("dev_loss", "validation loss", "dev", "lower", share=False, unit="nats per token"),),
        ),
        Kind(
            "classify",
            "Fine-tune a pretrained encoder to classify texts.",
            "attnlab classify --task reviews.csv --tune lora",
            CONFIGS["classify"],
            _classify,
            ACCURACIES,
            {("data", "score_test"): False, ("watch", "baselines"): False},
        ),
    )
}


def measured() -> list[str]:
    """The kinds that have a measure, so that their runs can be compared and searched."""
    return [name for name, kind in KINDS.items() if kind.measures]


def kind_of_run(path: Path) -> Kind:
    """The kind of a run folder; raises for any other kind."""
    name = read_record(path)["kind"]
    if name not in KINDS:
        raise UserError(f"{path} is a {name} run, which cannot be resumed: start it again.")
    return KINDS[name]


def saved_config(path: Path) -> Section:
    """The configuration a run was started with; attention whose file is gone or has changed is the run's own copy."""
    config = check(kind_of_run(path).config, trained_config(path))
    model = getattr(config, "model", None)
    if isinstance(model, GPTSection):
        model.attention = own_attention(path, model.attention)
    return config


def must_be_resumable(path: Path) -> None:
    """Raise if the run is finished."""
    if read_status(path)["state"] == "finished":
        raise UserError(f"{path} is finished: there is nothing to resume ('attnlab runs show {path}').")
