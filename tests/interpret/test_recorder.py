"""Recording shows what flows and changes no bit of it; edits replace it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import VARIANTS
from attnlab.attention.starter import write_starter
from attnlab.base.errors import UserError
from attnlab.base.trust import allow
from attnlab.interpret.anatomy import anatomy
from attnlab.interpret.recorder import edited, names, record
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel
from attnlab.models.gpt import GPT, GPTShape

WITHOUT_WEIGHTS = {"aft-simple", "aft-full", "aft-local", "aft-conv", "fastformer", "linear", "performer"}


def gpt(attention: str = "vanilla", **changes: object) -> GPT:
    torch.manual_seed(0)
    model = GPT(GPTShape(50, layers=2, heads=4, width=32, context=24, attention=attention, **changes))  # type: ignore[arg-type]
    for parameter in model.parameters():  # away from the small initial weights, so that no two heads agree by chance
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


TOKENS = torch.randint(0, 50, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@torch.no_grad()
def test_weights_of_every_variant_times_values_are_its_output(variant: str) -> None:
    model = gpt(variant)
    plain, recording = model(TOKENS), record(model, TOKENS)
    assert torch.equal(plain, recording.output)
    for layer in range(2):
        name = f"blocks.{layer}.attention"
        assert (f"{name}.weights" in recording) == (variant not in WITHOUT_WEIGHTS)
        if variant in WITHOUT_WEIGHTS:
            continue
        weights, values = recording[f"{name}.weights"], recording[f"{name}.values"]
        assert weights.shape == (3, 4, 17, 17)
        heads = recording[f"{name}.heads"]  # the input of the output projection, which the model used
        torch.testing.assert_close(weights @ values, heads, atol=1e-6, rtol=0)
        projected = model.blocks[layer].mixer.output(heads.transpose(1, 2).flatten(2))
        torch.testing.assert_close(recording[f"{name}.output"], projected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "alibi"])
@torch.no_grad()
def test_queries_and_keys_give_the_weights(positions: str) -> None:
    """After rotation; ALiBi's bias is among what was added to the scores."""
    attended = record(gpt(positions=positions), TOKENS).attended["blocks.1.attention"]
    assert attended.queries is not None and attended.keys is not None and attended.bias is not None
    scores = attended.queries @ attended.keys.transpose(-1, -2) * attended.scale
    torch.testing.assert_close((scores + attended.bias).softmax(-1), attended.weights, atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_residual_stream_is_the_sum_of_its_parts() -> None:
    recording = record(gpt(), TOKENS)
    for layer in range(2):
        block = f"blocks.{layer}"
        total = recording[f"{block}.input"] + recording[f"{block}.attention.output"] + recording[f"{block}.mlp.output"]
        torch.testing.assert_close(recording[f"{block}.output"], total)
    assert torch.equal(recording["blocks.0.output"], recording["blocks.1.input"])


@torch.no_grad()
def test_only_what_matches_is_recorded_and_hooks_are_gone_afterwards() -> None:
    model = gpt()
    recording = record(model, TOKENS, names=["blocks.1.*.weights", "blocks.0.output"])
    assert set(recording.tensors) == {"blocks.1.attention.weights", "blocks.0.output"}
    assert set(record(model, TOKENS).tensors) == set(names(model))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    with pytest.raises(UserError, match=r"recorded name 'blocks\.7\.output'"):
        recording["blocks.7.output"]


@torch.no_grad()
def test_training_mode_is_kept_and_dropout_is_off_while_recording() -> None:
    model = gpt().train()
    assert torch.equal(record(model, TOKENS).output, record(model, TOKENS).output)
    assert model.training


@torch.no_grad()
def test_an_edit_replaces_what_flows() -> None:
    model = gpt()
    plain = record(model, TOKENS)
    for name in plain.tensors:
        if name.rpartition(".")[2] in ("queries", "keys", "values", "weights"):
            with pytest.raises(UserError, match="can be recorded, not edited"), edited(model, {name: lambda x: x}):
                pass
            continue
        with edited(model, {name: lambda tensor: tensor.clone()}):
            assert torch.equal(model(TOKENS), plain.output), name
        with edited(model, {name: torch.zeros_like}):
            assert not torch.allclose(model(TOKENS), plain.output), name
    assert torch.equal(model(TOKENS), plain.output)
    with (
        pytest.raises(UserError, match=r"name 'blocks\.0\.attention\.head'"),
        edited(model, {"blocks.0.attention.head": torch.zeros_like}),
    ):
        pass


@torch.no_grad()
def test_removing_one_head_is_its_columns_of_the_projection_at_zero() -> None:
    model = gpt()

    def without(heads: Tensor) -> Tensor:
        heads = heads.clone()
        heads[:, 2] = 0
        return heads

    with edited(model, {"blocks.0.attention.heads": without}):
        removed = model(TOKENS)
    by_hand = copy.deepcopy(model)
    by_hand.blocks[0].mixer.output.weight[:, 16:24] = 0
    torch.testing.assert_close(removed, by_hand(TOKENS))


@torch.no_grad()
def test_a_persons_own_mixer(tmp_path: Path) -> None:
    mixer, _ = write_starter("mine", tmp_path)
    allow(mixer)
    model = gpt(str(mixer))
    recording = record(model, TOKENS)
    weights, values = recording["blocks.0.attention.weights"], recording["blocks.0.attention.values"]
    assert torch.equal(model(TOKENS), recording.output)
    torch.testing.assert_close(weights @ values, recording["blocks.0.attention.heads"], atol=1e-6, rtol=0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 17))


