"""The numbers and the figure of unseen-names.md.

python docs/notebook/unseen_names.py gather NAME=RUN ...   scores of runs -> data/unseen-names.json
python docs/notebook/unseen_names.py                       data/unseen-names.json -> the figure, the table
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.attention.parts.weighting import Dropout
from attnlab.evaluation.answers import AskedModel
from attnlab.evaluation.sources import Sources, find_sources
from attnlab.evaluation.unseen_names import recombine_names
from attnlab.models.asking import ModelAnswer, prompt_of
from attnlab.models.generate import pad
from attnlab.models.loading import load_gpt
from attnlab.runs import read_config
from attnlab.stats.calibration import Area

HERE = Path(__file__).parent
DATA = HERE / "data" / "unseen-names.json"
UNSEEN = 200
AT_ONCE = 128
DRAWS, DROPOUT = 8, 0.1
WORDINGS = ("{} was born in", "{} is a native of", "{}, born in")


@dataclass(frozen=True)
class Asked:
    """A run's questions about known people, the same about recombined names, and its answers to all of them."""

    model: AskedModel
    sources: Sources
    hidden: bool
    """Pretraining hid phrases: a wording ends with MASK in their place and MASK before the answer."""
    names: list[str]
    known: int
    """The first so many names are known, the others were recombined."""
    expected: list[str]

    @cached_property
    def prompts(self) -> list[list[int]]:
        return [prompt_of(self.model.vocabulary, self.sources.template.question_about(name)) for name in self.names]

    @cached_property
    def answers(self) -> list[ModelAnswer]:
        return self.model.answers([self.sources.template.question_about(name) for name in self.names])

    @property
    def right(self) -> list[bool]:
        return [given.text == place for given, place in zip(self.answers, self.expected, strict=False)]

    def logs(self, prompts: Sequence[list[int]], ends: Sequence[list[int]]) -> list[list[float]]:
        """log P of each token of an end, after its prompt and the tokens before."""
        logs: list[list[float]] = []
        rows = [[*prompt, *end] for prompt, end in zip(prompts, ends, strict=True)]
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            tokens, real = pad(part)
            with torch.no_grad():
                values = self.model.model(tokens, real).log_softmax(-1)  # (B, T, V)
            for n, row in enumerate(part):
                start = len(row) - len(ends[first + n])
                logs.append([float(values[n, t - 1, row[t]]) for t in range(max(1, start), len(row))])
        return logs

    def encode(self, text: str) -> list[int]:
        return self.model.vocabulary.encode(text)

    def hidden_states(self, names: Sequence[str]) -> Tensor:
        """The vector (C,) from which the first token of the answer is predicted, for each name."""
        states: list[Tensor] = []
        kept: list[Tensor] = []
        hook = self.model.model.norm.register_forward_hook(lambda module, inputs, output: kept.append(output))
        prompts = [prompt_of(self.model.vocabulary, self.sources.template.question_about(name)) for name in names]
        for first in range(0, len(prompts), AT_ONCE):
            tokens, real = pad(prompts[first : first + AT_ONCE])
            with torch.no_grad():
                self.model.model(tokens, real)
            vectors = kept.pop()
            states.append(vectors[torch.arange(len(tokens)), real.sum(1) - 1])
        hook.remove()
        return torch.cat(states)


def answer_probability(asked: Asked) -> list[float]:
    return [given.confidence for given in asked.answers]


def under_dropout(asked: Asked) -> list[float]:
    """The mean probability of the answer when numbers inside the model are dropped."""
    layers = [module for module in asked.model.model.modules() if isinstance(module, Dropout)]
    before = [layer.p for layer in layers]
    ends = [[*asked.encode(given.text), asked.model.vocabulary.mask] for given in asked.answers]
    torch.manual_seed(0)
    for layer in layers:
        layer.p, layer.training = DROPOUT, True
    draws = torch.tensor([[sum(logs) for logs in asked.logs(asked.prompts, ends)] for _ in range(DRAWS)])
    for layer, p in zip(layers, before, strict=True):
        layer.p, layer.training = p, False
    return draws.exp().mean(0).tolist()


def under_paraphrase(asked: Asked) -> list[float]:
    """The mean log-probability of the answer after other wordings of the question."""
    mask = [asked.model.vocabulary.mask] * 2 if asked.hidden else []
    ends = [asked.encode(given.text) for given in asked.answers]
    of_wordings = []
    for wording in WORDINGS:
        prompts = [[*asked.encode(wording.format(name)), *mask] for name in asked.names]
        of_wordings.append([sum(logs) for logs in asked.logs(prompts, ends)])
    return torch.tensor(of_wordings).mean(0).tolist()


def nearest_trained(asked: Asked) -> list[float]:
    """The cosine of the vector before the answer with the nearest one of a training question."""
    normal = torch.nn.functional.normalize
    trained = normal(asked.hidden_states(list(asked.sources.trained_names)), dim=1)
    return (normal(asked.hidden_states(asked.names), dim=1) @ trained.T).amax(1).tolist()


