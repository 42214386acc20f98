"""The page of a classification run is made from what the run wrote down, and keeps the test set unread."""

import json
from pathlib import Path

import pytest

from attnlab.jobs.classify.page import accuracy_by_epoch, passages
from attnlab.report.classes import class_table, confused_pairs, confusion_figure, scores_of
from attnlab.report.page import write_run_page
from attnlab.runs import MetricsWriter, RunFolder, read_record
from attnlab.runs.predictions import PredictedExample, write_predictions

CLASSES = ["no", "yes"]


def row(text: str, label: str, predicted: str, probability: float) -> PredictedExample:
    of_label = probability if predicted == label else 1 - probability
    return PredictedExample(text, label, predicted, probability, of_label, f"about {text}")


DEV = [
    row("alpha <b>", "no", "yes", 0.7),
    row("beta", "no", "no", 0.9),
    row("gamma", "yes", "yes", 0.8),
    row("delta " * 200, "yes", "no", 0.95),
    row("epsilon", "yes", "yes", 0.85),
]
TEST = [row("secret", "no", "yes", 0.99), row("other", "yes", "yes", 0.6)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = RunFolder.create(tmp_path / "run", "classify", {"tuning": {"method": "lora"}}, seed=0)
    for split, examples in (("dev", DEV), ("test", TEST)):
        write_predictions(made.path, split, examples)
    writer = MetricsWriter(made.metrics)
    for step, (train, dev) in enumerate([(0.6, 0.5), (0.9, 0.6)], start=1):
        writer.write(step=10 * step, epoch=step, split="dev", accuracy=dev, train_accuracy=train)
    writer.close()
    made.update_record(
        data={"classes": CLASSES, "examples": {"train": 80, "dev": 5, "test": 2}},
        parameters=1_000_000,
        learning_parameters=1_234,
        training={"step": 20, "examples": 160},
        results={"dev_accuracy": 0.6},
    )
    made.set_status("finished")
    made.close()
    return made.path


def test_classes_mistakes_and_confidence(run: Path) -> None:
    text = write_run_page(run, passages(run, read_record(run))).read_text()
    assert "1,234 of 1,000,000 parameters are trained (0.123%)" in text
    assert "60.0% (" in text and "Expected calibration error on test" in text and 'role="alert"' not in text
    assert text.index("delta delta") < text.index("alpha &lt;b&gt; | about alpha &lt;b&gt;")  # the surest first
    assert "delta " * 150 not in text  # and shortened
    assert "secret" not in text and "Mistakes on test are not shown" in text
    for name in ("confusion", "accuracy-by-epoch", "reliability"):
        assert (run / "figures" / f"{name}.png").stat().st_size > 3000
    assert scores_of(DEV, CLASSES).confusion.tolist() == [[1, 1], [1, 2]]
    assert accuracy_by_epoch(run, read_record(run)) == {
        "train": ([1.0, 2.0], [0.6, 0.9]),
        "dev": ([1.0, 2.0], [0.5, 0.6]),
    }


def test_a_collapse_stands_above_everything(run: Path) -> None:
    record = read_record(run)
    (run / "run.json").write_text(json.dumps(record | {"collapsed": "the classifier has collapsed: it predicts <no>."}))
    text = write_run_page(run, passages(run, read_record(run))).read_text()
    assert text.index("The classifier has collapsed: it predicts &lt;no&gt;.") < text.index("<h2>")


def test_a_run_without_predictions_has_a_page(run: Path) -> None:
    for split in ("dev", "test"):
        (run / f"predictions-{split}.jsonl").unlink()
    assert "confident mistakes" not in write_run_page(run, passages(run, read_record(run))).read_text()


def test_of_many_classes_the_worst_and_the_most_confused_come_first(tmp_path: Path) -> None:
    classes = [f"class {n}" for n in range(77)]
    pairs = [(n, n) for n in range(76) for _ in range(4)] + [(5, 6)] * 8 + [(9, 10)] * 3
    examples = [PredictedExample("x", classes[label], classes[found], 0.9) for label, found in pairs]
    scores = scores_of(examples, classes)
    names = [row[0] for row in class_table(scores, classes, "dev").rows]
    by_f1 = [float(row[-1]) for row in class_table(scores, classes, "dev").rows[:-1]]
    assert names[0] == "class 5" and names[-1] == "class 76" and by_f1 == sorted(by_f1)
    assert confused_pairs(scores, classes).rows == [
        ["class 5", "class 6", "8", "67%"],
        ["class 9", "class 10", "3", "43%"],
    ]
    figure = confusion_figure(tmp_path, scores, classes, "dev")
    assert "the 12 of 77 classes with most mistakes" in figure.caption
