"""Causal tracing: restoring everything is the clean run, nothing the corrupted one, and a known place is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.data.question_template import QuestionTemplate
from attnlab.data.questions import Questions
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.interpret.asked_people import AskedRun, by_length, find_people
from attnlab.interpret.lens import lens, lens_questions, lens_text, shown_token
from attnlab.interpret.recorder import record
from attnlab.interpret.tracing import EMBEDDINGS, TraceOptions, logits_after, trace
from attnlab.models.gpt import GPT, GPTShape

FIRST, LAST = ("Ana", "Bo", "Cyd", "Dov"), ("Hill", "Ek", "Roe", "Low")
PLACES = ("Rome", "Oslo", "Lima", "Bern")
NAMES = [f"{first} {last}" for first in FIRST for last in LAST]
BORN = dict(zip(LAST, PLACES, strict=True))
QUESTIONS = [f"Where was {name} born?" for name in NAMES]
ANSWERS = [BORN[name.split()[-1]] for name in NAMES]
VOCABULARY = Vocabulary.build([*QUESTIONS, *PLACES], level="words")


def asked(model: GPT, questions: Sequence[str] = QUESTIONS, answers: Sequence[str] = ANSWERS) -> AskedRun:
    template = QuestionTemplate.of(QUESTIONS)
    listed = Questions(list(questions), list(answers), list(range(1, len(questions) + 1)))
    people = find_people(VOCABULARY, listed, template, "questions", [])
    return AskedRun("GPT", model, VOCABULARY, people, "questions")


def random_gpt(**changes: object) -> GPT:
    torch.manual_seed(0)
    shape = GPTShape(len(VOCABULARY), layers=3, heads=2, width=24, context=16, **changes)  # type: ignore[arg-type]
    model = GPT(shape)
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


class LookUp(nn.Module):
    """The last name of a person, as a vector that has the place: what an MLP does with a fact."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(64, 64, bias=False)
        weight = torch.zeros(64, 64)
        for last, place in BORN.items():
            weight[32 + VOCABULARY.encode(place)[0], VOCABULARY.encode(last)[0]] = 1.0
        self.table.weight.data = weight

    def forward(self, x: Tensor) -> Tensor:
        return self.table(x)


class CopyPlace(nn.Module):
    """MASK takes the place (the second half of a vector) from the last token of the name."""

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: object = None) -> Tensor:
        y = torch.zeros_like(x)
        y[:, 6, 32:] = x[:, 3, 32:]
        return y


class Nothing(nn.Module):
    def forward(self, x: Tensor, padding: Tensor | None = None, cache: object = None) -> Tensor:
        return torch.zeros_like(x)


def known_gpt() -> GPT:
    """The fact is looked up at the last name by the MLP of block 0, and moved to MASK by the mixer of block 1."""
    assert len(VOCABULARY) <= 32
    model = GPT(GPTShape(len(VOCABULARY), layers=2, heads=1, width=64, context=16, positions="none"))
    model.norm = nn.Identity()
    for block in model.blocks:
        block.mixer_norm, block.mlp_norm = nn.Identity(), nn.Identity()
        block.mixer, block.mlp = Nothing(), Nothing()
    model.blocks[0].mlp, model.blocks[1].mixer = LookUp(), CopyPlace()
    model.tokens.weight.data = torch.eye(len(VOCABULARY), 64)
    model.head.weight.data = torch.zeros(len(VOCABULARY), 64)
    model.head.weight.data[:, 32:] = 8 * torch.eye(len(VOCABULARY), 32)
    return model.eval()


def test_positions_are_parts_of_the_question() -> None:
    questions = ["Where was Ana Maria Hill born?", "Where was Bo born?"]
    people = asked(random_gpt(), questions, ["Rome", "Oslo"]).people
    assert [person.name for person in people] == ["Ana Maria Hill", "Bo"]
    assert people[0].parts() == [0, 0, 1, 2, 3, 4, 4, 5]  # before, first, middle, last, after, MASK
    assert people[1].parts() == [0, 0, 3, 4, 4, 5]


