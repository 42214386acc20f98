"""Which weights each way of tuning trains, and that a tuned model computes what its definition says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.config.classify import METHODS
from attnlab.models.pretrained.classifier import Classifier, predict
from attnlab.models.pretrained.load import LoadedClassifier, load_classifier
from attnlab.models.pretrained.tuning import learning, tune

CLASSES = ("negative", "positive")
TEXTS = ["the films is good", "a very dull tale", "cold", "the play is very very very silly"]
Make = Callable[..., Path]


def inputs(loaded: LoadedClassifier, texts: list[str] = TEXTS) -> dict[str, Tensor]:
    found = loaded.tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    return dict(found)


def linear(folder: Path, pooling: str = "first") -> LoadedClassifier:
    return load_classifier(str(folder), CLASSES, pooling, "linear", dropout=0.0)


@pytest.mark.parametrize("width", [8, 16, 24])
def test_the_formulas_of_the_documents(tiny_model: Make, width: int) -> None:
    def count(method: str, **more: int) -> int:
        loaded = linear(tiny_model("bert", width, 3))
        tune(loaded.model, method, **more)  # type: ignore[arg-type]
        return learning(loaded.model)

    assert count("head") == 2 * width + 2
    assert count("prompt", length=128) == 130 * width + 2
    assert count("prefix", length=7) == 3 * 2 * 7 * width + 2 * width + 2
    block = 9 * width  # q, k, v, o, twice the width inside, out, two norms
    assert count("bitfit") == 3 * block + width + 2 * width + 2  # and the norm of the embeddings, and the head
    whole = linear(tiny_model("bert", width, 3)).model
    blocks = [sum(w.numel() for w in b.parameters()) for b in whole.body.encoder.layer]  # type: ignore[union-attr, operator]
    assert count("last", layers=2) == sum(blocks[1:]) + 2 * width + 2
    assert count("full") == sum(weight.numel() for weight in whole.parameters())


def steps(model: Any, given: dict[str, Tensor], count: int) -> None:
    """A few of Adam's, towards one class."""
    optimizer = torch.optim.Adam([w for w in model.parameters() if w.requires_grad], 0.01)
    for _ in range(count):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(**given), torch.tensor([0, 1, 1, 0])).backward()
        optimizer.step()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_frozen_stays_and_what_learns_moves(tiny_model: Make, method: str) -> None:
    loaded = linear(tiny_model("bert"), "pooler")
    model = loaded.model
    tune(model, method, length=3, rank=4, layers=1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    steps(model, inputs(loaded), 3)
    moved = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    wanted = {name for name, weight in model.named_parameters() if weight.requires_grad}
    idle = {name for name in wanted if name.endswith("key.bias")}  # adds the same to every score: softmax ignores it
    assert moved - idle == wanted - idle
    frozen = model.base_weights
    assert frozen.isdisjoint(wanted) and (method in ("full", "contrastive")) == (not frozen)


FAMILIES = ("bert", "distilbert", "roberta", "mpnet", "electra", "deberta-v2", "gpt2", "t5")
NO_PREFIX = ("mpnet", "deberta-v2", "gpt2")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["prompt", "prefix", "lora"])
def test_every_family_learns_and_passes_over_padding(tiny_model: Make, family: str, method: str) -> None:
    loaded = load_classifier(str(tiny_model(family)), CLASSES, dropout=0.0)
    if method == "prefix" and family in NO_PREFIX:
        with pytest.raises(UserError, match="--tune prefix"):
            tune(loaded.model, method, length=3)
        return
    tune(loaded.model, method, length=3, rank=2)
    steps(loaded.model, inputs(loaded), 2)
    model = loaded.model.eval()
    with torch.no_grad():
        alone = torch.cat([model(**inputs(loaded, [text])) for text in TEXTS])
        assert torch.allclose(model(**inputs(loaded)), alone, atol=1e-5)
    idle = [n for n, w in loaded.model.named_parameters() if w.requires_grad and (w.grad is None or not w.grad.any())]
    assert not idle


