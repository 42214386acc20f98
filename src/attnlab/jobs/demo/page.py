"""The demo's page: questions, results, what they mean, and next steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.report import figures
from attnlab.report.page import Figure, Passage, Table, write_page
from attnlab.runs import read_metrics, read_record, series
from attnlab.runs.predictions import PredictedExample, read_examples
from attnlab.stats.intervals import Proportion


def write_demo_page(root: Path) -> Path:
    """Write report.html from the five run folders below `root`, and print its table."""
    runs = {
        name: read_record(root / name)
        for name in ("pretrained", "asked", "asked-unread", "classified", "classified-head")
    }
    (root / "figures").mkdir(exist_ok=True)
    knowledge, sentiment = _knowledge_scores(runs), _sentiment_scores(runs)
    passages = [
        Passage(
            "What the model knows",
            [_knowledge_text(runs, knowledge)],
            [_table(knowledge, "answers on test")],
            _knowledge_figures(root, knowledge),
        ),
        Passage("Example answers", tables=[_examples(root)]),
        Passage(
            "A real encoder on labelled sentences",
            [_sentiment_text(sentiment)],
            [_sentiment_table(runs, sentiment)],
            _sentiment_figures(root, sentiment),
        ),
        Passage("What it cost", tables=[_cost(runs)]),
        Passage(
            "Read with care",
            [
                f"One seed ({runs['pretrained']['seed']}) each: the intervals are 95% Wilson intervals over the test "
                "questions and say nothing about other seeds. Weights were chosen on dev; test was used once."
            ],
        ),
        Passage(
            "Next steps",
            printed=f'attnlab ask {root / "asked"} "{_a_question(root)}"\n'
            f"attnlab runs --in {root}\nattnlab pretrain --help",
        ),
    ]
    path = root / "report.html"
    lead = "A small GPT that answers from what it has read, and a real encoder, tuned two ways."
    write_page(path, "Attention Lab: the demo", lead, passages)
    for title, scores in (("Where was X born? (people seen only in pretraining)", knowledge), ("sentiment", sentiment)):
        console.result(title)
        for name, score in scores.items():
            console.result(f"  {name:<28} {score}")
    return path


def _proportion(record: dict[str, Any], name: str, sizes: str) -> Proportion:
    count = record["data"][sizes]["test"]
    return Proportion(round(record["results"][name] * count), count)


def _knowledge_scores(runs: dict[str, Any]) -> dict[str, Proportion]:
    return {
        "pretrained": _proportion(runs["asked"], "test_accuracy", "questions"),
        "not pretrained": _proportion(runs["asked-unread"], "test_accuracy", "questions"),
        "most common place": _proportion(runs["asked"], "test_baseline", "questions"),
    }


def _sentiment_scores(runs: dict[str, Any]) -> dict[str, Proportion]:
    return {
        "all weights": _proportion(runs["classified"], "test_accuracy", "examples"),
        "head only": _proportion(runs["classified-head"], "test_accuracy", "examples"),
    }


def _knowledge_text(runs: dict[str, Any], scores: dict[str, Proportion]) -> str:
    people, questions = runs["pretrained"]["data"]["people"], runs["asked"]["data"]["questions"]
    pretrained, fresh, common = scores.values()
    clear = pretrained.interval[0] > common.interval[1]
    verdict = (
        "The pretrained model is clearly above the most common place: it stored the answers in pretraining, and "
        "fine-tuning on other people taught it to retrieve them."
        if clear
        else "The intervals overlap: at this size the run does not show that pretraining helped."
    )
    return (
        f"A GPT of {runs['pretrained']['parameters']:,} parameters read {runs['pretrained']['data']['documents']:,} "
        f'short documents about {people} invented people. It was then fine-tuned on "Where was X born?" for '
        f"{questions['train']} of them and asked about {questions['test']} others, about whom it had only read. "
        f"{verdict} Without pretraining the same model scores {fresh.share:.1%}: nothing in the questions shows where "
        f"an unseen person was born, and its best guess is the most common place ({common.share:.1%})."
    )


def _sentiment_text(scores: dict[str, Proportion]) -> str:
    full, head = scores.values()
    separate = full.interval[0] > head.interval[1] or head.interval[0] > full.interval[1]
    verdict = (
        "The difference is larger than the intervals."
        if separate
        else "The intervals overlap: no significant difference with so few sentences, and the head costs far less."
    )
    return (
        "all-MiniLM-L6-v2 (22.7 million parameters, pretrained by others) on the package's own sentences, positive or "
        f"negative, half of each. {verdict}"
    )


def _table(scores: dict[str, Proportion], what: str) -> Table:
    rows = [[name, f"{score.right} of {score.count}", str(score)] for name, score in scores.items()]
    return Table(["", f"correct {what}", "share (95% interval)"], rows)


def _sentiment_table(runs: dict[str, Any], scores: dict[str, Proportion]) -> Table:
    rows = []
    for (name, score), run in zip(scores.items(), ("classified", "classified-head"), strict=True):
        record = runs[run]
        seconds = record["training"]["seconds"] + record["results"].get("feature_seconds", 0.0)
        rows.append([name, str(score), f"{record['learning_parameters']:,}", clock(seconds)])
    return Table(["tuned", "test accuracy (95% interval)", "learning parameters", "time, all epochs"], rows)


def _knowledge_figures(root: Path, scores: dict[str, Proportion]) -> list[Figure]:
    loss = figures.curves(
        {"training": series(root / "pretrained" / "metrics.jsonl", "train", "loss")},
        "Pretraining",
        "step",
        "loss per token",
    )
    dev = {
        name: series(root / run / "metrics.jsonl", "dev", "accuracy")
        for name, run in (("pretrained", "asked"), ("not pretrained", "asked-unread"))
    }
    baseline = {"most common place": read_record(root / "asked")["results"]["dev_baseline"]}
    accuracy = figures.curves(dev, "Fine-tuning", "step", "accuracy on dev", baseline, percent=True)
    bars = figures.bars({n: (s.share, s.interval) for n, s in scores.items()}, "Where was X born?", "test accuracy")
    return [
        Figure(figures.save(bars, root / "figures" / "knowledge.png"), "Test accuracy with 95% intervals."),
        Figure(figures.save(loss, root / "figures" / "pretraining.png"), "Loss while the model reads."),
        Figure(figures.save(accuracy, root / "figures" / "finetuning.png"), "Dev accuracy while it learns to answer."),
    ]


def _sentiment_figures(root: Path, scores: dict[str, Proportion]) -> list[Figure]:
    lines = {}
    for name, run in (("all weights", "classified"), ("head only", "classified-head")):
        evaluations = [line for line in read_metrics(root / run / "metrics.jsonl") if line["split"] == "dev"]
        lines[name] = ([line["epoch"] for line in evaluations], [line["accuracy"] for line in evaluations])
    drawn = figures.curves(lines, "Sentiment", "epoch", "dev accuracy", {"chance": 0.5}, percent=True)
    bars = figures.bars({n: (s.share, s.interval) for n, s in scores.items()}, "Sentiment", "test accuracy")
    return [
        Figure(figures.save(bars, root / "figures" / "sentiment.png"), "Test accuracy with 95% intervals."),
        Figure(figures.save(drawn, root / "figures" / "sentiment-epochs.png"), "Dev accuracy by epoch."),
    ]


def _predictions(root: Path, run: str) -> list[PredictedExample]:
    return read_examples(root / run, "test") or []


def _examples(root: Path) -> Table:
    """A few test questions with both models' answers: some correct, some wrong, in the order of the file."""
    pairs = list(zip(_predictions(root, "asked"), _predictions(root, "asked-unread"), strict=True))
    correct = [pair for pair in pairs if pair[0].label == pair[0].predicted][:4]
    wrong = [pair for pair in pairs if pair[0].label != pair[0].predicted][:3]
    rows = [[one.text, one.label, _answer(one), _answer(two)] for one, two in correct + wrong]
    return Table(["question", "born in", "pretrained (confidence)", "not pretrained"], rows)


def _answer(example: PredictedExample) -> str:
    return f"{example.predicted} ({example.probability:.4f})"


def _a_question(root: Path) -> str:
    return _predictions(root, "asked")[0].text


def _cost(runs: dict[str, Any]) -> Table:
    rows = [
        [
            name,
            f"{record['training']['step']:,}",
            f"{record['training']['tokens']:,}",
            f"{record['padding']:.1%}",
            clock(record["training"]["seconds"]),
        ]
        for name, record in runs.items()
    ]
    machine = runs["pretrained"]["machine"]
    return Table([f"run, on {machine['cores']} cores", "steps", "tokens", "padding", "time in steps"], rows)
