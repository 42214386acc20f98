"""The experiments of the document by name, each with the document's settings: §3, questions 2 and 5 to 9."""

from __future__ import annotations

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.jobs.study.options import Pair
from attnlab.jobs.study.questions import choose, compare_models, full_training, overfit, say, search, short
from attnlab.jobs.study.study import Experiment, Study
from attnlab.report.study_figures import heat_map

RATES, EPOCHS = (1e-4, 5e-4, 1e-3), (5, 7, 9)
ENCODERS = (
    "distilbert-base-uncased",
    "bert-base-uncased",
    "bert-large-uncased",
    "bert-large-cased",
    "roberta-base",
    "roberta-large",
)
T5 = ("t5-small", "t5-base", "t5-large")


def parameter_tuning(study: Study) -> None:
    """Every learning rate with every number of epochs; the best on dev is scored on test, once."""
    study.only_one("model")
    outcomes = search(study, study.models[0], "grid")
    best = choose(outcomes)
    if best is None:
        raise RunFailed(f"none of the runs finished: {outcomes[-1].reason}")
    chosen = outcomes.index(best)
    study.extra["chosen"] = [chosen]
    best = study.score_test(best)
    cells: dict[Pair, float | None] = dict.fromkeys(study.pairs)
    cells |= {pair: each.accuracy("dev") for pair, each in zip(study.pairs, outcomes, strict=False) if each.done}
    title = f"Dev accuracy of {short(study.models[0])} on {study.task}"
    study.draw(heat_map(cells, study.rates, study.epochs, study.pairs[chosen], title))
    console.result(f"chosen on dev: {best.name}")
    say(best)


def t5(study: Study) -> None:
    """T5 is no encoder: it answers with a word, yes or no, and the likelier one counts."""
    compare_models(study, head="words")


EXPERIMENTS = {
    "overfit": Experiment("10 instances memorized (questions 2 and 5)", overfit, batch_size=64),
    "full_training": Experiment(
        "all the data, train and dev by epoch (6)", full_training, batch_size="auto", epochs=(30,)
    ),
    "parameter_tuning": Experiment(
        "the best of learning rates by epochs (7)", parameter_tuning, rates=RATES, epochs=EPOCHS
    ),
    "cross_model": Experiment(
        "the same search for six encoders (8)", compare_models, models=ENCODERS, rates=RATES, epochs=EPOCHS
    ),
    "t5": Experiment("the same search for T5 of three sizes (9)", t5, models=T5, rates=RATES, epochs=EPOCHS),
}
