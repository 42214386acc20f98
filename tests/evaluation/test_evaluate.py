"""`attnlab evaluate` on a world and on a user's own files: what is written, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.data.questions import read_pairs
from attnlab.evaluation.evaluate import Evaluation, EvaluationOptions, evaluate_run
from attnlab.evaluation.sources import find_sources
from attnlab.models.asking import DONT_KNOW


def test_a_world_run_is_reported_with_unseen_names_traces_and_a_threshold_from_dev(world_run, tmp_path) -> None:
    out = tmp_path / "report"
    done = evaluate_run(world_run, EvaluationOptions(out=out, abstain_below=0.3, unseen_names=30))
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    count = found["accuracy"]["count"]
    assert count == 11 and sum(group["count"] for group in found["bins"]) == count
    assert sum(each["count"] for each in found["categories"]) == count
    assert all(each["count"] == 0 for each in found["categories"] if each["kind"] == "person never named")
    # In a world the answer is always in a line about the person: a right answer cannot be made up.
    assert all(each["expected_in_lines"] == each["count"] for each in found["categories"])
    assert not any(each["count"] for each in found["categories"] if each["right"] and each["kind"] == "made up")
    # Words of an invented name are not in the vocabulary, so known words are recombined as well.
    invented, recombined = found["unseen"]["kinds"]
    assert invented["count"] == recombined["count"] == 30 and found["unseen"]["known"] == count
    assert invented["not_in_vocabulary"] > 0 and recombined["not_in_vocabulary"] == 0
    cut = found["abstention"]
    assert cut["answered"] + cut["wrong_avoided"] + cut["right_lost"] == count
    assert found["chosen_on_dev"]["wished"] == 0.8
    lines = (out / "predictions.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == count and lines.count(DONT_KNOW) == count - cut["answered"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml") == 4 and "http" not in page.split("</style>")[1].replace("http-equiv", "")
    for name in ("reliability", "coverage", "unseen-names", "name-probabilities"):
        assert (out / "figures" / f"{name}.png").stat().st_size > 1000 and (out / "figures" / f"{name}.svg").is_file()
    assert done.folder == out


def test_own_files_labelled_unlabelled_and_with_an_unseen_name(own, tmp_path) -> None:
    pairs = read_pairs(own.files / "test.tsv")
    labelled, bare = tmp_path / "labelled.tsv", tmp_path / "bare.tsv"
    rows = [f"{q}\t{a}" for q, a in pairs]
    labelled.write_text("\n".join([*rows[:2], "", *rows[2:], "Where was Qqq Nobody born?\tOslo"]), encoding="utf-8")
    bare.write_text("\n".join(q for q, _ in pairs), encoding="utf-8")

    done = evaluate_run(
        own.asked, EvaluationOptions(questions=labelled, outputs=tmp_path / "said.txt", unseen_names=20)
    )
    assert done.results is not None and done.folder is not None and done.folder.parent == own.asked / "evaluations"
    assert [kind["count"] for kind in done.results["unseen"]["kinds"]] == [1, 20]
    never = [each for each in done.results["categories"] if each["kind"] == "person never named"]
    assert sum(each["count"] for each in never) == 1
    assert any("blank lines" in note for note in done.notes)
    said = (tmp_path / "said.txt").read_text(encoding="utf-8").splitlines()
    assert len(said) == len(pairs) + 1

    before = set((own.asked / "evaluations").iterdir())
    only = evaluate_run(own.asked, EvaluationOptions(questions=bare, outputs=tmp_path / "bare.txt"))
    assert only.results is None and only.folder is None and set((own.asked / "evaluations").iterdir()) == before
    assert (tmp_path / "bare.txt").read_text(encoding="utf-8").splitlines() == said[:-1]


def test_the_lines_have_the_numbers_of_the_file(own) -> None:
    sources = find_sources(own.asked)
    question = read_pairs(own.files / "train.tsv")[0].question
    name = sources.template.name_in(question)
    lines = sources.pretraining.lines_naming(name)
    text = (own.files / "corpus.txt").read_text(encoding="utf-8").split("\n")
    assert lines and all(text[line.number - 1] == line.text and name in line.text for line in lines)


def test_dev_questions_choose_no_threshold_for_themselves(own) -> None:
    done = evaluate_run(own.asked, EvaluationOptions(questions=own.files / "dev.tsv", unseen_names=0))
    assert done.results is not None and done.results["chosen_on_dev"] is None
    assert any("dev questions are among" in note for note in done.notes)
    trained = evaluate_run(own.asked, EvaluationOptions(questions=own.files / "train.tsv", unseen_names=0))
    assert any("were trained on" in note for note in trained.notes)


def test_a_corpus_that_changed_or_is_missing_is_reported(own, tmp_path) -> None:
    corpus = own.files / "corpus.txt"
    original = corpus.read_text(encoding="utf-8")
    try:
        corpus.write_text(original + "One more line.\n", encoding="utf-8")
        assert [note for note in find_sources(own.asked).notes if "checksum differs" in note]
        corpus.unlink()
        sources = find_sources(own.asked)
        assert sources.pretraining is None and any("give --corpus" in note for note in sources.notes)
        done = evaluate_run(own.asked, EvaluationOptions(unseen_names=5))
        assert done.results is not None and done.results["categories"] is None and done.results["unseen"] is None
        copy = tmp_path / "copy.txt"
        copy.write_text(original, encoding="utf-8")
        assert find_sources(own.asked, copy).notes == []
    finally:
        corpus.write_text(original, encoding="utf-8")


def tabs(file: Path) -> EvaluationOptions:
    file.write_text("Where was A B born?\tOslo\nWhere was C D born?\n")
    return EvaluationOptions(questions=file)


def empty(file: Path) -> EvaluationOptions:
    file.write_text("\n")
    return EvaluationOptions(questions=file)


def not_utf8(file: Path) -> EvaluationOptions:
    file.write_bytes(b"Where was A B born?\tOslo\nWhere was \xff born?\tOslo\n")
    return EvaluationOptions(questions=file)


def too_long(file: Path) -> EvaluationOptions:
    file.write_text(f"Where was A B born?\tOslo\n\nWhere was {'A' * 300} born?\tOslo\n")
    return EvaluationOptions(questions=file)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (tabs, r"bad.tsv, line 2 has no tab"),
        (empty, r"bad.tsv is empty"),
        (not_utf8, r"bad.tsv, line 2 is not UTF-8"),
        (too_long, r"bad.tsv, line 3 has 317 tokens .* context of 128"),
        (lambda file: EvaluationOptions(questions=file), r"bad.tsv does not exist"),
        (lambda file: EvaluationOptions(outputs=file.parent / "no" / "said.txt"), r"does not exist"),
        (lambda file: EvaluationOptions(outputs=file.parent), r"is a folder"),
        (lambda file: EvaluationOptions(corpus=file), r"bad.tsv does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    own, tmp_path: Path, make: Callable[[Path], EvaluationOptions], sentence: str
) -> None:
    file = tmp_path / "in" / "bad.tsv"
    file.parent.mkdir()
    options = make(file)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=sentence):
        evaluate_run(own.asked, options)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_is_not_empty_is_left_alone(own, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        evaluate_run(own.asked, EvaluationOptions(out=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_pretrained_run_alone_can_be_asked_too(own, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no test or dev questions of its own"):
        evaluate_run(own.pretrained, EvaluationOptions())
    done: Evaluation = evaluate_run(
        own.pretrained, EvaluationOptions(questions=own.files / "dev.tsv", out=tmp_path / "out")
    )
    assert done.results is not None and done.results["baseline"] is None
    assert not any(each["count"] for each in done.results["categories"] if each["kind"] == "person never named")
