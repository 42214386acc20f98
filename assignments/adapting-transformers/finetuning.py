"""§3.1, fine-tuning basics: the four questions, by number.

    python finetuning.py --question 3 --pairs 1e-3/9,5e-4/7,125e-4/12,125e-4/20

Models, training, run folders and scores are the lab's.
"""

from __future__ import annotations

import sys

from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import one_sentence
from attnlab.jobs.study.options import Parser, listed, one_of, pair
from attnlab.jobs.study.questions import compare_models, draw_bars, draw_panels, full_training, overfit, say, search
from attnlab.jobs.study.study import Experiment, Study, run_study

TESTS = ((1e-3, 9), (5e-4, 7), (125e-4, 12), (125e-4, 20))
"""The document's tests 1 to 4: learning rate and number of epochs."""


def compare_tests(study: Study) -> None:
    """A run per pair, each scored on dev and test as in the document; curves of each, and all compared."""
    study.only_one("model")
    outcomes = search(study, study.models[0], "tests", score_test=True)
    if not any(outcome.done for outcome in outcomes):
        raise RunFailed(f"none of the tests finished: {outcomes[-1].reason}")
    tests = {
        f"test {n}: lr={rate:g}, {count} epochs": outcome
        for n, ((rate, count), outcome) in enumerate(zip(study.pairs, outcomes, strict=False), 1)
    }
    for outcome in outcomes:
        say(outcome)
    draw_panels(study, tests)
    draw_bars(study, tests, "-compared")


def compare_two_models(study: Study) -> None:
    """The same pairs for other models: the best of each on dev, its curves, and its test accuracy."""
    compare_models(study)
    best = {study.outcomes[place].name: study.outcomes[place] for place in study.extra["chosen"]}
    draw_panels(study, best, "-curves")


QUESTIONS = {
    "1": Experiment("10 instances memorized", overfit, batch_size=64),
    "2": Experiment("all the data, train and dev by epoch", full_training, batch_size=64),
    "3": Experiment("four tests of learning rate and epochs", compare_tests, batch_size=64, pairs=TESTS),
    "4": Experiment(
        "the tests for two other models",
        compare_two_models,
        models=("bert-base-cased", "roberta-base"),
        batch_size=64,
        pairs=TESTS,
    ),
}


def make_parser() -> Parser:
    parser = Parser("finetuning.py", __doc__)
    parser.add_argument(
        "--question",
        type=one_of(QUESTIONS),
        required=True,
        metavar="N",
        help="; ".join(f"{number}: {each.about}" for number, each in QUESTIONS.items()),
    )
    parser.add_argument(
        "--pairs", type=listed(pair), metavar="RATE/N[,RATE/N]", help="learning rates with epochs (questions 3 and 4)"
    )
    return parser


def main(words: list[str]) -> None:
    with one_sentence():
        asked = make_parser().parse_args(words)
        if asked.pairs and not QUESTIONS[asked.question].pairs:
            raise UserError("--pairs is for questions 3 and 4: use --lr and --num_epochs.")
        run_study(f"question-{asked.question}", QUESTIONS[asked.question], asked)


if __name__ == "__main__":
    main(sys.argv[1:])
