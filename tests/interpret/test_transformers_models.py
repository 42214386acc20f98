"""The weights of models of transformers equal those of its explicit attention."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from attnlab.interpret.recorder import record

transformers = pytest.importorskip("transformers")

TOKENS = torch.randint(3, 60, (2, 11), generator=torch.Generator().manual_seed(1))
MASK = (torch.arange(11) < torch.tensor([[11], [8]])).long()
BERT_LIKE = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
ENCODERS = {
    "Bert": BERT_LIKE,
    "Roberta": BERT_LIKE,
    "Electra": BERT_LIKE,
    "MPNet": BERT_LIKE,
    "DebertaV2": {**BERT_LIKE, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "DistilBert": {"vocab_size": 60, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "GPT2": {"vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4},
}


def both(kind: Any, config: Any) -> tuple[Any, Any]:
    """A model as transformers builds it, and the same weights with explicit attention."""
    torch.manual_seed(0)
    model = kind(config).eval()
    explicit = kind(copy.deepcopy(config)).eval()
    explicit.load_state_dict(model.state_dict())
    explicit.set_attn_implementation("eager")
    return model, explicit


@pytest.mark.parametrize("family", ENCODERS)
@torch.no_grad()
def test_encoders(family: str) -> None:
    kind, config = getattr(transformers, f"{family}Model"), getattr(transformers, f"{family}Config")
    model, explicit = both(kind, config(**ENCODERS[family]))
    inputs = {"input_ids": TOKENS, "attention_mask": MASK}
    recording = record(model, **inputs)
    assert torch.equal(model(**inputs).last_hidden_state, recording.output.last_hidden_state)
    for layer, expected in enumerate(explicit(**inputs, output_attentions=True).attentions):
        name = f"blocks.{layer}.attention"
        torch.testing.assert_close(recording[f"{name}.weights"], expected, atol=1e-6, rtol=0)
        product = recording[f"{name}.weights"] @ recording[f"{name}.values"]
        torch.testing.assert_close(product, recording[f"{name}.heads"], atol=1e-6, rtol=0)


@torch.no_grad()
def test_t5_has_encoder_decoder_and_cross_attention() -> None:
    config = transformers.T5Config(
        vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    model, explicit = both(transformers.T5ForConditionalGeneration, config)
    inputs = {"input_ids": TOKENS, "attention_mask": MASK, "decoder_input_ids": TOKENS[:, :5]}
    recording = record(model, **inputs, use_cache=False)
    assert torch.equal(model(**inputs, use_cache=False).logits, recording.output.logits)
    expected = explicit(**inputs, output_attentions=True, use_cache=False)
    for layer in range(2):
        for name, weights in (
            (f"encoder.blocks.{layer}.attention", expected.encoder_attentions),
            (f"decoder.blocks.{layer}.attention", expected.decoder_attentions),
            (f"decoder.blocks.{layer}.cross", expected.cross_attentions),
        ):
            torch.testing.assert_close(recording[f"{name}.weights"], weights[layer], atol=1e-6, rtol=0)
