"""Tune a pretrained model to classify texts: all weights, the head, or the weights a method adds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.config.classify import CONTRASTIVE, MAJORITY, ClassifyConfig
from attnlab.data.batching import Examples
from attnlab.data.encoded import EncodedExamples
from attnlab.data.same_class import SameClassPairs
from attnlab.data.tasks.bad_rows import write_bad_rows
from attnlab.data.tasks.catalog import read_texts, select_examples
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.evaluation.labelled import predicted_examples
from attnlab.jobs.classify import baselines, collapse, folds, joint
from attnlab.jobs.classify.built import Built, build, with_fitted_head, word_vectors
from attnlab.jobs.classify.calibration import calibrate
from attnlab.jobs.classify.rate import find_rate
from attnlab.jobs.classify.suspects import write_suspects
from attnlab.jobs.engine import TrainingJob
from attnlab.jobs.job import Parts, RunOptions, TrainedModel
from attnlab.models.linear.logistic import Logistic
from attnlab.models.pretrained.classifier import Subset, predict
from attnlab.models.pretrained.tuned import load_trained
from attnlab.models.pretrained.tuning import learning
from attnlab.runs import RunFolder, fresh_path, read_status
from attnlab.runs.checkpoints import Checkpoints, load_best
from attnlab.runs.folder import INPUTS
from attnlab.runs.predictions import write_predictions
from attnlab.stats.scores import Scores
from attnlab.training.adversarial import Adversarial
from attnlab.training.callbacks import Callback, JointProgress, TrainState
from attnlab.training.contrastive import Contrastive
from attnlab.training.loop import Metric
from attnlab.training.objectives import Classification, Evaluate, Objective

if TYPE_CHECKING:
    from attnlab.report.page import Passage

SKIPPED_ROWS = "skipped-rows.csv"
FEW = 0.2  # share of weights: if fewer are trained, a collapse is more likely a rate too low than too high


class ClassifyJob(TrainingJob[ClassifyConfig]):
    kind = "classify"

    def __init__(self, config: ClassifyConfig) -> None:
        super().__init__(config)
        self.tried: list[str] = []
        """One sentence per earlier attempt at a higher rate."""
        self.folder: Path | None = None
        """Of the run, once it starts."""
        self.single = True
        """Whether the run is not part of an experiment, in which all runs have the same rows."""

    @property
    def rate(self) -> float:
        """The learning rate, once `build` has filled it in."""
        rate = self.config.optimizer.lr
        assert isinstance(rate, float)
        return rate

    def run(self, options: RunOptions) -> Path | None:
        """Train; after a collapse, with `on_collapse: retry`, again at a lower rate, in the same folder.

        With folds, all of them.
        """
        folds.check_folds(self.config)
        self.single = options.label is None
        if folds.is_cross_validation(self.config):
            if options.dry_run:
                console.result(f"this is the first of {self.config.data.folds} folds, which take as long each")
                return ClassifyJob(folds.fold_config(self.config, 1)).run(options)
            return folds.cross_validate(self.config, options)
        options = (
            options if options.path or options.dry_run else replace(options, path=fresh_path(options.root, self.kind))
        )
        self.folder = options.path and Path(os.path.abspath(options.path))
        if options.resume and self.folder is not None:
            _must_be_continuable(self.folder)
            self._find_inputs()
        while True:
            try:
                return super().run(options)
            except collapse.Collapsed as failure:
                if self.config.watch.on_collapse != "retry" or len(self.tried) == collapse.TRIES:
                    raise
                rate = self.rate
                self.config.optimizer.lr = rate * collapse.RATE_CUT
                self.tried.append(
                    f"at a learning rate of {rate:g} {failure} Started again at {self.config.optimizer.lr:g}."
                )
                options = replace(options, overwrite=True, resume=False)

    def build(self, device: str) -> Parts:
        config = self.config
        read = read_texts(config.data)
        data = select_examples(read, config.data, config.training.seed, config.watch.overfit)
        built = build(config, data, read, device)
        model, examples, texts = built.model, built.examples, built.texts
        labels = {split: torch.tensor(part.labels) for split, part in texts.items()}
        objective: Objective = Classification(data.weights() if config.data.class_weights else None)
        if config.optimizer.lr == "auto":
            found = find_rate(model, objective, examples, labels["dev"], config, device)
            config.optimizer.lr = found.rate
            built.changes.append(found.sentence())
        watch = collapse.CollapseWatch(data.classes, self._cause(model), config.watch.on_collapse)
        fitted: list[Logistic] = []

        def fit(find: Callable[[], Logistic]) -> int:
            fitted.append(find())
            return max(1, fitted[-1].iterations)

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            load_best(model, run.path)
            raw: dict[str, Scores] = {
                split: Scores(predict(model, examples[split], device), labels[split])
                for split in ("dev", "test")
                if split in examples
            }
            scores, calibration = calibrate(raw, fit=config.watch.overfit is None)
            run.update_record(calibration=calibration)
            if data.skipped:
                write_bad_rows(data.skipped, run.path / SKIPPED_ROWS)
            if self.single and config.watch.label_errors and config.watch.overfit is None:
                write_suspects(run.path, data)
            cost = {"feature_seconds": built.seconds} if built.seconds else {}
            chosen = {"c": fitted[0].c} if fitted and fitted[0].c is not None else {}
            temperature = {"temperature": calibration["temperature"]}
            return cost | chosen | temperature | self._finish(run, data, built, scores, device)

        train, callbacks = examples["train"], list[Callback]([watch])
        evaluate = self._evaluation(examples, labels, device, watch)
        if config.tuning.method == CONTRASTIVE and isinstance(texts["train"], EncodedExamples):
            objective, train = Contrastive(), SameClassPairs(texts["train"], config.training.seed)
            evaluate = with_fitted_head(evaluate, texts["train"], config, data, device)
        if config.tuning.adversarial and built.loaded is not None:
            vectors = word_vectors(built.loaded.model, config.tuning)
            objective = Adversarial(objective, vectors, config.tuning.adversarial)
        if config.joint.mlm is not None and built.loaded is not None and isinstance(texts["train"], EncodedExamples):
            objective = joint.objective(config.joint, objective)
            train = joint.examples(config, built.loaded, texts["train"])
            callbacks.append(JointProgress(objective))
        return Parts(
            model,
            objective,
            train,
            evaluate,
            Metric(config.watch.choose_by, "lower" if config.watch.choose_by == "loss" else "higher", "loss"),
            files=built.files,
            facts=self._facts(data) | built.facts | {"cut": {split: part.cut for split, part in texts.items()}},
            changes=self._changes(data, built),
            fit=partial(fit, built.fit) if built.fit is not None else None,
            finish=finish,
            reading_seconds=built.seconds,
            callbacks=[] if config.model.name == MAJORITY else callbacks,
            whole=built.loaded.model if built.loaded is not None and config.tuning.method == "head" else None,
            passages=self.passages,
        )

    def _find_inputs(self) -> None:
        """Texts that are stored in the run folder are read from where that folder, or its copy, is now."""
        assert self.folder is not None
        for name in ("task", "dev"):
            before = Path(getattr(self.config.data, name) or "")
            now = self.folder / INPUTS / before.name
            if before.parent.name == INPUTS and now.is_file():
                setattr(self.config.data, name, str(now))

    def _facts(self, data: LabelledSet) -> dict[str, Any]:
        """About the data; a file in the run folder by its path there, since the folder may be moved."""

        def inside(path: str) -> str:
            here = self.folder
            return str(Path(path).relative_to(here)) if here and Path(path).is_relative_to(here) else path

        facts = data.facts()
        files = {split: file | {"path": inside(file["path"])} for split, file in facts["files"].items()}
        return facts | {"data": inside(facts["data"]), "files": files}

    def _evaluation(
        self, examples: Mapping[str, Examples], labels: Mapping[str, Tensor], device: str, watch: collapse.CollapseWatch
    ) -> Evaluate:
        """Scores on dev, and accuracy on a sample of train with dropout off, so that the two can be compared."""
        sample = self._train_sample(len(labels["train"]))

        def evaluate(model: nn.Module) -> dict[str, float]:
            watch.last = scores = Scores(predict(model, examples["dev"], device), labels["dev"])
            values = scores.summary() | {"largest_share": scores.favourite[1]}
            if len(sample):
                predicted = predict(model, Subset(examples["train"], sample), device).argmax(-1)
                values["train_accuracy"] = float((predicted == labels["train"][sample]).double().mean())
            return values

        return evaluate

    def _train_sample(self, count: int) -> list[int]:
        if self.config.watch.overfit is not None:
            return []  # dev is train
        size = min(count, self.config.watch.train_sample)
        chosen = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:size]
        return sorted(chosen.tolist())

    def _cause(self, model: nn.Module) -> str:
        if self.config.is_fitted:
            return "likely cause: too few rows for what separates the classes"
        schedule, rate = self.config.schedule, self.rate
        warmup = any((schedule.warmup_steps, schedule.warmup_ratio, schedule.warmup_tokens))
        few = learning(model) < FEW * sum(weight.numel() for weight in model.parameters())
        return collapse.likely_cause(rate, warmup, few or self.config.tuning.method == "head")

    def _changes(self, data: LabelledSet, built: Built) -> list[str]:
        changes = [*self.tried, *data.notes, *built.changes]
        if built.fit is not None and (self.config.training.epochs or self.config.training.steps):
            changes.append("a logistic regression is fitted to convergence: it has no epochs and no rate.")
        if total := sum(part.cut for part in built.texts.values()):
            what = "pairs" if data.paired else "texts"
            of = sum(len(part.labels) for part in built.texts.values())
            changes.append(
                f"{total:,} of {of:,} {what} are longer than {built.longest} tokens and were cut"
                f"{' in the second text' if data.paired else ''}."
            )
        return changes

    def _finish(
        self, run: RunFolder, data: LabelledSet, built: Built, scores: Mapping[str, Scores], device: str
    ) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for split, split_scores in scores.items():
            results |= {f"{split}_{name}": value for name, value in split_scores.summary().items()}
            results[f"{split}_baseline"] = split_scores.majority
            write_predictions(run.path, split, predicted_examples(data.splits[split], data.classes, split_scores))
        collapsed = scores["dev"].collapsed and self.config.model.name != MAJORITY  # which is meant to be so
        if collapsed:
            message = f"{collapse.sentence(scores['dev'], data.classes)}."
            console.warn(message)
            run.update_record(collapsed=message)
        results["collapsed"] = collapsed
        if self.config.watch.overfit is not None:
            results["overfit"] = scores["dev"].accuracy == 1.0
            console.say(_overfit_sentence(scores["dev"]))
            return results
        if self.config.watch.baselines:
            results |= baselines.put_beside(run, self.config, data, built, device)
        if self.config.model.name != MAJORITY:
            baselines.judge(run, scores)
        return results

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        folds.one_model(run)
        return load_trained(run)

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        """The test scores of a finished run that did not use its test split, such as the winner of a sweep."""
        trained = load_trained(run)
        data = read_texts(trained.config.data)
        if "test" not in data.splits:
            raise UserError(f"{run}: {data.name} has no test split.")
        scores = trained.score(data.splits["test"])
        place = run / "evaluations" / "test"
        place.mkdir(parents=True, exist_ok=True)
        write_predictions(place, "test", predicted_examples(data.splits["test"], data.classes, scores))
        return {f"test_{name}": value for name, value in scores.summary().items()} | {"test_baseline": scores.majority}

    @classmethod
    def passages(cls, run: Path, record: dict[str, Any]) -> Sequence[Passage]:
        from attnlab.jobs.classify.page import passages  # loads matplotlib

        return folds.passages(run) or passages(run, record)


def _must_be_continuable(run: Path) -> None:
    """Raise for a finished run that kept only its best weights."""
    if read_status(run)["state"] == "finished" and not Checkpoints(run / "checkpoints").steps():
        raise UserError(
            f"{run} is finished and kept its best weights only: start a new run (one with --keep 1 can be continued)."
        )


def _overfit_sentence(scores: Scores) -> str:
    correct, count = int((scores.predicted == scores.labels).sum()), len(scores.labels)
    if correct == count:
        return f"overfit check passed: all {count} examples memorized."
    return (
        f"overfit check NOT passed: {correct} of {count} examples memorized; a correct set-up memorizes all: check "
        "the labels, raise the learning rate or --epochs."
    )
