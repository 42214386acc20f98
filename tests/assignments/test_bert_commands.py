"""The commands of the BERT assignment, as its document prints them, on few reviews; stopped; given wrong things."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab.base.machine import facts
from attnlab.data.batching import IGNORE
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification
from attnlab.models.bert.model import BertModel
from attnlab.runs import read_record, read_status, series
from attnlab.training.loop import Trainer

Load = Callable[[str], ModuleType]
FOLDER = Path(__file__).parents[2] / "assignments" / "natural-language-processing-4"
WORDS = ("awful", "poor", "decent", "good", "superb")

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


def review(stars: int, draw: random.Random) -> str:
    return f"the {draw.choice(('food', 'room', 'staff'))} was {WORDS[stars - 1]}\\nand so was the {draw.choice('abc')}"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews, unlabelled ones and a small random BERT under the name of the document's."""
    folder, draw = tmp_path_factory.mktemp("assignment"), random.Random(0)
    (folder / "yelp_small").mkdir()
    for name, count in (("train", 60), ("valid", 20), ("test", 15)):
        rows = [f'"{n % 5 + 1}","{review(n % 5 + 1, draw)}"\n' for n in range(count)]
        (folder / "yelp_small" / f"{name}.csv").write_text("".join(rows))
    lines = [review(draw.randint(1, 5), draw) for _ in range(90)]
    (folder / "unlabeled_train_50000.txt").write_text("\n".join(lines) + "\n")
    model = folder / "models" / "TinyBERT_General_4L_312D"
    tokenizer = WordPiece.learn([line.replace("\\n", "\n") for line in lines], 120)
    tokenizer.save_pretrained(model)
    torch.manual_seed(0)
    BertModel(BertConfig(len(tokenizer), 32, 1, 2, 64, 128)).save_pretrained(model)
    return folder


