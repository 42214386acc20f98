"""Trainings of the BERT assignment that are killed, replaced or unfinished; torch alone; a model from the hub."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

Load = Callable[[str], ModuleType]
FOLDER = Path(__file__).parents[2] / "assignments" / "natural-language-processing-4"
SHORT = shlex.split(
    "--model_name_or_path models/TinyBERT_General_4L_312D --data_dir yelp_small --output_dir out --do_train --do_eval "
    "--per_gpu_train_batch_size 8 --learning_rate 1e-3 --max_seq_length 24 --max_steps 4 --logging_steps 2 "
    "--evaluate_during_training --no_cuda"
)
JOINT = [*SHORT, "--train_data_file", "unlabeled_train_50000.txt", "--block_size", "16", "--line_by_line"]

# A script that is killed when it writes a line to standard error: never too late, however busy the machine is.
KILLED_BY_A_LINE = """
import os, runpy, signal, sys
from pathlib import Path
_, line, *sys.argv = sys.argv
write = sys.stderr.write
def write_and_end(text):
    write(text)
    if line in text:
        os.kill(os.getpid(), signal.SIGKILL)
sys.stderr.write = write_and_end
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def refused(main: Callable[[list[str]], None], words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def same_training(first: Path, second: Path) -> None:
    """The best weights to the bit, and every loss on the way to the last digit."""
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    ours, theirs = (json.loads((folder / "results.json").read_text()) for folder in (first, second))
    assert ours["history"] == theirs["history"] and ours["scores"] == theirs["scores"]
    assert not (first / "checkpoint.pt").exists()


@pytest.mark.slow
def test_killed_and_typed_again_it_ends_with_the_same_weights(
    bert: Load, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*JOINT, "--max_steps", "300", "--logging_steps", "10", "--overwrite_output_dir", "--learning_rate", "1e-4"]
    bert("classifier_mlm").main([*words, "--output_dir", "whole"])
    command = [sys.executable, "-c", KILLED_BY_A_LINE, "step 20 of 300", str(FOLDER / "classifier_mlm.py"), *words]
    assert subprocess.run(command, stderr=subprocess.PIPE, cwd=place).returncode == -signal.SIGKILL
    assert Path("out/training.json").is_file() and not Path("out/results.json").exists()
    capsys.readouterr()
    bert("classifier_mlm").main(words)
    assert "resuming after step " in capsys.readouterr().err
    same_training(Path("out"), Path("whole"))


def test_a_checkpoint_between_evaluations_is_as_good(
    bert: Load, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*JOINT, "--max_steps", "7", "--logging_steps", "5", "--save_steps", "3"]
    main = bert("classifier_mlm").main
    main([*words, "--output_dir", "whole"])
    mask_tokens, calls = bert("mlm_utils").mask_tokens, []

    def stop(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 6:  # one to try the model, then four steps
            raise KeyboardInterrupt
        return mask_tokens(*arguments)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr(bert("classifier_mlm"), "mask_tokens", stop)
        main(words)
    assert stopped.value.code == 130 and "the same command resumes" in capsys.readouterr().err
    main(words)
    assert "resuming after step 3." in capsys.readouterr().err
    same_training(Path("out"), Path("whole"))


def test_another_training_replaces_only_when_asked(bert: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main, words = bert("classifier").main, SHORT
    main(words)
    first = Path("out/model.safetensors").read_bytes()
    assert "out was trained with seed 42, got 1:" in refused(main, [*words, "--seed", "1"], capsys)
    assert "max_seq_length 24, got 12" in refused(main, [*words, "--max_seq_length", "12"], capsys)
    (place / "yelp_small" / "test.csv").write_text('"1","changed"\n')
    assert "out was trained with files others:" in refused(main, words, capsys)
    shutil.copy(place / "yelp_small" / "valid.csv", place / "yelp_small" / "test.csv")
    main([*words, "--overwrite_output_dir"])
    stamp = Path("out/results.json").stat().st_mtime_ns
    main(words)  # finished: nothing to do
    told = capsys.readouterr()
    assert "has this training, finished" in told.err and "test_acc = " in told.out
    assert Path("out/results.json").stat().st_mtime_ns == stamp
    assert Path("out/model.safetensors").read_bytes() == first
    main([*words, "--seed", "1", "--overwrite_output_dir"])
    assert Path("out/model.safetensors").read_bytes() != first
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine")
    assert "other is not empty" in refused(main, [*words, "--output_dir", "other"], capsys)
    main([*words, "--output_dir", "other", "--overwrite_output_dir"])
    assert Path("other/notes.txt").read_text() == "mine"


def test_a_rate_that_diverges_is_stopped(bert: Load, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SHORT, "--learning_rate", "1e30", "--max_steps", "20"]
    assert "lower --learning_rate" in refused(bert("classifier").main, words, capsys)


CLASSIFIER, LANGUAGE, BOTH = "BertForSequenceClassification", "BertForMaskedLanguageModel", "BertForCLSMLM"


@pytest.mark.parametrize(
    ("file", "name", "needed_by"),
    [
        ("mymodel.py", f"{CLASSIFIER}.forward", ("classifier", "classifier_mlm")),
        ("mymodel.py", f"{LANGUAGE}.forward", ("classifier_mlm",)),
        ("mymodel.py", f"{BOTH}.forward", ("classifier_mlm",)),
        ("mlm_utils.py", "mask_tokens", ("classifier_mlm",)),
        ("bert.py", "BertModel.forward", ("classifier", "classifier_mlm")),
        ("bert.py", "BertLayer.forward", ("classifier", "classifier_mlm")),
        ("bert.py", "SelfAttention.forward", ("classifier", "classifier_mlm")),
    ],
)
def test_every_part_the_document_asks_for_is_used(
    place: Path, file: str, name: str, needed_by: tuple[str, ...]
) -> None:
    """With a #todo in its place, a command that needs it fails and names it, before anything is written."""
    shutil.copytree(FOLDER, place / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    path = place / "mine" / file
    path.write_text(unwritten(path.read_text(encoding="utf-8"), name), encoding="utf-8")
    for script in needed_by:
        words = JOINT if script == "classifier_mlm" else SHORT
        command = [sys.executable, f"mine/{script}.py", *words, "--output_dir", script]
        done = subprocess.run(command, capture_output=True, text=True, cwd=place)
        assert done.returncode == 2
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"error: {file}, line ") and f": {name} is not finished" in last
        assert "Traceback" not in done.stderr and not (place / script).exists()


def unwritten(source: str, name: str) -> str:
    """The source with the body of a function replaced by a #todo."""
    nodes: list[ast.stmt] = ast.parse(source).body
    for part in name.split("."):
        node = next(n for n in nodes if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == part)
        nodes = node.body
    lines = source.splitlines()
    first, last = nodes[0].lineno, nodes[-1].end_lineno
    lines[first - 1 : last] = [" " * nodes[0].col_offset + "raise NotImplementedError  #todo"]
    return "\n".join(lines) + "\n"


def imported(path: Path) -> set[str]:
    """The top-level names that a script imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            names.add(node.module.partition(".")[0])
    return names


def test_the_folder_imports_torch_and_the_standard_library_alone() -> None:
    own = {path.stem for path in FOLDER.glob("*.py")}
    found = set().union(*(imported(path) for path in FOLDER.rglob("*.py")))
    assert found - own - set(sys.stdlib_module_names) == {"torch"}


@pytest.mark.parametrize("script", ["collect.py", "make_submission.py"])
def test_results_and_hand_in_need_the_standard_library_alone(script: str) -> None:
    names, seen = {Path(script).stem}, set()
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        names |= imported(FOLDER / f"{name}.py") if (FOLDER / f"{name}.py").is_file() else set()
    assert "errors" in names and "torch" not in names


ALONE = """
import re, runpy, sys
from importlib import metadata

def needs(name, known):
    # torch requires a few packages itself; numpy is not among them
    for line in metadata.requires(name) or ():
        other = re.match(r"[\\w.-]+", line)[0].lower().replace("_", "-")
        if "extra ==" not in line and other not in known:
            try:
                metadata.version(other)
            except metadata.PackageNotFoundError:
                continue
            known.add(other)
            needs(other, known)
    return known

packages = needs("torch", {"torch"})
tops = {top for top, names in metadata.packages_distributions().items()
        if {n.lower().replace("_", "-") for n in names} & packages}
allowed = tops | set(sys.stdlib_module_names) | set(sys.argv[2].split())
assert not allowed & {"numpy", "attnlab", "transformers", "tokenizers", "safetensors", "scipy"}, allowed

class Allowed:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        known = name.partition(".")[0] in allowed or name.startswith("_sysconfigdata")
        return self.finder.find_spec(name, path, target) if known else None

sys.meta_path[:] = map(Allowed, sys.meta_path)
for name in ("numpy", "attnlab", "transformers"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
sys.argv = sys.argv[3:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("script", ["classifier", "classifier_mlm"])
def test_a_command_runs_where_nothing_but_torch_can_be_imported(place: Path, script: str) -> None:
    words = JOINT if script == "classifier_mlm" else SHORT
    own = " ".join(path.stem for path in FOLDER.glob("*.py"))
    command = [sys.executable, "-c", ALONE, "", own, f"{FOLDER}/{script}.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "test_acc = " in done.stdout
    assert json.loads((place / "out" / "config.json").read_text())["model_type"] == "bert"


def test_a_model_from_the_hub_and_then_from_its_cache(
    bert: Load, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By urllib, from a stand-in of the hub; weights of a repository that breaks off are not kept."""
    model = place / "models" / "TinyBERT_General_4L_312D"
    commit, files = "a" * 40, ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors")
    web = place / "web"
    (web / "api/models/owner/small/revision").mkdir(parents=True)
    listing = {"sha": commit, "siblings": [{"rfilename": name} for name in (*files, "code.py")]}
    (web / "api/models/owner/small/revision/main").write_text(json.dumps(listing))
    for name in files:
        (web / "owner/small/resolve" / commit).mkdir(parents=True, exist_ok=True)
        shutil.copy(model / name, web / "owner/small/resolve" / commit / name)

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(web))  # type: ignore[arg-type]

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    find = bert("models").find_model
    with pytest.raises(bert("errors").UserError, match="HF_HUB_OFFLINE is set"):
        find("owner/small")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(bert("errors").UserError, match="'owner/none' is not here"):
        find("owner/none")
    folder = find("owner/small")
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    assert (folder / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    server.shutdown()
    server.server_close()
    assert find("owner/small") == folder  # from the cache
    words = [*SHORT, "--model_name_or_path", "owner/small"]
    bert("classifier").main(words)
    huggingface = pytest.importorskip("huggingface_hub")
    cached = huggingface.try_to_load_from_cache("owner/small", "config.json", cache_dir=os.environ["HF_HOME"] + "/hub")
    assert cached == str(folder / "config.json")
