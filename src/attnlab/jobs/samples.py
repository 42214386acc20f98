"""Samples that a trained language model leaves in its run, for its page and for the report of a comparison.

All runs of a text continue the same prompt with the same seed, so that samples of different models can be compared.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from attnlab.base.console import visible
from attnlab.base.errors import UserError
from attnlab.base.files import read_json, write_json
from attnlab.config.language import MeasuresSection
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT
from attnlab.models.sampling import sample
from attnlab.report.page import Passage

SAMPLES_FILE = "samples.json"
PROMPT_TOKENS = 24  # of the validation text, if no prompt is given
SEED = 0
COLUMNS = 100  # of printed text


def write_samples(
    run: Path, model: GPT, vocabulary: Vocabulary, measures: MeasuresSection, dev: Tensor, context: int
) -> None:
    """Let the model continue the prompt, else the beginning of the validation text; store samples or the reason."""
    prompt = measures.sample_prompt or vocabulary.decode(dev[:PROMPT_TOKENS].tolist())
    found: dict[str, Any] = {"prompt": prompt, "seed": SEED, "temperature": 1.0}
    try:
        samples = sample(
            model, vocabulary, prompt, measures.sample_length, measures.samples, seed=SEED, context=context
        )
        found["samples"] = [{"text": each.text, "log_probability": each.log_probability} for each in samples]
    except UserError as error:  # a user's own attention that trains but cannot decode: its losses still count
        found["reason"] = str(error)
    write_json(run / SAMPLES_FILE, found)


def read_samples(run: Path) -> dict[str, Any] | None:
    """What `write_samples` stored; None for a run without."""
    return read_json(run / SAMPLES_FILE) if (run / SAMPLES_FILE).is_file() else None


def printed_samples(found: Mapping[str, Any]) -> list[str]:
    """Each sample after its prompt, for a page: nothing in it acts as a control character, long lines are wrapped."""
    if "reason" in found:
        return [f"cannot: {found['reason']}"]
    return [_wrapped(f"{found['prompt']} ▸{each['text']}") for each in found["samples"]]


def _wrapped(text: str) -> str:
    lines = visible(text).split("\n")
    return "\n".join(part for line in lines for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""])


def about_samples(measures: MeasuresSection) -> str:
    """How the samples were made, in a sentence or two."""
    start = "the given prompt" if measures.sample_prompt else "the beginning of the validation text"
    return (
        f"Each model continues {start} (up to ▸) with {measures.sample_length} tokens, drawn as it predicts them "
        f"(temperature 1), with the same seed ({SEED}) for all. Past the context a window moves over the text. A few "
        "samples show what kind of text a model writes; they do not measure it."
    )


def samples_passages(run: Path, measures: MeasuresSection) -> list[Passage]:
    """For the page of one run."""
    found = read_samples(run)
    if found is None:
        return []
    return [Passage("What it writes", [about_samples(measures)], printed="\n\n".join(printed_samples(found)))]


def first_samples(paths: Mapping[int, Path]) -> list[tuple[int, dict[str, Any]]]:
    """Of the runs of one variant by seed, the first that has samples, with its seed; empty if none has."""
    stored = [(seed, found) for seed, path in paths.items() if (found := read_samples(path)) is not None]
    return stored[:1]


def compared_samples(variants: Mapping[str, Mapping[int, Path]], measures: MeasuresSection) -> Passage | None:
    """For the report of a comparison: the samples of every variant, one run of each; None if there are none."""
    parts = [
        "\n\n".join([f"=== {label}, seed {seed} ===", *printed_samples(found)])
        for label, paths in variants.items()
        for seed, found in first_samples(paths)
    ]
    return Passage("What they write", [about_samples(measures)], printed="\n\n".join(parts)) if parts else None