class OneHeadAfterTheOther(nn.Module):
    """As beginners write it: a loop over the heads, in other forms of the same product."""

    def __init__(self, product: str) -> None:
        super().__init__()
        self.product, self.heads = product, 4
        self.queries, self.keys, self.values = (nn.Linear(32, 32) for _ in "qkv")
        self.output = nn.Linear(32, 32)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: object = None) -> Tensor:
        outputs = []
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        parts = (part(x).chunk(4, -1) for part in (self.queries, self.keys, self.values))
        for q, k, v in zip(*parts, strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) / 8**0.5
            weights = torch.nn.functional.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
            weights = torch.nn.functional.dropout(weights, 0.1, self.training)
            outputs.append(torch.bmm(weights, v) if self.product == "bmm" else torch.einsum("bts,bsd->btd", weights, v))
        return self.output(torch.cat(outputs, -1))


@pytest.mark.parametrize("product", ["bmm", "einsum"])
@torch.no_grad()
def test_heads_computed_one_after_the_other(product: str) -> None:
    model = gpt()
    for block in model.blocks:
        block.mixer = OneHeadAfterTheOther(product).eval()
    recording = record(model, TOKENS)
    assert recording["blocks.0.attention.weights"].shape == (3, 4, 17, 17)
    product_of_both = recording["blocks.0.attention.weights"] @ recording["blocks.0.attention.values"]
    torch.testing.assert_close(product_of_both, recording["blocks.0.attention.heads"], atol=1e-6, rtol=0)


class TorchsOwn(nn.Module):
    """The shortest way to write a mixer."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, **options)  # type: ignore[arg-type]
        self.need_weights = False

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: object = None) -> Tensor:
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = x if self.attention.batch_first else x.transpose(0, 1)
        y = self.attention(x, x, x, attn_mask=future, need_weights=self.need_weights)[0]
        return y if self.attention.batch_first else y.transpose(0, 1)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{"batch_first": True}, {}, {"bias": False}])
@torch.no_grad()
def test_torchs_own_attention(options: dict[str, object], need_weights: bool) -> None:
    """In evaluation it runs a kernel of its own, which listening would replace by another with other bits."""
    model = gpt()
    for block in model.blocks:
        block.mixer = TorchsOwn(**options).eval()
        block.mixer.need_weights = need_weights
    recording = record(model, TOKENS)
    assert torch.equal(model(TOKENS), recording.output)
    attended = recording.attended["blocks.1.attention"]
    assert attended.queries is not None and attended.keys is not None and attended.bias is not None
    scores = attended.queries @ attended.keys.transpose(-1, -2) * attended.scale + attended.bias
    torch.testing.assert_close(scores.softmax(-1), attended.weights, atol=1e-6, rtol=0)
    merged = (attended.weights @ attended.values).transpose(1, 2).flatten(2)
    output = model.blocks[1].mixer.attention.out_proj(merged)
    torch.testing.assert_close(recording["blocks.1.attention.output"], output, atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_labs_bert() -> None:
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocabulary=50, layers=2, heads=4, width=32, inside=64, context=24)).eval()
    recording = record(model, input_ids=TOKENS)
    assert torch.equal(model(TOKENS).last_hidden_state, recording.output.last_hidden_state)
    product = recording["blocks.1.attention.weights"] @ recording["blocks.1.attention.values"]
    torch.testing.assert_close(product, recording["blocks.1.attention.heads"], atol=1e-6, rtol=0)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(UserError, match="Linear has no attention the lab knows"):
        anatomy(nn.Linear(3, 3))


def test_layers_and_heads_that_are_not_there() -> None:
    parts = anatomy(gpt())
    assert parts.head(1, 3).name == "blocks.1.attention"
    with pytest.raises(UserError, match="layer 2 is not there: the model has layers 0 to 1"):
        parts.layer(2)
    with pytest.raises(UserError, match=r"head 1.4 is not there: layer 1 has heads 0 to 3"):
        parts.head(1, 4)