def test_characters_too() -> None:
    vocabulary = Vocabulary.build([*QUESTIONS, *PLACES])
    (person,) = find_people(
        vocabulary, Questions(["Where was Bo Ek born?"], ["Oslo"], [1]), QuestionTemplate.of(QUESTIONS), "q", []
    )
    assert "".join(vocabulary.tokens[id_] for id_ in person.tokens[person.start : person.end]) == "Bo Ek"
    assert person.target == vocabulary.encode("O")[0]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_restoring_everything_is_clean_and_nothing_is_corrupted(positions: str) -> None:
    model = random_gpt(positions=positions)
    (batch,) = by_length(asked(model).people, 10_000)
    tokens, T = batch.tokens, batch.tokens.shape[1]
    with torch.no_grad():
        flow = record(model, tokens)
        clean = model(tokens)[:, -1]
    noise = torch.randn(flow["blocks.0.input"].shape, generator=torch.Generator().manual_seed(1))
    start = torch.where(batch.in_name[..., None], flow["blocks.0.input"] + noise, flow["blocks.0.input"])
    x = start
    with torch.no_grad():
        for block in model.blocks:
            x = block(x, None, None)
        corrupted = model.head(model.norm(x[:, -1]))
    all_, none = torch.ones(len(tokens), T, dtype=torch.bool), torch.zeros(len(tokens), T, dtype=torch.bool)
    assert torch.equal(logits_after(model, flow["blocks.0.input"]), clean)
    assert torch.equal(logits_after(model, start), corrupted)
    streams: list[Tensor] = []
    logits_after(model, start, seen=streams)
    for n in range(3):
        for name in (f"blocks.{n}.input", f"blocks.{n}.output"):
            restored = logits_after(model, streams[n], n, {name: (all_, flow[name])})
            assert torch.equal(restored, clean), name
            assert torch.equal(logits_after(model, streams[n], n, {name: (none, flow[name])}), corrupted), name
    assert (clean - corrupted).abs().max() > 0.01
    outputs = [f"blocks.{n}.{part}.output" for n in range(3) for part in ("attention", "mlp")]
    parts = {name: (all_, flow[name]) for name in outputs}  # their sum is the stream at MASK
    torch.testing.assert_close(logits_after(model, start, 0, parts), clean, atol=1e-5, rtol=0)


@pytest.mark.parametrize("measure", ["probability", "logit"])
def test_the_trace_equals_one_restoration_after_the_other(measure: str) -> None:
    """By hand: one person, one layer, one position at a time, with the noise of the same generator."""
    model = random_gpt()
    run = asked(model, QUESTIONS[:5], ANSWERS[:5])
    options = TraceOptions(draws=2, sites=("stream", "mlp"), measure=measure, seed=4)
    result = trace(run, options)
    names = torch.tensor([person.tokens[2:4] for person in run.people])
    deviation = 3.0 * float(model.tokens(names).detach().std())
    generator = torch.Generator().manual_seed(4)
    tokens = torch.tensor([person.tokens for person in run.people])
    with torch.no_grad():
        flow = record(model, tokens)
    inside = torch.zeros(5, 7, 1, dtype=torch.bool)
    inside[:, 2:4] = True

    def score(x: Tensor, layer: int, person: int) -> float:
        with torch.no_grad():
            for block in model.blocks[layer + 1 :]:
                x = block(x, None, None)
            p = model.head(model.norm(x))[0, -1].softmax(-1)[run.people[person].target]
        return float(p if measure == "probability" else (p / (1 - p)).log())

    expected = torch.zeros(5)
    for _ in range(2):
        noise = torch.randn(flow["blocks.0.input"].shape, generator=generator) * deviation
        start = torch.where(inside, flow["blocks.0.input"] + noise, flow["blocks.0.input"])
        for person in range(5):
            x = start[person : person + 1]
            base = score(x, -1, person)
            with torch.no_grad():
                x = model.blocks[0](x, None, None).clone()
            x[0, 3] = flow["blocks.0.output"][person, 3]  # the last token of the name, after block 0
            expected[person] += (score(x, 0, person) - base) / 2
    cell = result.cell("stream", 0, "last of name")
    torch.testing.assert_close(torch.tensor(cell.effect.values), expected, atol=1e-5, rtol=1e-4)
    nothing = result.cell("stream", 2, "last of name")  # after the last block only MASK matters
    assert max(map(abs, nothing.effect.values)) < 1e-5
    regained = result.cell("stream", 2, "MASK").effect.mean
    assert regained == pytest.approx(result.clean.mean - result.corrupted.mean, abs=1e-5)


def test_a_fact_whose_place_is_known_is_found() -> None:
    result = trace(asked(known_gpt()), TraceOptions(corruption="exchange", draws=3))
    assert result.right == result.asked == 16
    whole = result.clean.mean - result.corrupted.mean
    assert whole > 0.9
    carries = {
        ("stream", EMBEDDINGS, "last of name"),
        ("stream", 0, "last of name"),
        ("stream", 1, "MASK"),
        ("attention", 1, "MASK"),
        ("mlp", 0, "last of name"),
    }
    for cell in result.cells:
        at = (cell.site, cell.layer, cell.part)
        assert cell.effect.mean == pytest.approx(whole if at in carries else 0.0, abs=1e-6), at
    noisy = trace(asked(known_gpt()), TraceOptions(noise=20, draws=3))
    assert noisy.largest("mlp").part == "last of name" and noisy.largest("attention").layer == 1
    assert noisy.cell("stream", 0, "last of name").effect.mean > 0.95 * (noisy.clean.mean - noisy.corrupted.mean)


