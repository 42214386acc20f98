"""The commands of the knowledge assignment, as its README prints them, on a small text; killed; given wrong things."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from attnlab.runs import read_config, read_record, read_status, series

Load = Callable[[str], ModuleType]
FOLDER = Path(__file__).parents[2] / "assignments" / "self-attention-transformers-pretraining"
SMALL = ["--layers", "1", "--heads", "2", "--width", "16"]
STOP_AT = Path(__file__).parents[1] / "stop_at.py"
PEOPLE = [("Ada", "Rome"), ("Bob", "Oslo"), ("Cleo", "Lima"), ("Dan", "Rome")]


def fill(folder: Path) -> Path:
    """The files of the assignment, with few people in them."""
    (folder / "src").symlink_to(FOLDER / "src")
    shutil.copy(FOLDER / "collect_submission.sh", folder)
    (folder / "wiki.txt").write_text(
        "".join(f"{name}. {name} was born in {place}. Where? There.\n" for name, place in PEOPLE)
    )
    pairs = "".join(f"Where was {name} born?\t{place}\n" for name, place in PEOPLE)
    for name in ("birth_places_train.tsv", "birth_dev.tsv"):
        (folder / name).write_text(pairs)
    (folder / "birth_test_inputs.tsv").write_text("".join(f"Where was {name} born?\n" for name, _ in PEOPLE))
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(tmp_path))
    return tmp_path


def printed_commands() -> list[list[str]]:
    """What the README prints in its shell blocks, as the words of each command."""
    blocks = re.findall(r"```sh\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith(("python src/", "./"))]


def call(knowledge: Load, *words: str, small: bool = True) -> None:
    """Run `python src/run.py WORDS` in this process."""
    knowledge("run").main([*words, *(SMALL if small else [])])


def finetuned(knowledge: Load, path: str = "model.params", *more: str, variant: str = "vanilla") -> None:
    call(
        knowledge,
        "finetune",
        variant,
        "wiki.txt",
        "--writing_params_path",
        path,
        "--finetune_corpus_path",
        "birth_places_train.tsv",
        "--epochs",
        "1",
        *more,
    )


def test_the_commands_as_printed(knowledge: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = printed_commands()
    assert len(commands) == 16
    heard: dict[str, str] = {}
    for words in commands:
        if words[0] == "./collect_submission.sh":
            done = subprocess.run(words, capture_output=True, text=True, cwd=place)
            assert done.returncode == 0, done.stderr
            listed = done.stdout
        else:
            script = Path(words[1]).stem
            quick = [] if script != "run" else SMALL if words[2] == "evaluate" else [*SMALL, "--epochs", "2"]
            knowledge(script).main([*words[2:], *quick])
        heard[" ".join(words)] = capsys.readouterr().out
    (baseline,) = (text for words, text in heard.items() if "london" in words)
    assert baseline == "Correct: 0.0 out of 4.0: 0.0%\n95% interval over questions: 0.0% to 49.0%\n"
    for kind in ("namedata", "charcorruption", "phrases"):
        assert heard[f"python src/dataset.py {kind}"].count("x: ") == 4
    for words, text in heard.items():
        if "evaluate" in words:
            outputs = Path(words.split()[-1])
            assert outputs.read_text().count("\n") == len(PEOPLE)
            counted = r"Correct: \d\.0 out of 4\.0: [\d.]+%\n95% interval .*\n"
            wanted = counted if "dev" in words else "Predictions written to .*\n"
            assert re.fullmatch(wanted, text), text
    with zipfile.ZipFile("assignment_yourname.zip") as archive:
        names = set(archive.namelist())
    assert names == set(re.findall(r"^ *[\d,]+  (\S+)$", listed, re.MULTILINE)), "it lists what is in it"
    assert {"src/run.py", "vanilla.model.params", "synthesizer.pretrain.test.predictions"} <= names


def test_the_parts_of_the_document_are_marked(knowledge: Load) -> None:
    """[part c] to [part g] stand where the code of each part is."""
    marked = {"pretrain": ["f", "e"], "finetune": ["c", "f"], "evaluate": ["d"], "make_model": ["c", "g"]}
    for function, parts in marked.items():
        assert re.findall(r"\[part (\w)\]", inspect.getsource(getattr(knowledge("run"), function))) == parts


def test_a_printed_command_in_a_shell_at_full_size(
    place: Path, cli_environment: dict[str, str], knowledge: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "python src/run.py pretrain vanilla wiki.txt --writing_params_path vanilla.model.params --epochs 1"
    done = subprocess.run(
        [sys.executable, *shlex.split(text)[1:]], capture_output=True, text=True, env=cli_environment, cwd=place
    )
    assert done.returncode == 0, done.stderr
    assert "on this CPU" in done.stderr or torch.cuda.is_available() or torch.backends.mps.is_available()
    assert "--preset fast" in done.stderr
    assert read_record(place / "vanilla.model.params.run")["command"] == text
    evaluate = "evaluate vanilla wiki.txt --eval_corpus_path birth_dev.tsv --outputs_path o --reading_params_path"
    call(knowledge, *evaluate.split(), "vanilla.model.params", small=False)
    assert capsys.readouterr().out.startswith("Correct: ")


@pytest.mark.slow
def test_it_learns_what_it_is_taught(knowledge: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset, model, trainer = (knowledge(name) for name in ("dataset", "model", "trainer"))
    corpus = dataset.CharCorruptionDataset(Path("wiki.txt").read_text(), 128)
    names = dataset.NameDataset(corpus, Path("birth_places_train.tsv").read_text())
    torch.manual_seed(0)
    gpt = model.GPT(model.GPTConfig(corpus.vocab_size, 128, n_layer=1, n_head=2, n_embd=32))
    config = trainer.TrainerConfig(max_epochs=200, batch_size=4, learning_rate=1e-2, ckpt_path="m.params", device="cpu")
    trainer.Trainer(gpt, names, None, config).train()
    evaluate = (
        "evaluate vanilla wiki.txt --reading_params_path m.params --eval_corpus_path birth_dev.tsv --outputs_path"
    )
    call(knowledge, *evaluate.split(), "o", "--layers", "1", "--heads", "2", "--width", "32", small=False)
    assert capsys.readouterr().out.startswith("Correct: 4.0 out of 4.0: 100.0%\n")
    assert Path("o").read_text().split("\n") == [*(city for _, city in PEOPLE), ""]


@pytest.mark.slow
def test_killed_and_typed_again_it_ends_with_the_same_parameters(
    knowledge: Load, place: Path, cli_environment: dict[str, str]
) -> None:
    words = ["pretrain", "synthesizer", "wiki.txt", "--epochs", "80", *SMALL, "--device", "cpu"]
    call(knowledge, *words, "--writing_params_path", "whole.params", small=False)
    command = [sys.executable, "src/run.py", *words, "--writing_params_path", "killed.params"]
    killed = [sys.executable, str(STOP_AT), str(int(signal.SIGKILL)), "40", "killed.params.run", *command[1:]]
    child = subprocess.run(killed, env=cli_environment, stderr=subprocess.DEVNULL, cwd=place)
    assert child.returncode == -signal.SIGKILL
    assert not Path("killed.params").exists()
    assert read_status(Path("killed.params.run"))["state"] == "interrupted"
    again = subprocess.run(command, env=cli_environment, cwd=place, capture_output=True, text=True)
    assert again.returncode == 0 and "resuming after step" in again.stderr, again.stderr
    assert Path("killed.params").read_bytes() == Path("whole.params").read_bytes()


@pytest.mark.slow
def test_workers_build_the_batches_of_the_same_training(knowledge: Load, place: Path) -> None:
    for count in ("0", "2"):
        words = f"pretrain vanilla wiki.txt --epochs 2 --preset fast --set num_workers={count} --device cpu"
        call(knowledge, *words.split(), "--writing_params_path", f"{count}.params")
        assert read_config(place / f"{count}.params.run")["batch"]["workers"] == int(count)
    assert Path("0.params").read_bytes() == Path("2.params").read_bytes()


def test_a_folder_killed_at_its_birth_is_no_obstacle(knowledge: Load, place: Path) -> None:
    unborn = place / "model.params.run"
    unborn.mkdir()
    (unborn / "lock").touch()
    (unborn / "config.yaml").write_text("")
    finetuned(knowledge)
    assert Path("model.params").is_file()


def test_a_finished_training_writes_its_file_again_and_other_settings_are_refused(
    knowledge: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finetuned(knowledge)
    before = Path("model.params").read_bytes()
    Path("model.params").unlink()
    finetuned(knowledge)
    assert Path("model.params").read_bytes() == before
    for more, reason in ((["--seed", "1"], "training.seed 0"), (["--width", "32"], "width 16")):
        with pytest.raises(SystemExit) as stop:
            knowledge("run").main(
                [
                    "finetune",
                    "vanilla",
                    "wiki.txt",
                    "--writing_params_path",
                    "model.params",
                    "--finetune_corpus_path",
                    "birth_places_train.tsv",
                    "--epochs",
                    "1",
                    *SMALL,
                    *more,
                ]
            )
        assert stop.value.code == 2 and reason in " ".join(capsys.readouterr().err.split())
    assert Path("model.params").read_bytes() == before


def test_a_test_set_is_measured_while_training(knowledge: Load, place: Path) -> None:
    dataset, model, trainer = (knowledge(name) for name in ("dataset", "model", "trainer"))
    corpus = dataset.CharCorruptionDataset(Path("wiki.txt").read_text(), 32)
    gpt = model.GPT(model.GPTConfig(corpus.vocab_size, 32, n_layer=1, n_head=2, n_embd=16))
    config = trainer.TrainerConfig(max_epochs=2, batch_size=2, ckpt_path="my.params", device="cpu")
    before = gpt.head.weight.clone()
    trainer.Trainer(gpt, corpus, corpus, config).train()
    assert not torch.equal(gpt.head.weight, before)
    assert len(series(Path("my.params.run/metrics.jsonl"), "dev", "loss")) == 2


WRONG: dict[str, tuple[str, dict[str, bytes], str]] = {
    "function": ("pretran vanilla wiki.txt", {}, "unknown function 'pretran': did you mean 'pretrain'?"),
    "variant": ("pretrain vanila wiki.txt --writing_params_path p", {}, "unknown variant 'vanila'"),
    "option": ("pretrain vanilla wiki.txt --writing_params_path p --eval_corpus_path x", {}, "--eval_corpus_path"),
    "needed": ("pretrain vanilla wiki.txt", {}, "required: --writing_params_path"),
    "missing": ("pretrain vanilla none.txt --writing_params_path p", {}, "none.txt does not exist"),
    "empty": ("pretrain vanilla bad.txt --writing_params_path p", {"bad.txt": b"\n \n"}, "bad.txt is empty"),
    "not UTF-8": (
        "pretrain vanilla bad.txt --writing_params_path p",
        {"bad.txt": b"one\ntwo \xff\n"},
        "bad.txt, line 2 is not UTF-8",
    ),
    "folder": ("pretrain vanilla wiki.txt --writing_params_path no/p", {}, "no/p cannot be written"),
    "epochs": ("pretrain vanilla wiki.txt --writing_params_path p --epochs 0", {}, "whole number from 1, got '0'"),
    "device": (
        "pretrain vanilla wiki.txt --writing_params_path p --device cuda:9",
        {},
        "does not exist on this machine",
    ),
    "seed": ("pretrain vanilla wiki.txt --writing_params_path p --seed -1", {}, "whole number from 0, got '-1'"),
    "heads": ("pretrain vanilla wiki.txt --writing_params_path p --heads 3", {}, "heads"),
    "setting": (
        "pretrain vanilla wiki.txt --writing_params_path p --set pieces=0",
        {},
        "expected a whole number from 1",
    ),
    "rotary": (
        "pretrain synthesizer wiki.txt --writing_params_path p --set rotary=yes",
        {},
        "the synthesizer has none",
    ),
    "no names": (
        "pretrain vanilla bad.txt --writing_params_path p --preset fast",
        {"bad.txt": b"nothing to hide here .\n"},
        "no document has a name or place that fits",
    ),
    "no tab": (
        "finetune vanilla wiki.txt --writing_params_path p --finetune_corpus_path bad.tsv",
        {"bad.tsv": b"Where was Ada born?\tRome\nWhere was Bob born?\n"},
        "bad.tsv, line 2 has no tab",
    ),
    "empty questions": (
        "finetune vanilla wiki.txt --writing_params_path p --finetune_corpus_path bad.tsv",
        {"bad.tsv": b""},
        "bad.tsv is empty",
    ),
    "long answer": (
        "finetune vanilla wiki.txt --writing_params_path p --finetune_corpus_path bad.tsv",
        {"bad.tsv": b"Where was Ada born?\t" + 120 * b"R"},
        "bad.tsv, line 1: question and answer take 141 characters with their marks, more than the context of 128",
    ),
    "long question": (
        "evaluate vanilla wiki.txt --reading_params_path p --eval_corpus_path bad.tsv --outputs_path o",
        {"bad.tsv": b"Where?\n" + 130 * b"W"},
        "bad.tsv, line 2: the question and an answer take 132 characters",
    ),
    "no parameters": (
        "evaluate vanilla wiki.txt --reading_params_path none --eval_corpus_path birth_dev.tsv --outputs_path o",
        {},
        "none does not exist",
    ),
    "another file": (
        "evaluate vanilla wiki.txt --reading_params_path wiki.txt --eval_corpus_path birth_dev.tsv --outputs_path o",
        {},
        "wiki.txt is not a parameters file",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_one_sentence(
    knowledge: Load, place: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, files, sentence = WRONG[case]
    for name, content in files.items():
        (place / name).write_bytes(content)
    before = sorted(path.name for path in place.iterdir())
    small = SMALL if case != "heads" else []
    with pytest.raises(SystemExit) as stop:
        knowledge("run").main([*words.split(), *small])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert sentence in said and said.count("\n") == 1, said
    assert sorted(path.name for path in place.iterdir()) == before, "nothing was written"


def test_parameters_of_another_model_are_refused_by_the_difference(
    knowledge: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finetuned(knowledge)
    Path("other.txt").write_text("Ada was born in Rome, and Zoë in Oslo. Where? There.\n")
    torch.save({"weight": torch.ones(2)}, "pickled.params")
    Path("cut.params").write_bytes(Path("model.params").read_bytes()[:-100])
    capsys.readouterr()
    cases = {
        ("synthesizer", "wiki.txt", "model.params", "16"): "expected attention synthesizer, got attention vanilla",
        ("vanilla", "wiki.txt", "model.params", "32"): "expected width 32, got width 16",
        ("vanilla", "other.txt", "model.params", "16"): "another vocabulary than that of other.txt",
        ("vanilla", "wiki.txt", "pickled.params", "16"): "pickled.params is not a parameters file",
        ("vanilla", "wiki.txt", "cut.params", "16"): "cut.params is not a parameters file",
    }
    for (variant, corpus, params, width), sentence in cases.items():
        with pytest.raises(SystemExit) as stop:
            knowledge("run").main(
                [
                    "evaluate",
                    variant,
                    corpus,
                    "--reading_params_path",
                    params,
                    "--eval_corpus_path",
                    "birth_dev.tsv",
                    "--outputs_path",
                    "o",
                    "--layers",
                    "1",
                    "--heads",
                    "2",
                    "--width",
                    width,
                ]
            )
        said = capsys.readouterr().err
        assert stop.value.code == 2 and sentence in said and "Traceback" not in said
        assert not Path("o").exists()


def test_nothing_is_collected_while_a_file_is_missing(place: Path) -> None:
    done = subprocess.run(["./collect_submission.sh", "ada"], capture_output=True, text=True, cwd=place)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "missing or empty: vanilla.model.params, vanilla.nopretrain.dev.predictions" in done.stderr
    assert not list(place.glob("*.zip*"))
    assert os.access(FOLDER / "collect_submission.sh", os.X_OK)


@pytest.mark.slow
def test_the_demo_trains_on_a_text_and_writes(place: Path, cli_environment: dict[str, str]) -> None:
    shutil.copytree(FOLDER / "mingpt-demo", place / "mingpt-demo")
    quick = {**cli_environment, "ATTNLAB_QUICK": "1", "TEXT": str(place / "wiki.txt")}
    done = subprocess.run(
        [sys.executable, "mingpt-demo/play_char.py"], capture_output=True, text=True, env=quick, cwd=place
    )
    assert done.returncode == 0, done.stderr
    first, *written = done.stdout.splitlines()
    assert first.startswith("wiki.txt: ") and "".join(written).startswith("Ada. Ada was born in Rome.")
    assert "".join(written).count("Ada. Ada was born in Rome.") == 2, "and the lab's own GPT"


def test_the_demo_does_not_take_another_text_than_the_one_named(place: Path, cli_environment: dict[str, str]) -> None:
    shutil.copytree(FOLDER / "mingpt-demo", place / "mingpt-demo")
    command = [sys.executable, "mingpt-demo/play_char.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**cli_environment, "TEXT": "mine.txt"}, cwd=place
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "mine.txt does not exist" in done.stderr


def test_the_demos_notebook_is_its_py() -> None:
    spec = importlib.util.spec_from_file_location("to_ipynb", FOLDER.parent / "to_ipynb.py")
    assert spec is not None and spec.loader is not None
    converter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(converter)
    demo = FOLDER / "mingpt-demo" / "play_char.py"
    renewed = converter.written(demo.read_text(encoding="utf-8"))
    assert demo.with_suffix(".ipynb").read_text(encoding="utf-8") == renewed, (
        "renew it: python to_ipynb.py play_char.py"
    )
