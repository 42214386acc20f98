"""The same weights in TransformerLens: the same attention, and scores that differ by the rows they are divided by.

`detect_head` with the error measure "mul" is the share of all attention that lies in the pattern, so it divides by all
T rows; the lab divides by the rows that have a key in the pattern.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from attnlab.interpret.heads import attention_weights, patterns, score_passages
from attnlab.interpret.passages import Passages
from attnlab.interpret.subject import Subject

transformer_lens = pytest.importorskip("transformer_lens")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow  # TransformerLens takes seconds to import
WORDS = 40
NAMES = {"previous": "previous_token_head", "duplicate": "duplicate_token_head", "induction": "induction_head"}


@pytest.fixture(scope="module")
def model() -> Any:
    """A GPT-2 with weights large enough for attention that is far from equal."""
    torch.manual_seed(0)
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": WORDS + 1}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=WORDS, eos_token_id=WORDS))
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


@pytest.fixture(scope="module")
def bridge(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformer_lens.model_bridge import TransformerBridge

    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(WORDS)} | {"<end>": WORDS}, unk_token="<end>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), "<end>")
    folder = tmp_path_factory.mktemp("tokenizer")  # it is read from there again
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **ends).save_pretrained(folder)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    return TransformerBridge.boot_transformers("gpt2", hf_model=copy.deepcopy(model), tokenizer=tokenizer, device="cpu")


def texts(repeats: bool) -> list[str]:
    """Random tokens written twice, or with some that occur several times and next to each other."""
    generator = torch.Generator().manual_seed(3)
    rows = [torch.randperm(WORDS, generator=generator)[:12].repeat(2) for _ in range(3)]
    if repeats:
        rows = [torch.randint(6, (24,), generator=generator) for _ in range(3)]
    return [" ".join(f"w{n}" for n in row.tolist()) for row in rows]


def passages_of(ids: torch.Tensor) -> Passages:
    none = torch.zeros_like(ids, dtype=torch.bool)
    return Passages("random tokens", ids, none, none, {"input_ids": ids})


@pytest.mark.parametrize("repeats", [False, True])
@torch.no_grad()
def test_attention_and_scores(model: Any, bridge: Any, repeats: bool) -> None:
    from transformer_lens.head_detector import detect_head

    subject = Subject("gpt2", model, reader=None, causal=True)  # type: ignore[arg-type]
    for text in texts(repeats):
        ids = bridge.to_tokens(text)
        passages = passages_of(ids)
        ours = attention_weights(subject, passages)
        _, cache = bridge.run_with_cache(ids, remove_batch_dim=True)
        for layer in range(2):
            torch.testing.assert_close(ours[layer][0], cache["pattern", layer, "attn"], atol=1e-5, rtol=0)
        counted = {kind: int(rows.sum()) for kind, _, rows in patterns(passages, causal=True)}
        scores = {scores.kind: scores for scores in score_passages(subject, passages)}
        for kind, name in NAMES.items():
            theirs = detect_head(bridge, text, name, error_measure="mul")  # (layers, heads)
            share = counted[kind] / ids.shape[1]
            for (layer, head), mean in scores[kind].heads.items():
                assert mean.mean * share == pytest.approx(float(theirs[layer, head]), abs=1e-5), (kind, layer, head)
            assert theirs.max() > 1.5 * theirs.min()  # the heads differ, so agreeing is no accident