@pytest.mark.parametrize("method", ["prompt", "prefix", "lora", "last", "full"])
def test_a_model_that_answers_with_words_learns_too(tiny_model: Make, method: str) -> None:
    loaded = load_classifier(str(tiny_model("t5")), CLASSES, head="words")
    tune(loaded.model, method, length=3, rank=2, layers=1)
    given = inputs(loaded)
    before = loaded.model.eval()(**given).detach()
    steps(loaded.model.train(), given, 2)
    assert not torch.allclose(loaded.model.eval()(**given), before, atol=1e-4)
    if method == "last":
        names = {n for n, w in loaded.model.named_parameters() if w.requires_grad}
        assert names and all(".block.1." in name or "final_layer_norm" in name for name in names)
        assert {name.split(".")[1] for name in names} == {"encoder", "decoder"}
        assert sum("final_layer_norm" in name for name in names) == 2


def test_a_prefix_is_what_transformers_calls_past_keys_and_values(tiny_model: Make) -> None:
    loaded = linear(tiny_model("bert"))
    tune(loaded.model, "prefix", length=5)
    model = loaded.model.eval()
    assert isinstance(model, Classifier)
    prefixes = [m for m in model.modules() if type(m).__name__ == "Prefix"]
    with torch.no_grad():
        for prefix in prefixes:
            prefix.keys.normal_(), prefix.values.normal_()  # type: ignore[union-attr, operator]
    given = inputs(loaded)
    ids, mask = given["input_ids"], given["attention_mask"]
    batch, length = ids.shape
    past = transformers.DynamicCache()
    for layer, prefix in enumerate(prefixes):
        past.update(
            prefix.keys.detach().expand(batch, -1, -1, -1), prefix.values.detach().expand(batch, -1, -1, -1), layer
        )
    theirs = transformers.BertModel.from_pretrained(tiny_model("bert"), attn_implementation="eager").eval()
    seen = torch.cat([torch.ones(batch, 5), mask.float()], 1)[:, None, None, :].expand(-1, -1, length, -1)
    with torch.no_grad():
        expected = theirs(
            input_ids=ids,
            attention_mask=(1 - seen) * torch.finfo(torch.float32).min,
            position_ids=torch.arange(length)[None],
            past_key_values=past,
        ).last_hidden_state
        found = model.hidden(**given)
    real = mask.bool()
    assert len(prefixes) == 2 and torch.allclose(found[real], expected[real], atol=1e-5)
    plain = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
    assert not torch.allclose(found[real], plain[real], atol=1e-2)


def test_a_prompt_is_vectors_before_the_embedded_text(tiny_model: Make) -> None:
    loaded = linear(tiny_model("bert"))
    tune(loaded.model, "prompt", length=4)
    model = loaded.model.eval()
    assert isinstance(model, Classifier)
    given = inputs(loaded)
    prompt = model.body.prompt.detach()  # type: ignore[union-attr, operator]
    theirs = transformers.BertModel.from_pretrained(tiny_model("bert"), attn_implementation="eager").eval()
    with torch.no_grad():
        embedded = theirs.embeddings(input_ids=given["input_ids"])  # places 0, 1, ... as without a prompt
        whole = torch.cat([prompt.expand(len(embedded), -1, -1), embedded], 1)
        seen = torch.cat([torch.ones(len(embedded), 4), given["attention_mask"].float()], 1)
        added = ((1 - seen) * torch.finfo(torch.float32).min)[:, None, None, :]
        expected = theirs.encoder(whole, attention_mask=added).last_hidden_state[:, 4:]
        found = model.hidden(**given)
    real = given["attention_mask"].bool()
    assert torch.allclose(found[real], expected[real], atol=1e-5)


