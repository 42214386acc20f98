"""What a result is put beside: the most common class, and logistic regression on TF-IDF and on the frozen encoder's
vectors, fitted to the same rows and the same texts as the run, and scored on the same.

    run/baselines/NAME/predictions-SPLIT.jsonl    as the run's own
    run.json, "baselines"                         their scores, seconds and weights
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnlab.base import console
from attnlab.config.classify import EMBEDDINGS, MAJORITY, TFIDF, ClassifyConfig
from attnlab.data.encoded import EncodedExamples
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.evaluation.labelled import predicted_examples
from attnlab.jobs.classify.built import Built, fit_head, fit_sparse, frozen_body, word_reader
from attnlab.models.linear.logistic import Logistic
from attnlab.models.linear.model import TITLES, SparseLinear
from attnlab.models.pretrained.classifier import Classifier, predict
from attnlab.models.pretrained.load import frozen_pooling, load_classifier
from attnlab.runs import RunFolder, read_record
from attnlab.runs.paired import SIGNIFICANT, PairedRuns, pair_runs
from attnlab.runs.predictions import read_predictions, write_predictions
from attnlab.stats.intervals import Proportion
from attnlab.stats.scores import Scores
from attnlab.stats.significance import holm

FOLDER = "baselines"


@dataclass(frozen=True)
class Baseline:
    model: nn.Module
    scores: Mapping[str, Scores]
    fitted: Logistic
    seconds: float


def put_beside(
    run: RunFolder, config: ClassifyConfig, data: LabelledSet, built: Built, device: str
) -> dict[str, float]:
    """Fit and score the baselines of a run, store them in its folder; returns their accuracies for its results."""
    facts, results = {}, dict[str, float]()
    for name in names_of(config, built):
        with console.working(f"baseline: {TITLES[name]} ..."):
            vectors = name == EMBEDDINGS
            found = _embeddings(config, data, built, device) if vectors else _words(name, config, data, built)
        kept = {split: scores for split, scores in found.scores.items() if split != "train"}
        for split, scores in kept.items():
            folder = run.path / FOLDER / name
            folder.mkdir(parents=True, exist_ok=True)
            write_predictions(folder, split, predicted_examples(data.splits[split], data.classes, scores))
            results[f"{split}_{name}_accuracy"] = scores.accuracy
        facts[name] = {
            **{f"{split}_{key}": value for split, scores in kept.items() for key, value in scores.summary().items()},
            "seconds": round(found.seconds, 3),
            "parameters": sum(weight.numel() for weight in found.model.parameters()),
            "c": found.fitted.c,
        }
    run.update_record(baselines=facts)
    return results


def names_of(config: ClassifyConfig, built: Built) -> list[str]:
    """The baselines of a run, without itself, and for one without an encoder only what needs none."""
    if config.model.name == MAJORITY:
        return []
    if config.is_linear:
        return [MAJORITY]
    own = built.loaded.model if built.loaded is not None else None
    is_embeddings = (
        config.is_fitted and isinstance(own, Classifier) and own.pooling == frozen_pooling(config.model.name)
    )
    return [MAJORITY, TFIDF] if is_embeddings else [MAJORITY, TFIDF, EMBEDDINGS]


def _words(name: str, config: ClassifyConfig, data: LabelledSet, built: Built) -> Baseline:
    start = time.perf_counter()
    reader = word_reader(name, data, built.tokenizer, built.longest)
    rows = {split: reader.encode(part) for split, part in data.splits.items()}
    model = SparseLinear(reader.width, len(data.classes))
    fitted = fit_sparse(model, rows["train"], data.weights() if config.data.class_weights else None)
    scores = {split: Scores(predict(model, part, "cpu"), torch.tensor(part.labels)) for split, part in rows.items()}
    return Baseline(model, scores, fitted, time.perf_counter() - start)


def _embeddings(config: ClassifyConfig, data: LabelledSet, built: Built, device: str) -> Baseline:
    """The encoder anew from its folder: that of the run is tuned by now."""
    start, name = time.perf_counter(), config.model.name
    model = load_classifier(name, data.classes, frozen_pooling(name), "linear", 0.0, config.model.fast).model
    assert isinstance(model, Classifier)
    texts = {split: part for split, part in built.texts.items() if isinstance(part, EncodedExamples)}
    head, features = frozen_body(model, texts, device)
    fitted = fit_head(head, features["train"], data.weights() if config.data.class_weights else None)
    scores = {split: Scores(predict(head, part, device), part.labels) for split, part in features.items()}
    return Baseline(head, scores, fitted, time.perf_counter() - start)


def judge(run: RunFolder, scores: Mapping[str, Scores]) -> None:
    """Say, and record, that a result is at chance or below a baseline: on test, else on dev."""
    split = "test" if "test" in scores else "dev"
    chance = [] if scores["dev"].collapsed else at_chance(scores[split], split)  # a collapse says so itself
    sentences = [*chance, *below(run.path, split)]
    if sentences:
        verdict = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
        console.warn(verdict)
        run.update_record(verdict=verdict)


def at_chance(scores: Scores, split: str) -> list[str]:
    """A sentence if nothing is gained over the most common class that chance does not explain."""
    accuracy = Proportion(int(scores.confusion.trace()), len(scores.labels))
    if accuracy.interval[0] > scores.majority:
        return []
    return [
        f"no better than chance: {accuracy} of {split} are right, and always predicting the most common class gives "
        f"{scores.majority:.1%}"
    ]


def below(run: Path, split: str) -> list[str]:
    """A sentence per baseline that is right more often than the run, the most common class not counted."""
    sentences = []
    for name, pair in pairs_of(run, split).items():
        if name != MAJORITY and pair.difference < 0:
            clear = "" if pair.discordant.p <= SIGNIFICANT else ", which may be chance"
            sentences.append(
                f"below {TITLES[name]}, by {-pair.difference:.1%} of {split} (p = {pair.discordant.p:.2g}, "
                f"McNemar{clear})"
            )
    return sentences


def pairs_of(run: Path, split: str) -> dict[str, PairedRuns]:
    """The run against each of its baselines, on the same examples, corrected for their number."""
    own, found = read_predictions(run, split), {}
    for name in baselines_in(run):
        other = read_predictions(run / FOLDER / name, split)
        if own is not None and other is not None:
            found[name] = pair_runs(("this run", TITLES[name]), (own, other), [(own, other)])
    adjusted = holm([pair.discordant.p for pair in found.values()])
    return {name: replace(pair, adjusted=p) for (name, pair), p in zip(found.items(), adjusted, strict=True)}


def baselines_in(run: Path) -> dict[str, Any]:
    """What a run recorded about its baselines, by name; empty without any."""
    stored = read_record(run).get(FOLDER)
    return {name: stored[name] for name in TITLES if name in stored} if isinstance(stored, dict) else {}
