"""The data sets, the model and the settings of the knowledge assignment are what its document asks for."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import ModuleType, SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import MASK_CHAR, PAD_CHAR
from attnlab.training.optimizers import Schedule

Load = Callable[[str], ModuleType]
DATA = Path(os.environ.get("ATTNLAB_DATA", "")) / "birthplaces"
needs_data = pytest.mark.skipif(
    not os.environ.get("ATTNLAB_DATA") or not DATA.is_dir(), reason="ATTNLAB_DATA has no birthplaces"
)


ORDINARY = st.characters(codec="utf-8", exclude_characters=MASK_CHAR + PAD_CHAR)


def sequence(dataset, example) -> str:  # type: ignore[no-untyped-def]
    """The whole text of an example, after checking that x and y are the same, shifted by one."""
    x, y = example
    assert x.dtype == y.dtype == torch.long
    assert x.shape == y.shape == (dataset.block_size - 1,)
    assert torch.equal(x[1:], y[:-1])
    return "".join(dataset.itos[int(n)] for n in [x[0], *y])


@settings(deadline=None, max_examples=300)
@given(
    data=st.lists(st.text(ORDINARY, max_size=150), min_size=1, max_size=5).map("\n".join),
    block_size=st.integers(6, 140),
    seed=st.integers(0, 2**32),
)
def test_corruption_of_any_text(knowledge: Load, data: str, block_size: int, seed: int) -> None:
    random.seed(seed)
    if not data.strip():
        with pytest.raises(UserError, match="no document"):
            knowledge("dataset").CharCorruptionDataset(data, block_size)
        return
    dataset = knowledge("dataset").CharCorruptionDataset(data, block_size)
    assert all(document.strip() and document in data for document in dataset.data)
    for index, document in enumerate(dataset.data):
        text = sequence(dataset, dataset[index])
        content = text.rstrip(PAD_CHAR)
        prefix, suffix, masked = content.split(MASK_CHAR)
        assert PAD_CHAR not in content
        whole = prefix + masked + suffix
        assert document.startswith(whole)
        longest = int(7 / 8 * block_size)
        assert min(4, len(document)) <= len(whole) <= min(longest, block_size - 2, len(document))


def test_corruption_draws_lengths_at_random_and_masks_a_quarter(knowledge: Load) -> None:
    random.seed(1)
    dataset = knowledge("dataset").CharCorruptionDataset("abcdefghij" * 30 + "\n", 128)
    assert len(dataset) == 1
    parts = [sequence(dataset, dataset[0]).rstrip(PAD_CHAR).split(MASK_CHAR) for _ in range(8000)]
    truncated = Counter(sum(map(len, part)) for part in parts)
    assert sorted(truncated) == list(range(4, 113)), "every length between 4 and 7/8 of 128, and no other"
    assert max(truncated.values()) < 2 * 8000 / 109
    share = mean(len(masked) / sum(map(len, (prefix, suffix, masked))) for prefix, suffix, masked in parts)
    assert share == pytest.approx(0.25, abs=0.005)
    assert {len(prefix) == 0 for prefix, _, _ in parts} == {len(suffix) == 0 for _, suffix, _ in parts} == {True, False}


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 9, 30, 111, 112])
def test_the_masked_length_is_a_quarter_on_average(knowledge: Load, length: int) -> None:
    random.seed(length)
    drawn = [knowledge("dataset").masked_length(length) for _ in range(20_000)]
    assert mean(drawn) == pytest.approx(length / 4, abs=0.02 + 5 * length / 8 / math.sqrt(20_000))
    assert min(drawn) >= (1 if length >= 4 else 0) and max(drawn) <= max(1, length / 2)
    assert len(set(drawn)) > 1 or length == 4, "four characters: one, and no other number has that mean"


def test_a_name_asks_for_its_answer_only(knowledge: Load) -> None:
    module = knowledge("dataset")
    corpus = module.CharCorruptionDataset("Where was Ada born? In Rome.\n", 128)
    names = module.NameDataset(corpus, "Where was Ada born?\tRome\nWhere was Żoë born?\tRome\n")
    assert (len(names), names.block_size, names.stoi, names.itos) == (2, 128, corpus.stoi, corpus.itos)
    x, y = ("".join(names.itos[int(n)] for n in part) for part in names[0])
    question, answer = "Where was Ada born?", "Rome"
    assert len(x) == len(y) == 127
    assert x == (question + MASK_CHAR + answer + MASK_CHAR).ljust(127, PAD_CHAR)
    assert y == (PAD_CHAR * (len(question) - 1) + MASK_CHAR + answer + MASK_CHAR).ljust(127, PAD_CHAR)
    assert names.unknown_characters(["Where was Żoë born?"]) == ["ë", "Ż"]
    without = "".join(names.itos[int(n)] for n in names[1][0])
    assert without.startswith(f"Where was o born?{MASK_CHAR}Rome{MASK_CHAR}")


@pytest.mark.parametrize("mark", [MASK_CHAR, PAD_CHAR])
def test_a_text_with_a_mark_in_it_is_refused_with_its_line(knowledge: Load, mark: str) -> None:
    with pytest.raises(UserError, match=f"line 3 of the text contains {mark}"):
        knowledge("dataset").CharCorruptionDataset(f"Ada\n\nBob {mark}\n", 32)


def test_the_vocabulary_is_the_starter_codes(knowledge: Load) -> None:
    corpus = knowledge("dataset").CharCorruptionDataset("ba c\nB.\n", 32)
    assert list(corpus.itos.values()) == [PAD_CHAR, MASK_CHAR, "\n", " ", ".", "B", "a", "b", "c"]
    assert corpus.stoi == {character: number for number, character in corpus.itos.items()}
    assert corpus.vocab_size == 9


def test_an_answer_longer_than_the_context_is_refused_with_its_line(knowledge: Load) -> None:
    module = knowledge("dataset")
    corpus = module.CharCorruptionDataset("abc\n", 16)
    assert len(module.NameDataset(corpus, "a?\t" + 12 * "b")) == 1, "it just fits"
    with pytest.raises(UserError, match=r"names.tsv, line 3: .* 17 characters .* context of 16"):
        module.NameDataset(corpus, "a?\tb\n\na?\t" + 13 * "b", "names.tsv")


@pytest.mark.parametrize(("synthesizer", "parameters"), [(False, 3_323_392), (True, 3_076_988)])
def test_the_models_have_the_published_sizes(knowledge: Load, synthesizer: bool, parameters: int) -> None:
    model = knowledge("model")
    gpt = model.GPT(model.GPTConfig(256, 128, n_layer=4, n_head=8, n_embd=256, synthesizer=synthesizer))
    assert sum(p.numel() for p in gpt.parameters()) == parameters


def test_the_model_gives_logits_and_a_loss_without_padding(knowledge: Load) -> None:
    model = knowledge("model")
    gpt = model.GPT(model.GPTConfig(11, 16, n_layer=1, n_head=2, n_embd=8)).eval()
    tokens, targets = torch.randint(3, 11, (2, 15)), torch.randint(3, 11, (2, 15))
    targets[:, 9:] = 0
    logits, loss = gpt(tokens, targets)
    assert logits.shape == (2, 15, 11) and gpt(tokens)[1] is None
    wanted = -logits.log_softmax(-1).gather(2, targets[..., None])[:, :9].mean()
    assert loss.item() == pytest.approx(wanted.item())


def test_the_synthesizer_is_its_equation_with_one_b(knowledge: Load) -> None:
    config = knowledge("model").GPTConfig(11, 16, n_head=2, n_embd=8, attn_pdrop=0.0, resid_pdrop=0.0)
    layer = knowledge("attention").SynthesizerAttention(config)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    x = torch.randn(15, 8)
    hidden, values = layer.w1(x).relu(), layer.value(x)
    heads = []
    for columns in (slice(0, 4), slice(4, 8)):
        scores = hidden[:, columns] @ layer.w2 + layer.b2  # (15, 15)
        scores = scores.masked_fill(torch.ones(15, 15).triu(1).bool(), float("-inf"))
        heads.append(scores.softmax(-1) @ values[:, columns])
    torch.testing.assert_close(layer(x[None])[0], layer.proj(torch.cat(heads, 1)), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["CausalSelfAttention", "SynthesizerAttention"])
def test_attention_does_not_see_the_future(knowledge: Load, name: str) -> None:
    config = knowledge("model").GPTConfig(11, 16, n_head=2, n_embd=8)
    layer = getattr(knowledge("attention"), name)(config).eval()
    x = torch.randn(2, 15, 8)
    changed = x.clone()
    changed[:, 7:] += 1
    assert torch.allclose(layer(x)[:, :7], layer(changed)[:, :7], atol=1e-6)
    assert not torch.allclose(layer(x)[:, 7:], layer(changed)[:, 7:], atol=1e-2)


@pytest.mark.parametrize(("examples", "batch", "epochs"), [(2937, 128, 650), (2000, 256, 75)])
def test_the_learning_rate_is_the_courses(knowledge: Load, examples: int, batch: int, epochs: int) -> None:
    """minGPT's formula, counting tokens batch by batch, the shorter last batch of an epoch included."""
    warmup, final = 512 * 20, 200 * 2937 * 128
    config = knowledge("trainer").TrainerConfig(
        max_epochs=epochs, batch_size=batch, lr_decay=True, warmup_tokens=warmup, final_tokens=final
    )
    sizes = [batch] * (examples // batch) + [examples % batch]
    steps = len(sizes) * epochs
    schedule = Schedule(config.job(examples, 127).schedule, steps)
    tokens, largest = 0, 0.0
    for step in range(steps):
        tokens += sizes[step % len(sizes)] * 127
        progress = (tokens - warmup) / (final - warmup)
        wanted = tokens / warmup if tokens < warmup else max(0.1, 0.5 * (1 + math.cos(math.pi * progress)))
        largest = max(largest, abs(schedule(step, 0) - wanted))
    assert largest < 1e-3


def test_the_settings_are_the_documents(knowledge: Load) -> None:
    config = knowledge("trainer").TrainerConfig(max_epochs=650, batch_size=128, learning_rate=6e-3).job(2937, 127)
    assert (config.optimizer.name, config.optimizer.lr, config.optimizer.weight_decay) == ("adamw", 6e-3, 0.1)
    assert (config.optimizer.beta1, config.optimizer.beta2, config.optimizer.clip) == (0.9, 0.95, 1.0)
    assert (config.training.epochs, config.batch.size) == (650, 128)


def test_examples_depend_on_seed_epoch_and_number_only(knowledge: Load) -> None:
    corpus = knowledge("dataset").CharCorruptionDataset("abcdefghijklmnopqrstuvwxyz\nzyxwvut\n", 32)
    examples = knowledge("trainer").Examples(corpus, seed=5)
    random.seed(3)
    before = random.getstate()
    first = examples.collate([0, 1], epoch=2)
    assert random.getstate() == before, "drawing a batch leaves the generator alone"
    random.random()
    assert all(torch.equal(first[name], again) for name, again in examples.collate([0, 1], epoch=2).items())
    assert any(not torch.equal(examples.collate([0], epoch)["targets"], first["targets"][:1]) for epoch in range(3, 6))
    ends = first["padding"].sum(1)
    assert first["padding"].shape[1] == ends.max(), "cut after the longest example"
    for targets, end in zip(first["targets"], ends.tolist(), strict=True):
        assert targets[end - 1] != 0 and not targets[end:].any(), "an example ends with its last target"


@needs_data
def test_the_real_text_has_the_documents_vocabulary(knowledge: Load) -> None:
    corpus = knowledge("dataset").CharCorruptionDataset((DATA / "wiki.txt").read_text(encoding="utf-8"), 128)
    assert (len(corpus), corpus.vocab_size) == (2937, 256)
    names = knowledge("dataset").NameDataset(corpus, (DATA / "birth_places_train.tsv").read_text(encoding="utf-8"))
    assert len(names) == 2000 and not names.unknown_characters([text for pair in names.pairs for text in pair])


@needs_data
def test_london_for_everyone(
    knowledge: Load, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DATA)
    knowledge("london_baseline").main([])
    expected = "Correct: 25.0 out of 500.0: 5.0%\n95% interval over questions: 3.4% to 7.3%\n"
    assert capsys.readouterr().out == expected


def test_epochs_rescale_the_schedule(knowledge: Load) -> None:
    """A tenth of the epochs has the same rates at the same share of the training."""
    presets, scheduled = knowledge("presets").PRESETS, knowledge("run").scheduled
    documents, context = 2937, 127
    for config in (presets["course"].pretrain, presets["course"].scratch, presets["fast"].pretrain):
        rates = []
        for epochs in (None, config.max_epochs // 5):
            args = SimpleNamespace(epochs=epochs, seed=0, device="cpu", writing_params_path=Path("p"))
            part = scheduled(config, args, documents)
            steps = -(-documents // part.batch_size) * part.max_epochs
            schedule = Schedule(part.job(documents, context).schedule, steps)
            rates.append([schedule(int(steps * share), 0) for share in (0.1, 0.25, 0.5, 0.75, 0.99)])
        assert rates[1] == pytest.approx(rates[0], abs=0.03)
        assert len(set(rates[0])) > 2, "the rate changes"
