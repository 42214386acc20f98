"""What FILE is in `attnlab evaluate RUN FILE`, by the kind of the run, and its evaluation where it is not questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import read_text, sha256, write_json, write_text
from attnlab.data.text.reading import read_corpus
from attnlab.evaluation import files
from attnlab.evaluation.labelled import LabelledScores, evaluate_labelled
from attnlab.evaluation.text import TextScores, evaluate_text
from attnlab.models.loading import TrainedGPT, load_gpt
from attnlab.models.pretrained.tuned import is_export, load_trained
from attnlab.models.sampling import trained_context
from attnlab.runs import read_config, read_record
from attnlab.runs.folder import command
from attnlab.runs.predictions import prediction_lines

QUESTIONS, TEXT, LABELLED = "questions", "a text", "labelled texts"
FILE_OF = {"finetune": QUESTIONS, "knowledge": QUESTIONS, "language": TEXT, "pretrain": TEXT, "classify": LABELLED}


@dataclass(frozen=True)
class FileEvaluation:
    """The results, where they and the single predictions were written, and what a reader must know."""

    results: dict[str, Any]
    folder: Path
    predictions: Path | None
    count: int
    notes: list[str]


def file_kind(run: Path, file: bool, questions: bool) -> str:
    """What a run is evaluated on, QUESTIONS, TEXT or LABELLED, where a file or questions are given or not.

    Pretraining can have questions mixed in: a pretrained model without FILE is asked, its own questions if none are
    given.
    """
    kind = "classify" if is_export(run) else read_record(run)["kind"]
    if kind not in FILE_OF:
        raise UserError(f"{run} is not a single run but a {kind}: evaluate one of its runs.")
    asked = not file and (questions or kind == "pretrain")
    return QUESTIONS if asked and FILE_OF[kind] == TEXT else FILE_OF[kind]


def evaluate_text_file(
    run: Path,
    file: Path,
    context: int | None = None,
    stride: int | None = None,
    per_token: bool = False,
    outputs: Path | None = None,
    out: Path | None = None,
) -> FileEvaluation:
    """The loss of a language model on a file: one stream, or one document per line if it was trained on documents."""
    trained = load_gpt(run)
    files.check_places(run, outputs, out)
    stream = read_record(trained.run)["kind"] == "language"
    documents = [read_text(file)] if stream else read_corpus(file)
    scores = evaluate_text(
        trained.model, trained.vocabulary, documents, trained_context(trained) if context is None else context, stride
    )
    notes = _text_notes(trained, file, scores, len(documents))
    lines = ""
    if per_token or outputs is not None:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in scores.rows())
    return _written(run, file, scores.summary(), notes, ("tokens.jsonl", lines, scores.tokens), outputs, out)


def evaluate_labelled_file(
    run: Path,
    file: Path,
    device: str = "auto",
    outputs: Path | None = None,
    out: Path | None = None,
    abstain_below: float | None = None,
) -> FileEvaluation:
    """A classifier, of a run or an export, on a file with labels; with `abstain_below`, what a threshold does."""
    files.check_places(run, outputs, out)
    trained = load_trained(run, device)
    examples = trained.read(file, labelled=True).examples
    labelled = [example for example in examples if example.label >= 0]
    scores = evaluate_labelled(trained, labelled, f"{file}, ")
    notes = []
    if unlabelled := len(examples) - len(labelled):
        notes.append(f"{unlabelled:,} of {len(examples):,} rows have no label and were left out.")
    if scores.cut:
        what = "pairs are longer, and their second text was" if trained.paired else "texts are longer and were"
        notes.append(f"the classifier reads {trained.longest} tokens: {scores.cut:,} {what} cut.")
    if scores.scores.collapsed:
        notes.append("nearly all texts get one class: the classifier has collapsed.")
    lines = ("predictions.jsonl", prediction_lines(scores.predictions), len(scores.predictions))
    summary = scores.summary()
    if abstain_below is not None:
        summary["abstention"] = scores.abstention(abstain_below).to_dict()
    return _written(run, file, summary, notes, lines, outputs, out, lambda to: _page(to, run, file, scores, notes))


def _page(folder: Path, run: Path, file: Path, scores: LabelledScores, notes: Sequence[str]) -> None:
    """The report: scores, classes, what is confused, mistakes, calibration."""
    from attnlab.report import classes as shown
    from attnlab.report.page import Passage, write_page

    name, examples = file.name, scores.predictions
    tables = [
        shown.summary_table({name: scores.scores}),
        shown.class_table(scores.scores, scores.classes, name),
        shown.confused_pairs(scores.scores, scores.classes),
    ]
    figure = shown.confusion_figure(folder, scores.scores, scores.classes, name)
    warning = "Nearly all texts get one class: the classifier has collapsed." if scores.scores.collapsed else ""
    passages = [
        Passage("Classes", list(notes), tables, [figure]),
        shown.mistakes_passage(examples, name, "Whoever improves a model by them measures it on other texts."),
        shown.confidence_passage(folder, examples, name),
        Passage("How to reproduce it", printed=command()),
    ]
    write_page(folder / "report.html", f"{run.name} on {name}", f"The classifier {run} on {file}.", passages, warning)


def _text_notes(trained: TrainedGPT, file: Path, scores: TextScores, documents: int) -> list[str]:
    """What the loss of this text does not mean."""
    notes, run = [], trained.run
    if read_record(run).get("data", {}).get("sha256") == sha256(file):
        notes.append(f"{file} is the text that {run} was trained on.")
    if read_config(run).get("objective", {}).get("hidden_only"):
        notes.append(f"{run} was trained to predict hidden phrases only: it has not learned to continue a text.")
    if scores.sees_future and scores.stride > 1:
        notes.append(
            f"hiding the future raises the loss by {scores.future:.3f} per token: the model sees the future, and this "
            "loss was measured with later tokens in its input; --stride 1 hides them."
        )
    if short := documents - len(scores.documents):
        notes.append(f"{short:,} of {documents:,} documents have a single token: there is nothing to predict in them.")
    if scores.unknown_share:
        notes.append(
            f"{scores.unknown_share:.1%} of the tokens are unknown to the model and are predicted as such: the numbers "
            "compare only with models of the same vocabulary."
        )
    return notes


def _written(
    run: Path,
    file: Path,
    summary: Mapping[str, Any],
    notes: list[str],
    predictions: tuple[str, str, int],
    outputs: Path | None,
    out: Path | None,
    page: Callable[[Path], None] | None = None,
) -> FileEvaluation:
    """results.json in a folder, with a page if there is one, and the single predictions there or in `outputs`."""
    name, lines, count = predictions
    results = {"run": str(run), "source": str(file), "command": command(), "notes": notes, **summary}
    folder = out or files.new_folder(run, file.stem)

    def fill(partial: Path) -> None:
        write_json(partial / "results.json", results)
        if page is not None:
            page(partial)
        if lines and outputs is None:
            write_text(partial / name, lines)

    files.write_folder(folder, fill)
    if outputs is not None:
        files.write_file(outputs, lines)
    return FileEvaluation(results, folder, outputs or (folder / name if lines else None), count, notes)
