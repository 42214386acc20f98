"""The loss on pairs: equal to that of sentence-transformers on the same pairs and weights, step after step."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
import torch
from tests.tiny_models import tiny_model

from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.encoded import text_examples
from attnlab.data.same_class import SameClassPairs
from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.pretrained.load import load_classifier
from attnlab.training.contrastive import Contrastive, pair_loss

TEXTS = [
    LabelledText(f"{word} {kind}", label)
    for label, kind in enumerate(("good film", "bad film", "film about a place"))
    for word in ("the", "a very", "one", "this")
]


def test_all_pairs_count_half_of_the_weight_for_each_kind() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    labels = torch.tensor([0, 0, 1])
    # Same class: cos 0 where 1 is wanted. Others: cos 45° twice, where 0 is wanted.
    assert float(pair_loss(vectors, labels)) == pytest.approx((1.0 + 0.5) / 2)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_a_batch_with_one_kind_of_pairs_has_their_mean(labels: list[int]) -> None:
    vectors = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    cosines = torch.nn.functional.cosine_similarity(vectors[[0, 0, 1]], vectors[[1, 2, 2]])
    wanted = 1.0 if labels[1] == 0 else 0.0
    assert float(pair_loss(vectors, torch.tensor(labels))) == pytest.approx(float((cosines - wanted).square().mean()))


def test_partners_are_of_the_same_class_drawn_anew_and_repeatable() -> None:
    encoded = text_examples(TEXTS, _Tokens(), 16)
    pairs = SameClassPairs(encoded, seed=3)
    drawn = [[pairs.partner(index, epoch) for index in range(len(TEXTS))] for epoch in range(30)]
    for partners in drawn:
        for index, partner in enumerate(partners):
            assert partner != index and TEXTS[partner].label == TEXTS[index].label
    assert {partners[0] for partners in drawn} == {1, 2, 3}
    assert drawn == [
        [SameClassPairs(encoded, 3).partner(index, epoch) for index in range(len(TEXTS))] for epoch in range(30)
    ]
    alone = SameClassPairs(text_examples([*TEXTS, LabelledText("one", 3)], _Tokens(), 16), seed=3)
    assert alone.partner(len(TEXTS), 0) == len(TEXTS)


def test_losses_of_ten_steps_equal_those_of_sentence_transformers(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = tiny_model(tmp_path / "tiny", **no_dropout)
    loaded = load_classifier(str(folder), ["a", "b", "c"], pooling="mean")
    body = Transformer(str(folder))
    peer = sentence_transformers.SentenceTransformer(
        modules=[body, Pooling(body.get_embedding_dimension(), pooling_mode="mean")], device="cpu"
    )
    peer_loss = CosineSimilarityLoss(peer)
    data = SameClassPairs(text_examples(TEXTS, loaded.tokenizer, 16), seed=0)
    stream = Batches(data, BatchPlan(data.lengths, 4, by_length=False)).stream(0, 0)
    ours = torch.optim.AdamW(loaded.model.body.parameters(), 1e-2)
    theirs = torch.optim.AdamW(peer.parameters(), 1e-2)
    losses = []
    for _ in range(10):
        [batch] = next(stream)[0]
        loss, peers = Contrastive()(loaded.model, batch), peer_loss(*_all_pairs(batch.indices, data, batch.inputs))
        losses.append(loss.item())
        assert losses[-1] == pytest.approx(peers.item(), abs=1e-4)
        for optimizer, value in ((ours, loss), (theirs, peers)):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    assert losses[-1] < losses[0] - 0.05


def _all_pairs(
    indices: tuple[int, ...], data: SameClassPairs, inputs: dict[str, torch.Tensor]
) -> tuple[list[dict[str, torch.Tensor]], torch.Tensor]:
    """Every pair of a batch written out, each kind as often as makes both weigh the same."""
    labels = inputs["labels"].tolist()
    kinds: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for first, second in combinations(range(len(labels)), 2):
        kinds[labels[first] == labels[second]].append((first, second))
    same, other = kinds[True], kinds[False]
    pairs = same * max(1, len(other)) + other * max(1, len(same))
    sides = [
        {name: inputs[name][[pair[side] for pair in pairs]] for name in ("input_ids", "attention_mask")}
        for side in (0, 1)
    ]
    return sides, torch.tensor([float(labels[first] == labels[second]) for first, second in pairs])


class _Tokens:
    """A tokenizer that reads words as their lengths."""

    model_input_names = ("input_ids",)
    pad_token_id = 0

    def __call__(self, texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        rows = [[len(word) for word in text.split()] for text in texts]
        return {"input_ids": rows, "token_type_ids": [[0] * len(row) for row in rows]}
