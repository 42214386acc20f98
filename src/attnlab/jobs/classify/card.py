"""The model card of an exported classifier: base model, data, scores and usage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from attnlab.models.linear.model import TITLES
from attnlab.models.pretrained.classifier import Classifier
from attnlab.models.pretrained.tuned import MOST_TOKENS, TunedClassifier
from attnlab.stats.intervals import Proportion
from attnlab.version import __version__

USES = {
    "transformers": """```python
from transformers import pipeline

classify = pipeline("text-classification", "{folder}", truncation=True)
classify({call})
```""",
    "words": """This is a text-to-text model that answers with the name of the class. With `transformers` it
generates any text:

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained("{folder}"), AutoTokenizer.from_pretrained("{folder}")
answer = model.generate(**tokenizer({words}, return_tensors="pt", truncation=True), max_new_tokens=8)
tokenizer.decode(answer[0], skip_special_tokens=True)
```

The scores above are of the most likely word *among the classes*, which is what the lab's own command uses:""",
    "mean": """An encoder of `transformers`, and beside it the head for the mean of its vectors:

```python
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

tokenizer, encoder = AutoTokenizer.from_pretrained("{folder}"), AutoModel.from_pretrained("{folder}").eval()
head = load_file("{folder}/weights.safetensors")
inputs = tokenizer({words}, return_tensors="pt", truncation=True)
with torch.no_grad():
    mean = encoder(**inputs).last_hidden_state.mean(1)  # of several texts at once: without the padding
    scores = mean @ head["head.out.weight"].T + head["head.out.bias"]
```""",
    "encoder": "An encoder of `transformers`, and in `weights.safetensors` what the lab puts on top of it:",
    "linear": "Counted words and a matrix: the vocabulary is `words.json`, the matrix `weights.safetensors`. "
    "No code and no pickle is in this folder.",
    "weights": "These are the trained weights alone. They belong to the base model, which the lab finds by its name; "
    "its weights must have the checksum in attnlab.json.",
}


def card(trained: TunedClassifier, form: str, record: dict[str, Any]) -> str:
    """The text of README.md, with the header that model hubs read."""
    config, data = trained.config, record["data"]
    base = Path(config.model.name).name if Path(config.model.name).is_absolute() else config.model.name
    licence = base_licence(trained.folder)
    header = {
        "library_name": "transformers" if form in ("transformers", "words") else "attnlab",
        "base_model": None if config.is_linear else base,
        "pipeline_tag": "text-classification",
        "license": licence,
    }
    head = yaml.safe_dump({key: value for key, value in header.items() if value}, sort_keys=False).rstrip()
    method = config.tuning.method
    total, learning = record.get("parameters", 0), record.get("learning_parameters", 0)
    title = f"{TITLES[base][0].upper()}{TITLES[base][1:]}, fitted" if config.is_linear else f"{base}, tuned"
    origin = f"{base} ({f'licence: {licence}' if licence else 'its licence is not stated with its weights'})"
    made = "" if config.is_linear else f"- base model: {origin}\n"
    how = "logistic regression" if config.is_fitted else method
    rate = f", learning rate {config.optimizer.lr:g}" if isinstance(config.optimizer.lr, float) else ""
    return f"""---
{head}
---

# {title} to distinguish {_listed(trained.classes)}

{made}- trained: {how}, {learning:,} of {total:,} parameters
- data: {Path(data["data"]).name}, {", ".join(f"{count:,} {split}" for split, count in data["examples"].items())}
- {_limit(trained)}
- seed {record["seed"]}{rate}, attnlab {record["versions"].get("attnlab", __version__)}

## Scores

{_scores(record)}

The weights were chosen on dev. One run: intervals (95%, Wilson) are over the examples, not over seeds.

## Use

{_use(trained, form)}

```
attnlab predict {{folder}} {"--text … --pair …" if trained.paired else "--text …"}
```
""".replace("{folder}", "path/to/this/folder")


def base_licence(folder: Path) -> str | None:
    """The licence that the base model's own card states."""
    path = folder / "README.md"
    if not path.is_file():
        return None
    match = re.match(
        r"---\n.*?^license:\s*(\S+)\s*$.*?^---$", path.read_text("utf-8", "replace"), re.DOTALL | re.MULTILINE
    )
    return match[1] if match else None


def _scores(record: dict[str, Any]) -> str:
    results, sizes = record["results"], record["data"]["examples"]
    rows = [
        "| split | examples | accuracy | macro-F1 | always the most common class |",
        "| --- | --- | --- | --- | --- |",
    ]
    for split in ("dev", "test"):
        if f"{split}_accuracy" in results:
            count = sizes[split]
            accuracy = Proportion(round(results[f"{split}_accuracy"] * count), count)
            rows.append(
                f"| {split} | {count:,} | {accuracy} | {results[f'{split}_macro_f1']:.3f} | "
                f"{results[f'{split}_baseline']:.1%} |"
            )
    warning = f"\n\n**Do not use it: {record['collapsed']}**" if record.get("collapsed") else ""
    return "\n".join(rows) + warning


def _use(trained: TunedClassifier, form: str) -> str:
    call = '{"text": "…", "text_pair": "…"}' if trained.paired else '"…"'
    words = '"…", "…"' if trained.paired else '"…"'
    model = trained.model
    if form == "encoder" and isinstance(model, Classifier) and model.pooling == "mean" and model.head.dense is None:
        form = "mean" if trained.config.tuning.method not in ("prompt", "prefix") else form
    return USES[form].replace("{call}", call).replace("{words}", words)


def _limit(trained: TunedClassifier) -> str:
    if trained.longest >= MOST_TOKENS:
        return "texts are read whole"
    return f"texts of more than {trained.longest} tokens are cut{' in the second text' if trained.paired else ''}"


def _listed(classes: tuple[str, ...]) -> str:
    shown = list(classes[:6]) + ([f"{len(classes) - 6} more"] if len(classes) > 6 else [])
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