@pytest.mark.parametrize(
    ("family", "head", "method", "more", "sentence"),
    [
        ("t5", "auto", "bitfit", {}, "this model has no biases"),
        ("t5", "words", "head", {}, "answers with words has no head"),
        ("mpnet", "auto", "prefix", {}, "a mpnet model does not expose its keys"),
        ("bert", "auto", "last", {"layers": 99}, "the model has 2 layers, got 99"),
    ],
)
def test_what_cannot_be_tuned_is_one_sentence(
    tiny_model: Make, family: str, head: str, method: str, more: dict[str, Any], sentence: str
) -> None:
    loaded = load_classifier(str(tiny_model(family)), CLASSES, head=head)
    with pytest.raises(UserError, match=sentence) as caught:
        tune(loaded.model, method, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("classes", [("positive", "negative"), ("neg film", "neg book"), ("negs", "good very warm")])
def test_logits_of_words_are_the_likelihoods_transformers_computes(tiny_model: Make, classes: tuple[str, str]) -> None:
    """Of one piece, of several with a first one in common, and of several that differ from the first on."""
    folder = tiny_model("t5")
    loaded = load_classifier(str(folder), classes, head="words")
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(folder).eval()
    given = inputs(loaded)
    pieces = [loaded.tokenizer(name, return_tensors="pt")["input_ids"] for name in classes]
    first_decides = pieces[0][0, 0] != pieces[1][0, 0]
    likelihoods = []
    for word in pieces:
        answer = (word[:, :1] if first_decides else word).repeat(len(TEXTS), 1)
        with torch.no_grad():
            scores = theirs(**given, labels=answer).logits.log_softmax(-1)
        likelihoods.append(scores.gather(2, answer[:, :, None]).sum((1, 2)))
    with torch.no_grad():
        found = loaded.model.eval()(**given)
    assert torch.allclose(found.log_softmax(-1), torch.stack(likelihoods, 1).log_softmax(-1), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_nothing(tiny_model: Make, family: str) -> None:
    ways = {"bert": ("pooler", "first", "mean", "last"), "gpt2": ("mean", "last")}  # read from left to right, all
    for pooling in ways.get(family, ("first", "mean", "last")):  # first vectors are those of one special token
        loaded = linear(tiny_model(family), pooling)
        model = loaded.model.eval()
        with torch.no_grad():
            together = model(**inputs(loaded))
            alone = torch.cat([model(**inputs(loaded, [text])) for text in TEXTS])
        assert torch.allclose(together, alone, atol=1e-5), pooling
        assert together.std(0).max() > 1e-4


def test_texts_of_similar_length_share_a_batch_and_return_in_order(tiny_model: Make) -> None:
    from attnlab.data.encoded import text_examples
    from attnlab.data.tasks.labelled import LabelledText

    loaded = linear(tiny_model("bert"))
    texts = [" ".join(["good"] * (1 + n * 7 % 20)) for n in range(50)]
    encoded = text_examples([LabelledText(text, 0) for text in texts], loaded.tokenizer, 48)
    found = predict(loaded.model.train(), encoded, "cpu", batch=8)
    with torch.no_grad():
        expected = torch.cat([loaded.model.eval()(**inputs(loaded, [text])) for text in texts])
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_frozen_head_on_a_new_pooler_is_refused(tmp_path: Path, tiny_model: Make) -> None:
    """Its features would be those of weights drawn at random and saved nowhere."""
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny_model("bert"), tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    save_file(kept, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    loaded = linear(tmp_path / "model", "pooler")
    assert loaded.notes and isinstance(loaded.model, Classifier) and loaded.model.new_pooler
    with pytest.raises(UserError, match="a new one stays untrained"):
        tune(loaded.model, "head")
    tune(loaded.model, "prompt", length=1)
    pooler, head = "body.body.pooler.dense", "head.out"
    assert {n for n, w in loaded.model.named_parameters() if w.requires_grad} == {
        "body.prompt",
        f"{pooler}.weight",
        f"{pooler}.bias",
        f"{head}.weight",
        f"{head}.bias",
    }
