"""The model of the knowledge assignment is its own code, equal to the lab's, and its commands need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.assignments.test_knowledge_commands import SMALL, fill, finetuned
from torch import Tensor, nn

from attnlab.attention import build_mixer
from attnlab.base.errors import UserError
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, GPTShape

Load = Callable[[str], ModuleType]
VARIANTS = {"vanilla": "vanilla", "synthesizer": "synthesizer-shared"}  # the document's name: the lab's
SHAPES = [(False, False), (False, True), (True, False)]  # synthesizer, rotary


def make(knowledge: Load, synthesizer: bool, rotary: bool, **more: float) -> nn.Module:
    config = knowledge("model").GPTConfig(
        19, 24, n_layer=2, n_head=2, n_embd=16, synthesizer=synthesizer, rotary=rotary, **more
    )
    torch.manual_seed(0)
    model: nn.Module = knowledge("model").GPT(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # every part has an influence
    return model


def lab_model(model: nn.Module) -> GPT:
    """The lab's GPT with the same weights."""
    config = model.config
    shape = GPTShape(
        config.vocab_size,
        config.n_layer,
        config.n_head,
        config.n_embd,
        config.block_size,
        attention=VARIANTS[config.variant],
        positions="rotary" if config.rotary else "learned",
        dropout=0.0,
    )
    lab = GPT(shape)
    weights: dict[str, Tensor] = {"tokens.weight": model.tok_emb.weight, "head.weight": model.head.weight}
    if model.pos_emb is not None:
        weights["positions.table"] = model.pos_emb
    weights |= {f"norm.{name}": value for name, value in model.ln_f.named_parameters()}
    for n, block in enumerate(model.blocks):
        parts = {"mixer_norm": block.ln1, "mlp_norm": block.ln2, "mlp.wide": block.mlp[0], "mlp.output": block.mlp[2]}
        parts["mixer.output"] = block.attn.proj
        if config.synthesizer:
            parts |= {"mixer.values": block.attn.value, "mixer.scores.a": block.attn.w1}
            weights |= {f"blocks.{n}.mixer.scores.b": block.attn.w2[None], f"blocks.{n}.mixer.scores.b2": block.attn.b2}
        else:
            joined = [block.attn.query, block.attn.key, block.attn.value]
            for name in ("weight", "bias"):
                weights[f"blocks.{n}.mixer.projections.qkv.{name}"] = torch.cat(
                    [getattr(part, name) for part in joined]
                )
        for name, part in parts.items():
            weights |= {f"blocks.{n}.{name}.{key}": value for key, value in part.named_parameters()}
    lab.load_state_dict(weights)
    return lab.eval()


@pytest.mark.parametrize(("synthesizer", "rotary"), SHAPES)
def test_logits_and_gradients_are_the_labs(knowledge: Load, synthesizer: bool, rotary: bool) -> None:
    model = make(knowledge, synthesizer, rotary).eval()
    lab = lab_model(model)
    tokens = torch.randint(1, 19, (3, 23))
    logits, loss = model(tokens, tokens.roll(-1, 1))
    expected = lab(tokens)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-4)
    nn.functional.cross_entropy(expected.flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
    loss.backward()
    torch.testing.assert_close(model.tok_emb.weight.grad, lab.tokens.weight.grad, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(model.blocks[0].mlp[0].weight.grad, lab.blocks[0].mlp.wide.weight.grad)


def test_vanilla_attention_is_torchs_own(knowledge: Load) -> None:
    config = knowledge("model").GPTConfig(19, 24, n_head=4, n_embd=16).without_dropout()
    layer = knowledge("attention").CausalSelfAttention(config)
    peer = nn.MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        peer.in_proj_weight.copy_(torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]))
        peer.in_proj_bias.copy_(torch.cat([layer.query.bias, layer.key.bias, layer.value.bias]))
        peer.out_proj.weight.copy_(layer.proj.weight)
        peer.out_proj.bias.copy_(layer.proj.bias)
    x = torch.randn(2, 23, 16)
    later = torch.ones(23, 23, dtype=torch.bool).triu(1)
    torch.testing.assert_close(layer(x), peer(x, x, x, attn_mask=later, need_weights=False)[0], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("synthesizer", "rotary"), SHAPES)
def test_answers_are_the_labs(knowledge: Load, synthesizer: bool, rotary: bool) -> None:
    """Prompts of different lengths, completed together, with rows leaving as they stop."""
    model = make(knowledge, synthesizer, rotary).eval()
    prompts = [torch.randint(2, 19, (length,), generator=torch.manual_seed(length)).tolist() for length in range(3, 15)]
    endless = knowledge("model").complete(model, prompts, 9, stop=99)
    stop = endless[4][3]  # stops at least one row early
    completed = knowledge("model").complete(model, prompts, 9, stop=stop)
    assert completed == [output.tokens for output in generate(lab_model(model), prompts, 9, stop=stop)]
    assert len(completed[4]) < 9 and all(row == full[: len(row)] for row, full in zip(completed, endless, strict=True))


def test_a_completion_ends_at_the_context(knowledge: Load) -> None:
    model = make(knowledge, False, False)
    assert [len(row) for row in knowledge("model").complete(model, [[3] * 20, [3] * 24], 9, stop=99)] == [4, 0]
    assert model.training, "left as it was"
    with pytest.raises(UserError, match="25 characters are more than this model's 24"):
        model(torch.ones(1, 25, dtype=torch.long))


