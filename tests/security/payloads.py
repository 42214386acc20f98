"""Files as a stranger would write them: each creates the file that MARKER names if any code in it is executed."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOUCH = "open(__import__('os').environ['MARKER'], 'a').close()"

ATTENTION = f"""
import torch
if "MARKER" in __import__("os").environ: {TOUCH}
class Evil(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.line = torch.nn.Linear(shape.width, shape.width)
    def forward(self, x):
        return self.line(x)
"""

CODE = f"""
{TOUCH}
from transformers import BertConfig, BertModel, BertTokenizerFast
class Config(BertConfig):
    model_type = "evil"
class Model(BertModel):
    config_class = Config
class Tokenizer(BertTokenizerFast):
    pass
"""


class Bomb:
    """Executes when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (TOUCH,)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb()))


def torch_pickle(path: Path) -> None:
    """As torch.save writes it, with an object in place of a tensor."""
    import torch

    torch.save({"word_embeddings.weight": Bomb()}, path)


def write_jobs(run: Path, job: str) -> None:
    (run / "slurm").mkdir()
    submission = {"command": "attnlab", "submitted": "2026-01-01T00:00:00", "jobs": [job], "runs": ["."]}
    write(run / "slurm" / "job.json", json.dumps({"submissions": [submission]}))


def model(folder: Path, **config: Any) -> Path:
    """A BERT with random weights, and some training texts beside it."""
    from tests.tiny_models import tiny_model

    path = tiny_model(folder / "model")
    rows = [f"{words} number {n}\t{label}\n" for n in range(12) for words, label in (("good", "yes"), ("bad", "no"))]
    write(folder / "train.tsv", "text\tlabel\n" + "".join(rows))
    merge(path / "config.json", config)
    return path


def merge(path: Path, values: dict[str, Any]) -> None:
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    write(path, json.dumps({**before, **values}))


MODEL_CLASSES = ("AutoModel", "AutoModelForTextEncoding", "AutoModelForMaskedLM", "AutoModelForSequenceClassification")
AUTO_MAP = {
    "AutoConfig": "code.Config",
    "AutoTokenizer": ["code.Tokenizer", "code.Tokenizer"],
    **dict.fromkeys(MODEL_CLASSES, "code.Model"),
}


def with_code(folder: Path, family: str | None) -> None:
    path = model(folder, auto_map=AUTO_MAP, architectures=["Model"])
    write(path / "code.py", CODE)
    merge(path / "config.json", {"model_type": family})
    merge(path / "tokenizer_config.json", {"auto_map": AUTO_MAP, "tokenizer_class": "Tokenizer"})


def with_pickle(folder: Path, make: Callable[[Path], None]) -> None:
    path = model(folder)
    (path / "model.safetensors").unlink()
    make(path / "pytorch_model.bin")


def with_kernel(folder: Path) -> None:
    model(folder, attn_implementation="stranger/kernel", _attn_implementation="stranger/kernel")


def with_adapter(folder: Path) -> None:
    path = model(folder)
    library = {"base_model_class": "Model", "parent_library": "code"}
    merge(path / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": ".", "auto_mapping": library})
    write(path / "code.py", CODE)
    torch_pickle(path / "adapter_model.bin")


def with_modules(folder: Path) -> None:
    """The file from which sentence-transformers imports classes."""
    path = model(folder)
    write(path / "modules.json", json.dumps([{"idx": 0, "name": "0", "path": "", "type": "code.Model"}]))
    write(path / "code.py", CODE)


def export_with_pickle(folder: Path) -> None:
    path = model(folder)
    about = {"form": "model", "classes": ["no", "yes"], "columns": None, "max_tokens": 16, "config": {}}
    merge(path / "attnlab.json", {**about, "base": {"name": "x", "weights": "x"}})
    (path / "model.safetensors").unlink()
    torch_pickle(path / "pytorch_model.bin")


def after(make: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: with_pickle(folder, make)


MODELS: dict[str, tuple[Callable[[Path], None], str]] = {
    "code of its own": (lambda folder: with_code(folder, "evil"), "needs code of its own"),
    "code and no family": (lambda folder: with_code(folder, None), "needs code of its own"),
    "code beside a known family": (lambda folder: with_code(folder, "bert"), ""),
    "a pickle": (after(pickled), "pickle"),
    "a pickle of torch": (after(torch_pickle), "pickle with something else than tensors"),
    "a kernel": (with_kernel, "names code to fetch"),
    "an adapter": (with_adapter, ""),
    "modules": (with_modules, ""),
    "an export with a pickle": (export_with_pickle, ""),
}
"""With what the user is told when a classifier is built on it; without a sentence, it works as data."""

RECIPES = {
    "an object": f'model: !!python/object/apply:builtins.exec ["{TOUCH}"]\n',
    "a new object": f'model: !!python/object/new:builtins.exec [["{TOUCH}"]]\n',
    "a module": "model: {attention: !!python/module:antigravity ''}\n",
    "a name": "model: {layers: !!python/name:os.system ''}\n",
}


def marker() -> Path:
    return Path(os.environ["MARKER"])