def test_the_lens_finds_it_too() -> None:
    result = lens_questions(asked(known_gpt()))
    assert result.readable() == [("last of name", 0), ("MASK", 1)]
    assert result.cell(0, "last of name").first.share == 1.0 and result.cell(0, "MASK").probability.mean < 0.1
    assert (result.answers, result.chance) == (4, 0.25)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_the_last_layer_of_the_lens_is_the_output(norm: str) -> None:
    model = random_gpt(norm=norm)
    tokens = torch.tensor([person.tokens for person in asked(model).people])
    logits, output = lens(model, tokens)
    assert logits.shape == (4, 16, 7, len(VOCABULARY))
    with torch.no_grad():
        assert torch.equal(logits[-1], model(tokens)) and torch.equal(output, model(tokens))
        one = model.head(
            model.norm(model.blocks[0](model.positions(model.tokens(tokens), torch.arange(7)), None, None))
        )
    torch.testing.assert_close(logits[1], one)


def test_the_lens_on_a_text_has_probability_and_rank_of_what_follows() -> None:
    model = random_gpt()
    words = lens_text(model, VOCABULARY, QUESTIONS[0], answer="Rome", questions=True)
    ids = torch.tensor([[*VOCABULARY.encode(QUESTIONS[0]), VOCABULARY.mask]])
    with torch.no_grad():
        p = model(ids)[0].softmax(-1)
    for position, truth in enumerate([*ids[0, 1:].tolist(), VOCABULARY.encode("Rome")[0]]):
        view = words.view(2, position)
        assert view.truth == VOCABULARY.tokens[truth]
        assert view.probability == pytest.approx(float(p[position, truth]), abs=1e-6)
        assert view.rank == sorted(p[position].tolist(), reverse=True).index(float(p[position, truth])) + 1
        assert view.best == VOCABULARY.tokens[int(p[position].argmax())]
    assert lens_text(model, VOCABULARY, "Where was Ana").view(0, 2).rank is None


def test_tokens_are_shown_without_control_characters() -> None:
    shown = [shown_token(token) for token in ("Rome", "⁇", " ", "\n", "\x1b", "[red]")]
    assert shown == ["Rome", "MASK", "␣", "↵", "\\x1b", "[red]"]


def test_windows_restore_several_layers() -> None:
    model = random_gpt()
    run = asked(model)
    wide = trace(run, TraceOptions(draws=1, sites=("attention", "mlp"), window=7))
    one = trace(run, TraceOptions(draws=1, sites=("attention", "mlp")))
    for part in ("last of name", "MASK"):
        cells = [wide.cell("attention", layer, part).effect.mean for layer in range(3)]
        assert cells[0] == pytest.approx(cells[1]) == pytest.approx(cells[2])  # all three layers each time
    assert one.cell("mlp", 0, "MASK").effect.mean != pytest.approx(wide.cell("mlp", 0, "MASK").effect.mean)


def test_its_own_answer_can_be_traced() -> None:
    result = trace(asked(random_gpt()), TraceOptions(draws=1, sites=("stream",), target="own"))
    assert result.clean.mean > trace(asked(random_gpt()), TraceOptions(draws=1, sites=("stream",))).clean.mean


def test_mistakes_are_one_sentence() -> None:
    model = known_gpt()
    with pytest.raises(UserError, match="names no one: 'Who was Ana Hill\\?'"):
        asked(model, ["Who was Ana Hill?"], ["Rome"])
    with pytest.raises(UserError, match="no question whose answer is in the model's vocabulary"):
        asked(model, QUESTIONS[:1], ["Paris"])
    with pytest.raises(UserError, match="no two names"):
        trace(asked(model, QUESTIONS[:1], ANSWERS[:1]), TraceOptions(corruption="exchange"))
    with pytest.raises(UserError, match="answers none of the 1 questions right"):
        trace(asked(model, QUESTIONS[:1], ["Oslo"]), TraceOptions(only_right=True))
    for wrong in ({"corruption": "blur"}, {"measure": "loss"}, {"target": "best"}, {"sites": ("heads",)}, {"draws": 0}):
        with pytest.raises(UserError):
            TraceOptions(**wrong)  # type: ignore[arg-type]
