"""What the model of a run writes: where a sample begins, how much is read at once and where it ends, by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attnlab.evaluation.openings import ending, openings
from attnlab.models import sampling
from attnlab.models.loading import TrainedGPT
from attnlab.models.sampling import Sample


@dataclass(frozen=True)
class Drawing:
    """How tokens are drawn."""

    length: int = sampling.LENGTH
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        sampling.check_sampling(self.length, self.temperature, self.top_k, self.top_p)


@dataclass(frozen=True)
class Writing:
    """A model with its prompts, ready to write."""

    trained: TrainedGPT
    drawing: Drawing
    prompts: list[str]
    context: int
    """The most tokens that are read at once."""
    stop: int | None
    """The token that ends a sample."""

    @property
    def notes(self) -> list[str]:
        """What a reader should know, one sentence each."""
        notes = sampling.prompt_notes(self.trained.vocabulary, self.prompts[0], self.context)
        if self.drawing.temperature == 0.0 and len(set(self.prompts)) < len(self.prompts):
            notes.append("at temperature 0 all samples of a prompt are the same.")
        return notes

    @property
    def window(self) -> str:
        """How a text longer than the context is continued; empty if none is."""
        read = len(sampling.prompt_tokens(self.trained.vocabulary, self.prompts[0]))
        if read + self.drawing.length <= self.context:
            return ""
        return (
            f"the model reads at most {self.context} tokens at once: each time it has read so many, it continues from "
            f"the last {max(1, self.context // 2)}, with positions from 0."
        )

    def stream(self) -> Iterator[str]:
        """The first prompt, and what follows it, piece by piece."""
        trained, drawn = self.trained, self.drawing
        yield trained.vocabulary.decode(sampling.prompt_tokens(trained.vocabulary, self.prompts[0]))
        yield from sampling.stream(
            trained.model,
            trained.vocabulary,
            self.prompts[0],
            drawn.length,
            drawn.temperature,
            drawn.top_k,
            drawn.top_p,
            drawn.seed,
            context=self.context,
            stop=self.stop,
        )

    def samples(self) -> list[Sample]:
        """One per prompt."""
        trained, drawn = self.trained, self.drawing
        return sampling.sample(
            trained.model,
            trained.vocabulary,
            self.prompts,
            drawn.length,
            len(self.prompts),
            drawn.temperature,
            drawn.top_k,
            drawn.top_p,
            drawn.seed,
            context=self.context,
            stop=self.stop,
        )


def writing(
    trained: TrainedGPT,
    prompt: str = "",
    number: int = 1,
    drawing: Drawing | None = None,
    context: int | None = None,
    stop: str | None = None,
) -> Writing:
    """`stop` names a token, empty for none; without it, the one that ends the training texts, if they have one."""
    drawing = drawing or Drawing()
    window = sampling.window_of(trained.model, sampling.trained_context(trained) if context is None else context)
    end = ending(trained, prompt) if stop is None else sampling.one_token(trained.vocabulary, stop)
    drawn = [prompt] * number if trained.vocabulary.encode(prompt) else openings(trained, number, drawing.seed)
    return Writing(trained, drawing, drawn, window, end)
