"""Encoders with exchanged layers compute the same: exactly without dropout, on average with it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

transformers = pytest.importorskip("transformers")

from typer.testing import CliRunner  # noqa: E402

from attnlab.attention.parts.weighting import Dropout  # noqa: E402
from attnlab.cli import app  # noqa: E402
from attnlab.config import check  # noqa: E402
from attnlab.config.classify import ClassifyConfig  # noqa: E402
from attnlab.models.pretrained.fast_encoder import NAME, exchange_layers  # noqa: E402
from attnlab.models.pretrained.load import load_classifier  # noqa: E402
from attnlab.models.pretrained.tuned import load_trained  # noqa: E402
from attnlab.runs import read_record  # noqa: E402

Make = Callable[..., Any]

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50}
DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "vocab_size": 50}
DROPOUT = 0.25


def pair(kind: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **settings)
    for name in ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop"):
        if hasattr(config, name):
            setattr(config, name, DROPOUT)
    plain = transformers.AutoModel.from_config(config)
    fast = copy.deepcopy(plain)
    exchange_layers(fast)
    return plain, fast


def inputs() -> dict[str, Tensor]:
    ids = torch.arange(3, 27).view(3, 8) % 50
    mask = (torch.arange(8) < torch.tensor([[8], [5], [3]])).long()
    return {"input_ids": ids, "attention_mask": mask}


FAMILIES = [("bert", SMALL), ("roberta", SMALL), ("electra", SMALL), ("distilbert", DISTILBERT), ("gpt2", GPT)]


@pytest.mark.parametrize(("kind", "settings"), FAMILIES, ids=[kind for kind, _ in FAMILIES])
def test_the_same_without_dropout_and_the_same_on_average_with_it(kind: str, settings: dict[str, Any]) -> None:
    plain, fast = pair(kind, settings)
    batch = inputs()
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        want = plain.eval()(**batch).last_hidden_state[real]
        assert torch.equal(fast.eval()(**batch).last_hidden_state[real], want)
        means = []
        for model in (plain.train(), fast.train()):
            torch.manual_seed(1)
            many = {name: tensor.repeat(600, 1) for name, tensor in batch.items()}
            means.append(model(**many).last_hidden_state.unflatten(0, (600, 3)).mean(0)[real])
    assert not torch.allclose(means[1], want, atol=1e-3), "dropout is on"
    torch.testing.assert_close(means[1], means[0], atol=0.15, rtol=0)


def test_attention_with_dropout_equals_torchs_where_nothing_is_dropped() -> None:
    """A probability that rounds to no step of 2⁻¹⁶ leaves all in: what remains is the attention itself."""
    from attnlab.models.pretrained.fast_encoder import attention

    torch.manual_seed(0)
    module = torch.nn.Module()
    query, key, value = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    mask = (torch.arange(5) < torch.tensor([5, 3])[:, None])[:, None, None].expand(2, 1, 5, 5)
    found = attention(module, query, key, value, mask, dropout=1e-9, is_causal=False)[0]
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
    torch.testing.assert_close(found, wanted)
    for ours, theirs in zip(
        *(torch.autograd.grad(y.square().sum(), (query, key, value)) for y in (found, wanted)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_weights_keep_their_names_and_the_saved_configuration_is_unchanged(tmp_path: Any) -> None:
    plain, fast = pair("bert", SMALL)
    assert fast.config._attn_implementation == NAME
    assert list(fast.state_dict()) == list(plain.state_dict())
    fast.save_pretrained(tmp_path)
    assert NAME not in (tmp_path / "config.json").read_text(encoding="utf-8")


def exchanged(body: Any) -> int:
    return sum(isinstance(module, Dropout) for module in body.modules())


def test_a_loaded_classifier_reports_the_exchanged_layers(tiny_model: Make) -> None:
    folder = tiny_model("bert", layers=2)
    fast = load_classifier(str(folder), ("no", "yes"))
    count = exchanged(fast.model.body)
    assert count > 0 and fast.model.body.config._attn_implementation == NAME
    assert fast.fast_encoder == f"{count} dropout modules and the attention of 2 layers"
    assert fast.notes == []  # the default is no reason for a note
    shown = CliRunner().invoke(app, ["models", "show", str(folder)]).stdout
    assert f"fast encoder:         {fast.fast_encoder}\n" in shown


def test_the_exchange_can_be_switched_off(tiny_model: Make) -> None:
    folder = str(tiny_model("bert"))
    torch.manual_seed(0)
    fast = load_classifier(folder, ("no", "yes"))
    torch.manual_seed(0)
    plain = load_classifier(folder, ("no", "yes"), fast=False)
    assert plain.fast_encoder == "off" and exchanged(plain.model.body) == 0
    assert plain.model.body.config._attn_implementation == "sdpa"
    with torch.no_grad():
        torch.testing.assert_close(plain.model.eval()(**inputs()), fast.model.eval()(**inputs()))


def test_a_run_records_the_exchange_and_is_loaded_the_same_way(
    tmp_path: Path, tiny_model: Make, fit: Make, reviews: Path
) -> None:
    for fast, expected in ((True, "dropout modules and the attention of 2 layers"), (False, "off")):
        short = {"steps": 2, "save_every": 0}
        run = fit(tmp_path / str(fast), tiny_model("bert"), reviews, model={"fast": fast}, training=short)
        record = read_record(run)
        assert record["data"]["fast_encoder"].endswith(expected)
        assert not any("dropout" in change for change in record["changes"])
        assert (exchanged(load_trained(run, "cpu").model.body) > 0) == fast


def test_a_configuration_without_the_setting_is_fast() -> None:
    saved = json.loads(ClassifyConfig().model_dump_json())
    del saved["model"]["fast"]
    assert check(ClassifyConfig, saved).model.fast