def typical_vector(asked: Asked) -> list[float]:
    """Minus the Mahalanobis distance of that vector to those of the training questions."""
    trained = asked.hidden_states(list(asked.sources.trained_names))
    covariance = torch.cov(trained.T)
    ridge = 1e-3 * covariance.diagonal().mean() * torch.eye(len(covariance))
    apart = asked.hidden_states(asked.names) - trained.mean(0)
    return (-(apart @ torch.linalg.inv(covariance + ridge) * apart).sum(1)).tolist()


def name_logs(asked: Asked, before: str = "") -> list[list[float]]:
    """log P of the tokens of each name after the first, at the beginning of a document or after `before`."""
    rows = [asked.encode(name) for name in asked.names]
    starts = [[*asked.encode(before), row[0]] for row in rows]
    return asked.logs(starts, [row[1:] for row in rows])


def name_mean(asked: Asked) -> list[float]:
    return [sum(logs) / max(1, len(logs)) for logs in name_logs(asked)]


def name_sum(asked: Asked) -> list[float]:
    return [sum(logs) for logs in name_logs(asked)]


def name_last(asked: Asked) -> list[float]:
    return [logs[-1] if logs else 0.0 for logs in name_logs(asked)]


def name_in_question(asked: Asked) -> list[float]:
    before = asked.sources.template.before.strip()
    return [sum(logs) / max(1, len(logs)) for logs in name_logs(asked, before)]


SCORES: dict[str, Callable[[Asked], list[float]]] = {
    "probability of the answer": answer_probability,
    f"the same under dropout {DROPOUT}, mean of {DRAWS} draws": under_dropout,
    "log-probability of the answer in three other wordings": under_paraphrase,
    "nearness to the nearest training question": nearest_trained,
    "nearness to all training questions (Mahalanobis)": typical_vector,
    "log-probability of the name per token": name_mean,
    "log-probability of the whole name": name_sum,
    "log-probability of its last token": name_last,
    "the name per token, inside the question": name_in_question,
}


def measure(run: Path) -> dict[str, Any]:
    """Both areas of every score: known against recombined names, and right against wrong answers."""
    trained, sources = load_gpt(run), find_sources(run)
    split = "test" if sources.questions.get("test") else "dev"
    pairs = [(sources.template.name_in(question), place) for question, place in sources.questions[split]]
    known = [(name, place) for name, place in pairs if name is not None and sources.mentions(name)]
    new = recombine_names(list(sources.trained_names), UNSEEN, sources.mentions, seed=0)
    model = AskedModel(trained.model.eval(), trained.vocabulary)
    hidden = bool(read_config(run).get("objective", {}).get("hidden_only"))
    names = [*(name for name, _ in known), *new]
    asked = Asked(model, sources, hidden, names, len(known), [place for _, place in known])
    is_known = [n < len(known) for n in range(len(names))]
    scores = {}
    for label, score in SCORES.items():
        values = score(asked)
        scores[label] = {
            "known": asdict(Area.of(values, is_known)),
            "right": asdict(Area.of(values[: len(known)], asked.right)),
        }
    facts = {"split": split, "known": len(known), "unseen": len(new), "accuracy": sum(asked.right) / len(known)}
    return facts | {"scores": scores}


def load() -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
    return results


def table() -> Iterator[str]:
    """Area for known against recombined names by score and run, and for right against wrong answers."""
    runs = load()
    yield f"| score | {' | '.join(runs)} | right against wrong: {' | '.join(runs)} |"
    yield "| --- |" + " --- |" * (2 * len(runs))
    for label in SCORES:
        areas = [Area(**run["scores"][label]["known"]) for run in runs.values()]
        right = [f"{run['scores'][label]['right']['value']:.2f}" for run in runs.values()]
        yield f"| {label} | {' | '.join(map(str, areas))} | {' | '.join(right)} |"


def draw() -> None:
    from attnlab.report.figures import COLOURS, styled, subplots

    runs = load()
    labels = list(reversed(SCORES))
    with styled():
        figure, axes = subplots(figsize=(8.6, 4.6))
        for number, (name, run) in enumerate(runs.items()):
            areas = [run["scores"][label]["known"] for label in labels]
            places = [n + 0.22 * (1 - number) for n in range(len(labels))]
            spread = [[area["value"] - area["low"] for area in areas], [area["high"] - area["value"] for area in areas]]
            values = [area["value"] for area in areas]
            axes.errorbar(values, places, xerr=spread, fmt="o", markersize=4, color=COLOURS[number], label=name)
        axes.set_yticks(range(len(labels)), labels)
        axes.axvline(0.5, linestyle=":", color="#4a5568")
        axes.grid(axis="y", visible=False)
        axes.set(xlabel="area under the curve, known people against recombined names (dotted: chance)", xlim=(0, 1.02))
        axes.legend(fontsize=8, loc="upper left")
        figure.savefig(HERE / "figures" / "unseen-names.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    if sys.argv[1:2] == ["gather"]:
        labelled = {name: Path(run) for name, _, run in (word.partition("=") for word in sys.argv[2:])}
        DATA.write_text(json.dumps({name: measure(run) for name, run in labelled.items()}, indent=1) + "\n")
    draw()
    print("\n".join(table()))
