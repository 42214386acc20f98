"""Tiny random models of every family, built with transformers itself, and a few sentences to tune them on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions

GOOD = ("good", "lovely", "warm", "bright", "clever")
BAD = ("bad", "dull", "cold", "grim", "silly")
THINGS = (
    "film",
    "book",
    "meal",
    "song",
    "walk",
    "room",
    "play",
    "tale",
    "trip",
    "show",
    "##s",
    "is",
    "the",
    "a",
    "very",
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
VOCABULARY = {
    word: place for place, word in enumerate((*SPECIAL, "positive", "negative", "neg", "##ative", *GOOD, *BAD, *THINGS))
}


def save_tokenizer(folder: Path, segments: bool, answers: bool) -> None:
    """WordPiece over a handful of words; `answers`: a text ends as T5's does, with one special token."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    inner = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    one, two = ("$A [SEP]", "$A $B:1 [SEP]:1") if answers else ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
    inner.post_processor = processors.TemplateProcessing(one, two, [("[CLS]", 2), ("[SEP]", 3)])
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if segments else [])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        eos_token="[SEP]",
        model_input_names=names,
        model_max_length=48,
    ).save_pretrained(folder)


def make_model(family: str, width: int, layers: int) -> Any:
    common = {"vocab_size": len(VOCABULARY), "pad_token_id": 0}
    bert = {
        **common,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 2 * width,
        "max_position_embeddings": 64,
    }
    if family == "bert":
        return transformers.BertModel(transformers.BertConfig(**bert))
    if family == "distilbert":
        return transformers.DistilBertModel(
            transformers.DistilBertConfig(**common, dim=width, n_layers=layers, n_heads=2, hidden_dim=2 * width)
        )
    if family == "roberta":
        return transformers.RobertaModel(transformers.RobertaConfig(**bert, type_vocab_size=1))
    if family == "mpnet":
        return transformers.MPNetModel(transformers.MPNetConfig(**bert))
    if family == "electra":
        return transformers.ElectraModel(transformers.ElectraConfig(**bert, embedding_size=width // 2))
    if family == "deberta-v2":
        return transformers.DebertaV2Model(transformers.DebertaV2Config(**bert))
    if family == "gpt2":
        return transformers.GPT2Model(
            transformers.GPT2Config(**common, n_embd=width, n_layer=layers, n_head=2, n_positions=64, eos_token_id=3)
        )
    assert family == "t5"
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            **common,
            d_model=width,
            d_kv=width // 2,
            d_ff=2 * width,
            num_layers=layers,
            num_heads=2,
            decoder_start_token_id=0,
            eos_token_id=3,
        )
    )


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a tiny model of a family; its weights are large enough that every part matters."""
    made: dict[tuple[str, int, int], Path] = {}

    def folder(family: str = "bert", width: int = 16, layers: int = 2) -> Path:
        key = (family, width, layers)
        if key not in made:
            torch.manual_seed(0)
            made[key] = tmp_path_factory.mktemp(family)
            model = make_model(family, width, layers)
            with torch.no_grad():
                for weight in model.parameters():
                    weight.add_(torch.randn_like(weight) * 0.2)
            model.save_pretrained(made[key])
            save_tokenizer(made[key], family in ("bert", "electra", "deberta-v2"), family == "t5")
        return made[key]

    return folder


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred sentences that one word decides, as a user's file."""
    rows = [
        f"the {thing}s {'is very' if n % 2 else 'is'} {word}\t{label}"
        for n, thing in enumerate(THINGS[:10])
        for words, label in ((GOOD, "positive"), (BAD, "negative"))
        for word in words
    ]
    path = tmp_path_factory.mktemp("data") / "reviews.tsv"
    path.write_text("\n".join(["remark\tlabel", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts per row: whether they agree."""
    rows = [
        f"a {one} {thing}\tthe {thing} is {two}\t{'yes' if (one in GOOD) == (two in GOOD) else 'no'}"
        for thing in THINGS[:3]
        for one in (GOOD + BAD)[::3]
        for two in (GOOD + BAD)[1::2]
    ]
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("\n".join(["question\tpassage\tanswer", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def settings() -> Callable[..., ClassifyConfig]:
    """A configuration for a tiny model; sections are given by name."""

    def make(model: Path | str, data: Path | str, /, **sections: dict[str, Any]) -> ClassifyConfig:
        base: dict[str, dict[str, Any]] = {
            "model": {"name": str(model)},
            "data": {"task": str(data), "label": None, "max_tokens": 128},
            "optimizer": {"lr": 3e-3},
            "training": {} if "steps" in sections.get("training", {}) else {"epochs": 2},
            "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
            "watch": {"baselines": False},
        }
        for name, values in sections.items():
            base[name] = base.get(name, {}) | values
        return check(ClassifyConfig, base)

    return make


@pytest.fixture(scope="session")
def fit(settings: Callable[..., ClassifyConfig]) -> Callable[..., Path]:
    """Train, and return the run's folder."""

    def run(path: Path, model: Path | str, data: Path | str, /, **sections: dict[str, Any]) -> Path:
        done = ClassifyJob(settings(model, data, **sections)).run(RunOptions(path))
        assert done is not None
        return done

    return run
