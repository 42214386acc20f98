"""The commands of the BERT assignment, as its document prints them, on few reviews; and given wrong things."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from attnlab.models.bert.heads import BertForCLSMLM, BertForSequenceClassification

Load = Callable[[str], ModuleType]
FOLDER = Path(__file__).parents[2] / "assignments" / "natural-language-processing-4"

# The second command as a copy of the document has it.
DAMAGED = r"""
python classifier_mlm.py \
   -model_type bert \
   —model_name_or_path huawei—noah/TinyBERT_General_4L_312D \
   —task_name yelp \
   -do_train \
   -do_eval \
   —data_dir ${YOUR_DATA_DIR} \
   —per_gpu_train_batch_size 32 \
   —learning_rate ${CLS_LR} \
   —num_train_epochs ${CLS_EPOCHS} \
   -\log ging\_steps 50 \setminus
   —max_seq_length ${Max_LENGTH} \
   —output_dir ${YOUR_OUTPUT_DIR} \
   —evaluate_during_training \
   -train_data_file $\{YOUR_UNLABELED_DATA_DIR\}/unlabeled_train_50000.txt \
   —block_size 128 \
   --mlm_alpha ${MLM_ALPHA} \
    —line_by_line \
   -overwrite_output_dir
"""
VARIABLES = {
    "YOUR_DATA_DIR": "yelp_small",
    "YOUR_UNLABELED_DATA_DIR": ".",
    "YOUR_OUTPUT_DIR": "out",
    "CLS_LR": "1e-2",
    "CLS_EPOCHS": "3",
    "MAXLENGTH": "24",
    "Max_LENGTH": "24",
    "MLM_ALPHA": "0.5",
}
SHORT = (
    "--model_name_or_path models/TinyBERT_General_4L_312D --data_dir yelp_small --output_dir out --do_train --do_eval "
    "--per_gpu_train_batch_size 8 --learning_rate 1e-2 --max_seq_length 24 --max_steps 4 --logging_steps 2 "
    "--evaluate_during_training --no_cuda"
)
JOINT = f"{SHORT} --train_data_file unlabeled_train_50000.txt --block_size 16 --line_by_line"


@pytest.fixture
def document(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the variables of the printed commands."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return place


def printed(text: str) -> list[str]:
    """The words a shell makes of a command, variables left for the script to see."""
    return shlex.split(text.replace("\\\n", " ").replace("\n", " "))


def shown(script: str) -> str:
    """The README's command for a script."""
    blocks = re.findall(r"```sh\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if block.startswith(f"python {script}"))


def failing(main: Callable[[list[str]], None], words: str | list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that is refused says: one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(words.split() if isinstance(words, str) else words)
    said = capsys.readouterr().err
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert stop.value.code == 2 and len(errors) == 1 and said.endswith(f"{errors[0]}\n"), said
    return errors[0]


def scores(path: str | Path = "out") -> dict[str, float]:
    lines = (Path(path) / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def results(path: str | Path = "out") -> dict:
    return json.loads((Path(path) / "results.json").read_text())


def test_the_first_command_learns_the_reviews(bert: Load, document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [os.path.expandvars(word) for word in printed(shown("classifier.py"))[2:]]
    bert("classifier").main([*words, "--num_train_epochs", "20", "--no_cuda"])
    assert scores()["test_acc"] == 1.0
    told = capsys.readouterr()
    assert "test_acc = 1.0000\n" in told.out
    model = document / "models" / "TinyBERT_General_4L_312D"
    assert f"model: huawei-noah/TinyBERT_General_4L_312D is {model}" in told.err
    found = results()
    assert found["asked"] == "huawei-noah/TinyBERT_General_4L_312D"
    assert found["start"]["folder"] == "TinyBERT_General_4L_312D" and len(found["start"]["sha256"]) == 64
    assert [entry["step"] for entry in found["history"]] == [40] == [found["steps"]]
    assert found["answers"]["test"]["predicted"] == found["answers"]["test"]["labels"] == "01234" * 3
    assert found["machine"]["threads"] == torch.get_num_threads()


def test_the_second_command_as_the_document_has_it(bert: Load, document: Path) -> None:
    options = bert("options")
    damaged = options.parse(printed(DAMAGED)[2:], "classifier_mlm.py", joint=True)
    assert vars(damaged) == vars(options.parse(printed(shown("classifier_mlm.py"))[2:], "x", joint=True))
    assert (damaged.logging_steps, damaged.mlm_alpha, damaged.line_by_line) == (50, 0.5, True)
    assert damaged.train_data_file == "./unlabeled_train_50000.txt"

    bert("classifier_mlm").main([*printed(DAMAGED)[2:], "--no_cuda"])
    model = BertForCLSMLM.from_pretrained("out")  # the lab reads the folder too
    assert model.weight_report is not None and model.weight_report.new == ()
    assert model.config.labels == ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
    found = results()
    assert (found["model"], found["options"]["mlm_alpha"]) == ("BertForCLSMLM", 0.5)
    assert found["unlabelled"] == {"texts": 90, "cut": 0}
    assert {"loss", "cls_loss", "mlm_loss"} < found["history"][-1].keys()
    last = found["history"][-1]
    assert last["loss"] == pytest.approx(last["cls_loss"] + 0.5 * last["mlm_loss"], rel=1e-5)


@pytest.mark.slow
def test_the_printed_commands_in_a_shell_from_a_clean_copy(document: Path, cli_environment: dict[str, str]) -> None:
    """As a student types them: the folder alone, no lab on the path."""
    for name in [path.name for path in FOLDER.glob("*.py")]:
        shutil.copy(FOLDER / name, document)
    (document / "bin").mkdir()
    (document / "bin" / "python").symlink_to(sys.executable)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: value for name, value in cli_environment.items() if name != "PYTHONPATH"}
    environment |= VARIABLES | {name: os.environ[name] for name in ("ATTNLAB_MODELS", "HF_HOME", "OMP_NUM_THREADS")}
    environment |= {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=document)

    for command in (shown("classifier.py"), shown("classifier_mlm.py"), DAMAGED.replace("\\setminus", "\\")):
        done = typed(command)
        assert done.returncode == 0, done.stderr
        assert "test_acc = " in done.stdout
        shutil.rmtree(document / "out")
    done = typed(DAMAGED)  # the shell ends the command where the document has \setminus
    assert "ends in 'setminus'" in done.stderr and "Traceback" not in done.stderr
    few = f"{shown('classifier.py').rstrip()} --train_examples 50 --num_train_epochs 30"
    assert typed(few).returncode == 0 and results()["texts"] == {"train": 50, "dev": 20, "test": 15}


def test_the_best_model_on_dev_is_saved_and_tested(bert: Load, place: Path) -> None:
    bert("classifier").main([*SHORT.split(), "--max_steps", "12", "--eval_all_checkpoints"])
    history, found = results()["history"], scores()
    assert [entry["step"] for entry in history] == [2, 4, 6, 8, 10, 12]
    best = max(entry["dev_acc"] for entry in history)
    assert found["dev_acc"] == pytest.approx(best, abs=1e-4)
    assert results()["best_step"] == next(entry["step"] for entry in history if entry["dev_acc"] == best)
    assert all(found[f"dev_acc_{e['step']}"] == pytest.approx(e["dev_acc"], abs=1e-4) for e in history)
    bert("classifier").main(["--do_eval", *SHORT.replace("--do_train --do_eval", "").split()])
    again = scores()
    assert again == {name: found[name] for name in ("dev_acc", "dev_loss", "test_acc", "test_loss")}
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForTokenClassification.from_pretrained("out", local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained("out", local_files_only=True)
    text = tokenizer(["the food was superb", "poor"], padding=True, return_tensors="pt")
    ours = BertForSequenceClassification.from_pretrained("out")
    torch.testing.assert_close(
        ours(text["input_ids"], text["attention_mask"]).logits, theirs(**text).logits[:, 0], atol=1e-5, rtol=1e-5
    )


NEEDED = "--model_name_or_path models/TinyBERT_General_4L_312D --data_dir yelp_small --output_dir out --do_train"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WRONG: dict[str, tuple[str, str, dict[str, bytes], str]] = {
    "no file": ("classifier_mlm", f"{JOINT} --train_data_file none.txt", {}, "none.txt does not exist"),
    "empty file": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"\n\n"}, "x is empty"),
    "not text": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"\x89PNG\xff"}, "line 1 is not UTF-8"),
    "binary": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"a\0b\n"}, "x is a binary file"),
    "block": ("classifier_mlm", f"{JOINT} --block_size 257", {}, "--block_size 257 is more than the model's 256"),
    "length": ("classifier", f"{SHORT} --max_seq_length 300", {}, "--max_seq_length 300 is more than the model's 256"),
    "label": ("classifier", SHORT, {"yelp_small/valid.csv": b'"1","a"\n"6","b"\n'}, "valid.csv, line 2: the label '6'"),
    "fields": ("classifier", SHORT, {"yelp_small/test.csv": b'"1","a"\n2,b,c\n'}, "test.csv, line 2 has 3 fields"),
    "quotes": ("classifier", SHORT, {"yelp_small/test.csv": b'"1","a"\n"2","b" c\n'}, "test.csv, line 2 is not a row"),
    "blank": ("classifier", SHORT, {"yelp_small/test.csv": b'"1"," "\n'}, "test.csv, line 1: the text is empty"),
    "no data": ("classifier", f"{SHORT} --data_dir none", {}, "--data_dir: none is not a folder"),
    "no train": ("classifier", f"{SHORT} --data_dir models", {}, "models has no train.csv"),
    "no dev": ("classifier", f"{SHORT} --data_dir half", {"half/train.csv": b'"1","a"\n'}, "half has no valid.csv"),
    "vocabulary": (
        "classifier",
        f"{SHORT} --tokenizer_name wide",
        {"wide/vocab.txt": "\n".join([*SPECIAL, *map(str, range(200))]).encode()},
        "the vocabulary of wide has 205 pieces",
    ),
    "no vocab.txt": (
        "classifier",
        f"{SHORT} --tokenizer_name half",
        {"half/config.json": b"{}"},
        "half has no vocab.txt",
    ),
    "special": ("classifier", f"{SHORT} --tokenizer_name x", {"x/vocab.txt": b"a\nb\n"}, "vocab.txt has no [PAD]"),
    "no config": (
        "classifier",
        f"{SHORT} --model_name_or_path x",
        {"x/vocab.txt": "\n".join(SPECIAL).encode()},
        "x has no config.json",
    ),
    "not a BERT": (
        "classifier",
        f"{SHORT} --model_name_or_path x",
        {"x/vocab.txt": "\n".join(SPECIAL).encode(), "x/config.json": b'{"model_type": "gpt2"}'},
        "expected model_type 'bert', got 'gpt2'",
    ),
    "no heads": (
        "classifier",
        f"{SHORT} --model_name_or_path x",
        {"x/vocab.txt": "\n".join(SPECIAL).encode(), "x/config.json": b'{"num_attention_heads": 0}'},
        "expected num_attention_heads such as 12, got 0",
    ),
    "model": ("classifier", f"{SHORT} --model_name_or_path no/Bert_4L_32D", {}, "'no/Bert_4L_32D' is not here"),
    "option": ("classifier", f"{SHORT} --mlm_alpha 1", {}, "unrecognized arguments: --mlm_alpha 1"),
    "type": ("classifier", f"{SHORT} --model_type xlnet", {}, "--model_type xlnet"),
    "task": ("classifier", f"{SHORT} --task_name yelpp", {}, "unknown task 'yelpp': did you mean 'yelp'?"),
    "nothing": ("classifier", NEEDED.replace("--do_train", ""), {}, "there is nothing to do"),
    "config": ("classifier", f"{SHORT} --config_name other", {}, "--config_name"),
    "processes": ("classifier", f"{SHORT} --local_rank 0", {}, "one process"),
    "half": ("classifier", f"{SHORT} --fp16", {}, "fp16 on a CPU"),
    "number": ("classifier", f"{SHORT} --learning_rate fast", {}, "--learning_rate: expected a number, got 'fast'"),
    "infinite": ("classifier", f"{SHORT} --learning_rate inf", {}, "expected a number above 0, got 'inf'"),
    "share": ("classifier_mlm", f"{JOINT} --mlm_probability 2", {}, "expected a number above 0 to 1, got '2'"),
    "bound": ("classifier", f"{SHORT} --logging_steps 0", {}, "whole number from 1, got '0'"),
    "line break": ("classifier", f"{SHORT} setminus", {}, "ends in 'setminus'"),
    "untrained": ("classifier", f"{NEEDED.replace('train', 'eval')}", {}, "--do_eval alone needs a trained model"),
    "itself": ("classifier", f"{SHORT} --output_dir models/TinyBERT_General_4L_312D", {}, "model to start from"),
    "file": ("classifier", f"{SHORT} --output_dir unlabeled_train_50000.txt", {}, "is a file: give a folder"),
    "few": ("classifier", f"{SHORT} --train_examples 61", {}, "--train_examples 61: there are 60"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_one_sentence(
    bert: Load, place: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    script, words, files, sentence = WRONG[case]
    for name, content in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    before = sorted(place.rglob("*"))
    assert sentence in failing(bert(script).main, words, capsys)
    assert sorted(place.rglob("*")) == before, "nothing was written"


def test_a_model_that_is_not_there_is_not_replaced_by_one_of_its_shape(
    bert: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = SHORT.replace("models/TinyBERT_General_4L_312D", "someone/Other_1L_32D")
    said = failing(bert("classifier").main, words, capsys)
    assert "the model 'someone/Other_1L_32D' is not here" in said
    assert f"of the same shape, but other weights: {place / 'models' / 'TinyBERT_General_4L_312D'}" in said
    assert "other weights" not in failing(bert("classifier").main, words.replace("1L_32D", "9L_32D"), capsys)


def test_options_without_a_meaning_are_accepted_and_said_once(
    bert: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = "--do_lower_case --cache_dir here --overwrite_cache --server_ip= --fp16_opt_level O1 --save_total_limit 2"
    args = bert("options").parse([*SHORT.split(), *extra.split()], "classifier.py", joint=False)
    said = capsys.readouterr().err
    assert said.count("has no effect here") == 5 and said.count("--do_lower_case has no effect here") == 1
    total_steps = bert("work").total_steps
    assert total_steps(args, 8) == 4
    args.max_steps, args.num_train_epochs = -1, 1.5
    assert total_steps(args, 8) == 12
    args.gradient_accumulation_steps = 5
    assert total_steps(args, 8) == 3


def test_fifty_labels_are_ten_of_each_class_drawn_with_the_seed(bert: Load, place: Path) -> None:
    data_utils = bert("data_utils")
    args = SimpleNamespace(data_dir="yelp_small", max_seq_length=24, train_examples=50, seed=1)
    tokenizer = bert("wordpiece").WordPiece.from_folder(Path("models/TinyBERT_General_4L_312D"))

    def drawn(seed: int) -> list[list[int]]:
        args.seed = seed
        features = data_utils.load_and_cache_examples(args, "yelp", tokenizer)
        assert sorted(features.labels) == [label for label in range(5) for _ in range(10)]
        return [row.input_ids for row in features]

    assert drawn(1) == drawn(1) != drawn(2)
    args.train_examples = None
    features = data_utils.load_and_cache_examples(args, "yelp", tokenizer)
    first, examples = features[0], data_utils.YelpProcessor().get_train_examples("yelp_small")
    assert first.input_ids == tokenizer.encode(examples[0].text_a).input_ids
    assert len(first.attention_mask) == len(first.token_type_ids) == len(first.input_ids)
    assert "\n" in examples[0].text_a and "\\n" not in examples[0].text_a
    assert data_utils.output_modes["yelp"] == "classification"
    assert data_utils.processors["yelp"]().get_labels()[0] == "1 star"


def test_unlabelled_text_by_lines_or_in_blocks(bert: Load, place: Path) -> None:
    mlm_utils = bert("mlm_utils")
    tokenizer = bert("wordpiece").WordPiece.from_folder(Path("models/TinyBERT_General_4L_312D"))
    args = SimpleNamespace(block_size=16, line_by_line=True, train_data_file="unlabeled_train_50000.txt")
    lines = mlm_utils.load_and_cache_unlabeled_examples(args, tokenizer)
    text = Path(args.train_data_file).read_text().replace("\\n", "\n")
    assert len(lines) == 90
    assert lines[0].tolist() == tokenizer.encode(" ".join(text.split("\n")[:2]), longest=16).input_ids
    args.line_by_line = False
    blocks = mlm_utils.load_and_cache_unlabeled_examples(args, tokenizer)
    inside = [id_ for row in blocks.rows for id_ in row if id_ not in (tokenizer.cls_id, tokenizer.sep_id)]
    assert inside == tokenizer.piece_ids(text)
    assert max(blocks.lengths) == 16 and min(blocks.lengths[:-1]) == 16


@pytest.mark.skipif(
    not (os.environ.get("ATTNLAB_DATA") and os.environ.get("ATTNLAB_MODELS")),
    reason="needs yelp/ in ATTNLAB_DATA and bert-tiny/ in ATTNLAB_MODELS",
)
def test_real_reviews_and_real_weights(bert: Load, tmp_path: Path) -> None:
    data, few = Path(os.environ["ATTNLAB_DATA"], "yelp"), tmp_path / "unlabeled.txt"
    few.write_text("\n".join((data / "unlabeled.txt").read_text(encoding="utf-8").split("\n")[:200]), encoding="utf-8")
    words = (
        f"--model_name_or_path bert-tiny --data_dir {data} --output_dir {tmp_path / 'out'} --do_train --do_eval "
        f"--no_cuda --max_seq_length 16 --max_steps 3 --train_examples 50 --line_by_line --train_data_file {few}"
    )
    bert("classifier_mlm").main(words.split())
    assert 0.1 < scores(tmp_path / "out")["test_acc"] < 0.5
    assert results(tmp_path / "out")["texts"] == {"train": 50, "dev": 500, "test": 450}