def test_rotary_positions_need_queries(knowledge: Load) -> None:
    with pytest.raises(UserError, match="rotary"):
        make(knowledge, True, True)


def test_rotary_scores_depend_on_the_distance_alone(knowledge: Load) -> None:
    rows = knowledge("attention").rotated(torch.randn(8).expand(1, 1, 12, 8))  # one vector at twelve positions
    scores = (rows @ rows.transpose(-1, -2))[0, 0]
    for distance in range(12):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(scores[0], scores[0, :1], atol=1e-2)


def unwritten(*_: object, **__: object) -> Tensor:
    raise NotImplementedError


COMMANDS = {
    "pretrain": "pretrain VARIANT wiki.txt --writing_params_path new.params --epochs 1",
    "finetune": "finetune VARIANT wiki.txt --writing_params_path new.params "
    "--finetune_corpus_path birth_places_train.tsv --epochs 1",
    "evaluate": "evaluate VARIANT wiki.txt --reading_params_path model.params --eval_corpus_path birth_dev.tsv "
    "--outputs_path out",
}


@pytest.mark.parametrize(
    ("module", "name", "variant", "commands"),
    [
        ("attention", "CausalSelfAttention.forward", "vanilla", ("pretrain", "finetune", "evaluate")),
        ("attention", "SynthesizerAttention.forward", "synthesizer", ("pretrain", "finetune", "evaluate")),
        ("model", "GPT.forward", "vanilla", ("pretrain", "finetune")),
        ("model", "GPT.hidden", "vanilla", ("pretrain", "finetune", "evaluate")),
        ("model", "Block.forward", "vanilla", ("pretrain", "finetune", "evaluate")),
        ("dataset", "CharCorruptionDataset.__getitem__", "vanilla", ("pretrain",)),
        ("dataset", "NameDataset.__getitem__", "vanilla", ("finetune",)),
    ],
)
def test_without_its_code_a_command_fails(
    knowledge: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    variant: str,
    commands: tuple[str, ...],
) -> None:
    monkeypatch.chdir(fill(tmp_path))
    finetuned(knowledge, variant=variant)
    owner, method = name.split(".")
    monkeypatch.setattr(getattr(knowledge(module), owner), method, unwritten)
    for command in commands:
        words = COMMANDS[command].replace("VARIANT", variant).split()
        with pytest.raises(NotImplementedError):
            knowledge("run").main([*words, *SMALL])


@pytest.mark.parametrize("variant", ["vanilla", "synthesizer"])
def test_fifty_steps_without_padding_are_those_with_it(knowledge: Load, variant: str) -> None:
    """The course pads every example to the context; the same updates without that work, dropout off."""
    dataset, model, trainer = (knowledge(name) for name in ("dataset", "model", "trainer"))
    text = "".join(f"{c * 3}. {c * 3} was born in {chr(ord(c) + 1) * 4} on a {c}day .\n" for c in "abcdefghijklmno")
    corpus = dataset.CharCorruptionDataset(text, 48)
    config = trainer.TrainerConfig(max_epochs=13, batch_size=4, learning_rate=6e-3)

    def losses(padded: bool) -> list[float]:
        torch.manual_seed(1)
        shape = model.GPTConfig(corpus.vocab_size, 48, 2, 2, 32, synthesizer=variant == "synthesizer").without_dropout()
        gpt = model.GPT(shape)
        optimizer = torch.optim.AdamW(gpt.parameters(), lr=config.learning_rate, betas=config.betas)
        examples, objective, values = trainer.Examples(corpus, 0), trainer.NextCharacter(), []
        pieces = 1 if padded else replace(config, pieces=3).pieces
        batches = trainer.Batches(examples, trainer.BatchPlan(examples.lengths, 4, by_length=False), pieces=pieces)
        for (step, _), _ in zip(batches.stream(0, 0), range(50), strict=False):
            optimizer.zero_grad()
            if padded:
                x, y = (torch.stack(part) for part in zip(*padded_rows(examples, step[0], batches), strict=True))
                _, loss = gpt(x, y)
                loss.backward()
                values.append(loss.item())
            else:
                assert len(step) > 1
                total = sum(objective.weight(piece) for piece in step)
                parts = [objective(gpt, piece) * objective.weight(piece) / total for piece in step]
                for part in parts:
                    part.backward()
                values.append(sum(part.item() for part in parts))
            nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
            optimizer.step()
        return values

    def padded_rows(examples, batch, batches):  # type: ignore[no-untyped-def]
        """The rows of the batch as the dataset gives them, all of block_size − 1 characters."""
        rows = []
        for tokens, targets in zip(batch.inputs["tokens"], batch.inputs["targets"], strict=True):
            x, y = torch.zeros(2, 47, dtype=torch.long)
            x[: len(tokens)], y[: len(targets)] = tokens, targets
            rows.append((x, y))
        return rows

    with_padding, without = losses(padded=True), losses(padded=False)
    assert len(without) == 50 and without[-1] < 0.8 * without[0], "it learns"
    assert max(abs(a - b) for a, b in zip(with_padding, without, strict=True)) < 1e-5


def test_the_lab_has_the_same_variants() -> None:
    for name in VARIANTS.values():
        assert build_mixer(name, GPTShape(19, 2, 2, 16, 24).mixer())
