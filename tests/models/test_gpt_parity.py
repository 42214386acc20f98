"""The lab's GPT against independent implementations with the same weights: GPT-2, Llama and Qwen3 of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.models.gpt import GPT, preset

transformers = pytest.importorskip("transformers")

TINY = {"layers": 2, "heads": 4, "width": 24, "context": 16}
VOCABULARY = 31
Weights = dict[str, Tensor]


def random_gpt(name: str, **changes: Any) -> GPT:
    """All weights random and large enough to matter: also gains, biases and what zero_init would start at zero."""
    torch.manual_seed(0)
    model = GPT(preset(name, VOCABULARY, **(TINY | {"dropout": 0.0} | changes)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
            if parameter.dim() == 1:
                parameter.add_(1.0)
    return model.eval()


def to_gpt2(ours: GPT) -> nn.Module:
    shape = ours.shape
    config = transformers.GPT2Config(
        vocab_size=shape.vocabulary,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        activation_function="gelu",
        tie_word_embeddings=shape.tied,
    )
    weights: Weights = {
        "transformer.wte.weight": ours.tokens.weight,
        "transformer.wpe.weight": ours.positions.table,
        "lm_head.weight": ours.head.weight,
        **named("transformer.ln_f", ours.norm),
    }
    for n, block in enumerate(ours.blocks):
        layer = f"transformer.h.{n}"
        weights |= named(f"{layer}.ln_1", block.mixer_norm) | named(f"{layer}.ln_2", block.mlp_norm)
        for name, part in (
            ("attn.c_attn", block.mixer.projections.qkv),
            ("attn.c_proj", block.mixer.output),
            ("mlp.c_fc", block.mlp.wide),
            ("mlp.c_proj", block.mlp.output),
        ):  # GPT-2 stores its matrices as (in, out)
            weights |= {f"{layer}.{name}.weight": part.weight.T, f"{layer}.{name}.bias": part.bias}
    return filled(transformers.GPT2LMHeadModel(config), weights)


def to_llama(ours: GPT) -> nn.Module:
    """Llama, or with normalised queries and keys Qwen3, which is otherwise the same."""
    shape = ours.shape
    projections = ours.blocks[0].mixer.projections
    config = (transformers.Qwen3Config if shape.qk_norm else transformers.LlamaConfig)(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=ours.blocks[0].mlp.output.in_features,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=projections.key_heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=shape.context,
        rms_norm_eps=torch.finfo(torch.float32).eps,
        hidden_act="silu",
        tie_word_embeddings=shape.tied,
    )
    weights: Weights = {
        "model.embed_tokens.weight": ours.tokens.weight,
        "lm_head.weight": ours.head.weight,
        **named("model.norm", ours.norm),
    }
    for n, block in enumerate(ours.blocks):
        layer = f"model.layers.{n}"
        weights |= named(f"{layer}.input_layernorm", block.mixer_norm)
        weights |= named(f"{layer}.post_attention_layernorm", block.mlp_norm)
        weights |= named(f"{layer}.self_attn.o_proj", block.mixer.output)
        weights |= named(f"{layer}.mlp.down_proj", block.mlp.output)
        for part, rows in zip("qkv", block.mixer.projections.qkv.weight.split(projections.sizes), strict=True):
            weights[f"{layer}.self_attn.{part}_proj.weight"] = rows
        for part, rows in zip(("gate", "up"), block.mlp.wide.weight.chunk(2), strict=True):
            weights[f"{layer}.mlp.{part}_proj.weight"] = rows
        if shape.qk_norm:
            weights |= named(f"{layer}.self_attn.q_norm", block.mixer.norm.queries)
            weights |= named(f"{layer}.self_attn.k_norm", block.mixer.norm.keys)
    kind = transformers.Qwen3ForCausalLM if shape.qk_norm else transformers.LlamaForCausalLM
    return filled(kind(config), weights)


def named(prefix: str, module: nn.Module) -> Weights:
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def filled(model: nn.Module, weights: Weights) -> nn.Module:
    """Every weight of the other model is set, and every one of ours is used."""
    model.load_state_dict({name: tensor.detach().clone() for name, tensor in weights.items()})
    return model.eval()


def assert_same_logits(ours: GPT, theirs: nn.Module) -> None:
    """In a full batch, and at the real tokens of a padded one."""
    tokens = torch.randint(VOCABULARY, (3, 16), generator=torch.Generator().manual_seed(1))
    real = torch.arange(16) < torch.tensor([[16], [9], [4]])
    with torch.no_grad():
        logits = ours(tokens)
        torch.testing.assert_close(logits, theirs(input_ids=tokens).logits, rtol=1e-5, atol=1e-5)
        padded = theirs(input_ids=tokens, attention_mask=real.long()).logits
        torch.testing.assert_close(ours(tokens, real)[real], padded[real], rtol=1e-5, atol=1e-5)
    assert logits.std() > 0.1  # a comparison of something


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("attention", ["vanilla", "pieces"])
def test_the_vanilla_preset_is_gpt2(attention: str, tied: bool) -> None:
    ours = random_gpt("vanilla", attention=attention, tied=tied)
    assert_same_logits(ours, to_gpt2(ours))


@pytest.mark.parametrize("qk_norm", [False, True], ids=["llama", "qwen3"])
@pytest.mark.parametrize("attention", ["vanilla", "grouped-query"])
def test_the_modern_preset_with_swiglu_is_llama_or_qwen3(attention: str, qk_norm: bool) -> None:
    ours = random_gpt("modern", attention=attention, activation="swiglu", qk_norm=qk_norm)
    assert_same_logits(ours, to_llama(ours))


def test_the_gradients_are_those_of_gpt2() -> None:
    ours = random_gpt("vanilla")
    theirs = to_gpt2(ours)
    tokens = torch.randint(VOCABULARY, (2, 16), generator=torch.Generator().manual_seed(1))
    nn.functional.cross_entropy(ours(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    theirs(input_ids=tokens, labels=tokens).loss.backward()
    for found, expected in (
        (ours.tokens.weight, theirs.transformer.wte.weight),
        (ours.positions.table, theirs.transformer.wpe.weight),
        (ours.blocks[0].mixer.projections.qkv.bias, theirs.transformer.h[0].attn.c_attn.bias),
        (ours.blocks[1].mlp.wide.bias, theirs.transformer.h[1].mlp.c_fc.bias),
    ):
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-6)