@pytest.fixture
def place(tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(facts, "cores", lambda: 1)  # threads that wait for each other over small tensors take long
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def printed(text: str) -> list[str]:
    """The words a shell makes of a command, variables left for the script to see."""
    return shlex.split(text.replace("\\\n", " ").replace("\n", " "))


def failing(main: Callable[[list[str]], None], words: str | list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that is refused says: one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(words.split() if isinstance(words, str) else words)
    said = capsys.readouterr().err
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert stop.value.code == 2 and len(errors) == 1 and said.endswith(f"{errors[0]}\n"), said
    return errors[0]


def results(path: str | Path = "out") -> dict[str, float]:
    lines = (Path(path) / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def test_the_commands_as_printed(bert: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first, from the README, learns the reviews; the second, as damaged in the document, is the second of it."""
    blocks = re.findall(r"```sh\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [printed(part) for block in blocks for part in block.split("\npython")]
    first, second = (
        next(words for words in commands if f"{name}.py" in words) for name in ("classifier", "classifier_mlm")
    )
    options, training = bert("options"), bert("training")
    damaged = options.parse(printed(DAMAGED)[2:], "classifier_mlm.py", joint=True)
    assert vars(damaged) == vars(options.parse(second[second.index("classifier_mlm.py") + 1 :], "x", joint=True))
    assert (damaged.logging_steps, damaged.mlm_alpha, damaged.line_by_line) == (50, 0.5, True)
    assert damaged.train_data_file == "./unlabeled_train_50000.txt"

    bert("classifier").main([*first[first.index("classifier.py") + 1 :], "--num_train_epochs", "20", "--no_cuda"])
    assert results()["test_acc"] == 1.0
    assert "test_acc = 1.0000\n" in capsys.readouterr().out
    record = read_record(Path("out/run"))
    assert record["kind"] == "course" and record["results"]["test_accuracy"] == 1.0
    assert (
        series(Path("out/run/metrics.jsonl"), "dev", "accuracy")[0] == [40] == [read_record(Path("out/run"))["steps"]]
    )

    bert("classifier_mlm").main([*printed(DAMAGED)[2:], "--no_cuda"])
    model = BertForCLSMLM.from_pretrained("out")
    assert model.weight_report is not None and model.weight_report.new == ()
    assert model.config.labels == ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
    data = read_record(Path("out/run"))["data"]
    assert (data["model"], data["unlabelled"], data["mlm_alpha"]) == ("BertForCLSMLM", 90, 0.5)
    assert training.KIND == "course"


def test_the_best_model_on_dev_is_saved_and_tested(bert: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bert("classifier").main([*SHORT.split(), "--max_steps", "12", "--eval_all_checkpoints"])
    steps, values = series(Path("out/run/metrics.jsonl"), "dev", "accuracy")
    assert steps == [2, 4, 6, 8, 10, 12]
    found = results()
    assert found["dev_acc"] == pytest.approx(max(values))
    assert [found[f"dev_acc_{step}"] for step in steps] == pytest.approx(values)
    bert("classifier").main(["--do_eval", *SHORT.replace("--do_train --do_eval", "").split()])
    again = results()
    assert again == {name: found[name] for name in ("dev_acc", "dev_loss", "test_acc", "test_loss")}
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForTokenClassification.from_pretrained("out", local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained("out", local_files_only=True)
    text = tokenizer(["the food was superb", "poor"], padding=True, return_tensors="pt")
    ours = BertForSequenceClassification.from_pretrained("out")
    torch.testing.assert_close(
        ours(text["input_ids"], text["attention_mask"]).logits, theirs(**text).logits[:, 0], atol=1e-5, rtol=1e-5
    )


def test_stopped_and_typed_again_it_ends_with_the_same_weights(
    bert: Load, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*JOINT.split(), "--max_steps", "7", "--save_steps", "2", "--overwrite_output_dir"]
    main = bert("classifier_mlm").main
    main([*words, "--output_dir", "whole"])
    step = Trainer._step

    def stop(self: Trainer, batches: Any) -> Any:
        if self.state.step == 5:
            raise KeyboardInterrupt
        return step(self, batches)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Trainer, "_step", stop)
        main(words)
    assert read_status(Path("out/run"))["state"] == "interrupted" and not Path("out/config.json").exists()
    capsys.readouterr()
    main(words)
    assert "resuming after step 4" in capsys.readouterr().err
    assert Path("out/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()
    assert results() == results("whole")


def test_another_training_replaces_only_when_asked(bert: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main, words = bert("classifier").main, SHORT.split()
    main(words)
    first = Path("out/model.safetensors").read_bytes()
    assert "training.seed 42" in failing(main, [*words, "--seed", "1"], capsys)
    assert "max_seq_length has changed" in failing(main, [*words, "--max_seq_length", "12"], capsys)
    main(words)  # finished: its files are written again
    assert Path("out/model.safetensors").read_bytes() == first
    main([*words, "--seed", "1", "--overwrite_output_dir"])
    assert Path("out/model.safetensors").read_bytes() != first
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine")
    assert "other is not empty" in failing(main, [*words, "--output_dir", "other"], capsys)
    main([*words, "--output_dir", "other", "--overwrite_output_dir"])
    assert Path("other/notes.txt").read_text() == "mine"


NEEDED = "--model_name_or_path models/TinyBERT_General_4L_312D --data_dir yelp_small --output_dir out --do_train"
WRONG: dict[str, tuple[str, str, dict[str, bytes], str]] = {
    "no file": ("classifier_mlm", f"{JOINT} --train_data_file none.txt", {}, "none.txt does not exist"),
    "empty file": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"\n\n"}, "x is empty"),
    "not text": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"\x89PNG\xff"}, "line 1 is not UTF-8"),
    "binary": ("classifier_mlm", f"{JOINT} --train_data_file x", {"x": b"a\0b\n"}, "x is a binary file"),
    "block": ("classifier_mlm", f"{JOINT} --block_size 129", {}, "--block_size 129 is more than the model's 128"),
    "length": ("classifier", f"{SHORT} --max_seq_length 300", {}, "--max_seq_length 300 is more than the model's 128"),
    "label": ("classifier", SHORT, {"yelp_small/valid.csv": b'"1","a"\n"6","b"\n'}, "valid.csv, line 2: the label '6'"),
    "no data": ("classifier", f"{SHORT} --data_dir none", {}, "--data_dir: none is not a folder"),
    "no train": ("classifier", f"{SHORT} --data_dir models", {}, "models has no file named train"),
    "no dev": ("classifier", f"{SHORT} --data_dir half", {"half/train.csv": b'"1","a"\n'}, "half has no valid.csv"),
    "vocabulary": (
        "classifier",
        f"{SHORT} --tokenizer_name wide",
        {"wide/vocab.txt": "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(200))]).encode()},
        "the vocabulary of wide has 205 pieces",
    ),
    "model": ("classifier", f"{SHORT} --model_name_or_path no/Bert_4L_32D", {}, "'no/Bert_4L_32D' is not here"),
    "option": ("classifier", f"{SHORT} --mlm_alpha 1", {}, "unrecognized arguments: --mlm_alpha 1"),
    "type": ("classifier", f"{SHORT} --model_type xlnet", {}, "--model_type xlnet"),
    "task": ("classifier", f"{SHORT} --task_name yelpp", {}, "unknown task 'yelpp': did you mean 'yelp'?"),
    "nothing": ("classifier", NEEDED.replace("--do_train", ""), {}, "there is nothing to do"),
    "epsilon": ("classifier", f"{SHORT} --adam_epsilon 1e-6", {}, "--adam_epsilon 1e-06: the lab's AdamW has 1e-08"),
    "config": ("classifier", f"{SHORT} --config_name other", {}, "--config_name"),
    "processes": ("classifier", f"{SHORT} --local_rank 0", {}, "one process"),
    "half": ("classifier", f"{SHORT} --fp16", {}, "fp16 on a CPU"),
    "number": ("classifier", f"{SHORT} --learning_rate fast", {}, "--learning_rate: expected a number, got 'fast'"),
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


UNFINISHED = """
from attnlab.models.bert.model import BertModel
from attnlab.models.bert.files import Pretrained
from attnlab.models.bert.heads import BertForSequenceClassification

class BertForCLSMLM(Pretrained):
    architectures = ("classifier", "BertForMaskedLM")

    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config, pooler=False)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, labels=None, masked_labels=None):
        raise NotImplementedError  #todo
"""


def test_an_unfinished_class_is_named_and_ones_own_is_used(place: Path, cli_environment: dict[str, str]) -> None:
    shutil.copytree(FOLDER, place / "mine")
    (place / "mine" / "mymodel.py").write_text(UNFINISHED)
    command = [sys.executable, "mine/classifier_mlm.py", *JOINT.split()]
    done = subprocess.run(command, capture_output=True, text=True, env={**cli_environment, **os.environ}, cwd=place)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: mymodel.py, line 14: BertForCLSMLM.forward is not finished")
    assert "Traceback" not in done.stderr and not Path("out").exists()


def test_options_without_a_meaning_are_accepted_and_said_once(
    bert: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = "--do_lower_case --cache_dir here --overwrite_cache --server_ip= --fp16_opt_level O1"
    args = bert("options").parse([*SHORT.split(), *extra.split()], "classifier.py", joint=False)
    said = capsys.readouterr().err
    assert said.count("has no effect here") == 4 and said.count("--do_lower_case has no effect here") == 1
    config = bert("training").settings(args, 60)
    assert (config.optimizer.lr, config.optimizer.beta2, config.optimizer.weight_decay) == (1e-2, 0.999, 0.0)
    assert (config.schedule.name, config.training.steps, config.training.evaluate_every) == ("linear", 4, "2 steps")
    args.max_steps, args.num_train_epochs = -1, 1.5
    assert bert("training").settings(args, 60).training.steps == 12  # 8 steps an epoch


def test_fifty_labels_are_ten_of_each_class(bert: Load, place: Path) -> None:
    data_utils = bert("data_utils")
    args = SimpleNamespace(data_dir="yelp_small", max_seq_length=24, train_examples=50)
    tokenizer = WordPiece.from_pretrained("models/TinyBERT_General_4L_312D")
    features = data_utils.load_and_cache_examples(args, "yelp", tokenizer)
    assert sorted(features.labels) == [label for label in range(5) for _ in range(10)]
    first, examples = features[0], data_utils.YelpProcessor().get_train_examples("yelp_small")
    assert first.input_ids == tokenizer.encode(examples[0].text_a).input_ids
    assert len(first.attention_mask) == len(first.token_type_ids) == len(first.input_ids)
    assert "\n" in examples[0].text_a and "\\n" not in examples[0].text_a
    assert (
        data_utils.output_modes["yelp"] == "classification"
        and data_utils.processors["yelp"]().get_labels()[0] == "1 star"
    )


def test_unlabelled_text_by_lines_or_in_blocks(bert: Load, place: Path) -> None:
    mlm_utils = bert("mlm_utils")
    tokenizer = WordPiece.from_pretrained("models/TinyBERT_General_4L_312D")
    args = SimpleNamespace(
        task_name="yelp",
        mlm_probability=0.15,
        seed=0,
        block_size=16,
        line_by_line=True,
        train_data_file="unlabeled_train_50000.txt",
    )
    lines = mlm_utils.load_and_cache_unlabeled_examples(args, tokenizer)
    text = Path(args.train_data_file).read_text().replace("\\n", "\n")
    assert len(lines) == 90
    assert lines[0].tolist() == tokenizer.encode(" ".join(text.split("\n")[:2]), longest=16).input_ids
    args.line_by_line = False
    blocks = mlm_utils.load_and_cache_unlabeled_examples(args, tokenizer)
    inside = [id_ for row in blocks.rows for id_ in row if id_ not in (tokenizer.cls_id, tokenizer.sep_id)]
    assert inside == tokenizer.piece_ids(text)
    assert max(blocks.lengths) == 16 and min(blocks.lengths[:-1]) == 16

    batch = torch.nn.utils.rnn.pad_sequence([lines[n] for n in range(90)], batch_first=True)  # 0 is [PAD]
    torch.manual_seed(0)
    shown, asked = mlm_utils.mask_tokens(batch, tokenizer, args)
    chosen = asked != IGNORE
    assert torch.equal(asked[chosen], batch[chosen]) and torch.equal(shown[~chosen], batch[~chosen])
    assert not any(bool((batch[chosen] == id_).any()) for id_ in tokenizer.special_ids)
    lengths = [int((row != tokenizer.pad_id).sum()) - 2 for row in batch]  # without [CLS] and [SEP]
    assert chosen.sum(1).tolist() == [max(1, round(0.15 * length)) for length in lengths]
    assert not torch.equal(mlm_utils.mask_tokens(batch, tokenizer, args)[1], asked)


def test_mymodel_has_the_three_classes(bert: Load) -> None:
    mymodel = bert("mymodel")
    expected = (BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification)
    assert tuple(getattr(mymodel, name) for name in mymodel.__all__) == expected


ALONE = """
import runpy, sys
sys.modules["transformers"] = sys.modules["tokenizers"] = None
from attnlab.cli import main
for words in sys.argv[1].split("|"):
    sys.argv = words.split()
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    try:
        main() if sys.argv[0] == "attnlab" else runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as stop:
        assert not stop.code, stop.code
assert sys.modules["transformers"] is sys.modules["tokenizers"] is None
"""


def test_all_of_it_works_where_neither_transformers_nor_tokenizers_can_be_imported(
    place: Path, cli_environment: dict[str, str]
) -> None:
    pretrain = (
        "attnlab pretrain --objective mlm --corpus unlabeled_train_50000.txt --device cpu --context 16 --steps 2 "
        "--precision fp32 --threads 1 --run"
    )
    commands = [
        f"{FOLDER}/classifier.py {SHORT} --output_dir one",
        f"{FOLDER}/classifier_mlm.py {JOINT} --output_dir two",
        f"{pretrain} three --layers 1 --heads 2 --width 16 --vocabulary 100",
        f"{pretrain} four --from TinyBERT_General_4L_312D",
    ]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, "|".join(commands)],
        capture_output=True,
        text=True,
        env={**cli_environment, "ATTNLAB_MODELS": str(place / "models")},
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    for folder in ("one", "two", "three/model", "four/model"):
        assert json.loads((place / folder / "config.json").read_text())["model_type"] == "bert"


@pytest.mark.skipif(
    not (os.environ.get("ATTNLAB_DATA") and os.environ.get("ATTNLAB_MODELS")),
    reason="needs yelp/ in ATTNLAB_DATA and bert-tiny/ in ATTNLAB_MODELS",
)
def test_real_reviews_and_real_weights(bert: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "cores", lambda: 1)
    data, few = Path(os.environ["ATTNLAB_DATA"], "yelp"), tmp_path / "unlabeled.txt"
    few.write_text("\n".join((data / "unlabeled.txt").read_text(encoding="utf-8").split("\n")[:200]), encoding="utf-8")
    words = (
        f"--model_name_or_path bert-tiny --data_dir {data} --output_dir {tmp_path / 'out'} --do_train --do_eval "
        f"--no_cuda --max_seq_length 16 --max_steps 3 --train_examples 50 --line_by_line --train_data_file {few}"
    )
    bert("classifier_mlm").main(words.split())
    assert 0.1 < results(tmp_path / "out")["test_acc"] < 0.5
    assert read_record(tmp_path / "out" / "run")["data"]["examples"] == {"train": 50, "dev": 500, "test": 450}
