"""Quickened encoders compute what they did: exactly without dropout, on average with it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

transformers = pytest.importorskip("transformers")

from attnlab.models.pretrained.fast_encoder import NAME, quicken  # noqa: E402

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
    quick = copy.deepcopy(plain)
    quicken(quick)
    return plain, quick


def inputs() -> dict[str, Tensor]:
    ids = torch.arange(3, 27).view(3, 8) % 50
    mask = (torch.arange(8) < torch.tensor([[8], [5], [3]])).long()
    return {"input_ids": ids, "attention_mask": mask}


FAMILIES = [("bert", SMALL), ("roberta", SMALL), ("electra", SMALL), ("distilbert", DISTILBERT), ("gpt2", GPT)]


@pytest.mark.parametrize(("kind", "settings"), FAMILIES, ids=[kind for kind, _ in FAMILIES])
def test_the_same_without_dropout_and_the_same_on_average_with_it(kind: str, settings: dict[str, Any]) -> None:
    plain, quick = pair(kind, settings)
    batch = inputs()
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        want = plain.eval()(**batch).last_hidden_state[real]
        assert torch.equal(quick.eval()(**batch).last_hidden_state[real], want)
        means = []
        for model in (plain.train(), quick.train()):
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


def test_weights_keep_their_names_and_the_saved_configuration_says_nothing_of_it(tmp_path: Any) -> None:
    plain, quick = pair("bert", SMALL)
    assert quick.config._attn_implementation == NAME
    assert list(quick.state_dict()) == list(plain.state_dict())
    quick.save_pretrained(tmp_path)
    assert NAME not in (tmp_path / "config.json").read_text(encoding="utf-8")
