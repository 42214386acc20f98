"""`Run`: a run folder as an object. It holds nothing that the folder does not: two objects of one folder are alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from attnlab.api import interpret
from attnlab.api.arguments import checked
from attnlab.api.evaluate import Evaluation, evaluate
from attnlab.api.own import hand_in_again
from attnlab.api.processes import run_command
from attnlab.api.table import Table, shown
from attnlab.base import console, html
from attnlab.base.console import clock
from attnlab.base.errors import UserError
from attnlab.config.sections import machine_of
from attnlab.jobs.registry import KINDS, kind_of_run, must_be_resumable, saved_config
from attnlab.runs.folder import read_config, read_record, read_status
from attnlab.runs.metrics import read_metrics, series

if TYPE_CHECKING:
    from torch import nn

    from attnlab.api.gpt import Attention
    from attnlab.api.handed import Examples
    from attnlab.evaluation.writing import Writing
    from attnlab.interpret.ablation import Ablation
    from attnlab.interpret.heads import HeadReport
    from attnlab.interpret.lens import QuestionLens, TextLens
    from attnlab.interpret.maps import AttentionMaps
    from attnlab.interpret.tracing import Trace
    from attnlab.jobs.job import TrainedModel
    from attnlab.models.asking import ModelAnswer
    from attnlab.models.loading import TrainedGPT
    from attnlab.models.sampling import Sample

    Source = str | os.PathLike[str]


class Run:
    """One run. `path` is its folder; everything else is read from there when it is asked for."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        read_record(self.path)  # raises for a folder that is not a run

    @property
    def kind(self) -> str:
        """language, pretrain, finetune, knowledge or classify."""
        return str(read_record(self.path)["kind"])

    @property
    def state(self) -> str:
        """queued, running, finished, failed or interrupted."""
        return str(read_status(self.path)["state"])

    @property
    def config(self) -> dict[str, Any]:
        """Every setting, as plain values."""
        return read_config(self.path)

    @property
    def results(self) -> dict[str, Any]:
        """What was measured at the end; empty before."""
        return dict(read_record(self.path).get("results", {}))

    @property
    def metrics(self) -> Table:
        """What was measured along the way, oldest first."""
        return Table(read_metrics(self.path / "metrics.jsonl"))

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.path / "report.html"

    @property
    def model(self) -> nn.Module:
        """The trained model with its best weights, in evaluation mode."""
        return self.trained.model.eval()

    @cached_property
    def trained(self) -> TrainedModel:
        """The model together with its vocabulary or tokenizer; read once."""
        if self.kind not in KINDS:
            raise UserError(f"{self.path} is a {self.kind} run: it has no model of its own.")
        return KINDS[self.kind].job().load(self.path)

    def sample(self, prompt: str = "", length: int = 200, **drawing: Any) -> str:
        """The prompt and what the model writes after it; without one, from the beginning of a training text.

        As `attnlab sample`: `temperature`, `top_k`, `top_p`, `seed`; `context` and `stop`.
        """
        (written,) = self.samples(prompt, 1, length, **drawing)
        return written.prompt + written.text

    def samples(self, prompt: str = "", number: int = 1, length: int = 200, **drawing: Any) -> list[Sample]:
        """Several samples, each with its prompt, text, tokens and their log-probabilities."""
        ready = self._writing(prompt, number, length, **drawing)
        with console.working("sampling ..."):
            return ready.samples()

    def stream(self, prompt: str = "", length: int = 200, **drawing: Any) -> Iterator[str]:
        """The same text as `sample`, piece by piece while it is written: the prompt first."""
        return self._writing(prompt, 1, length, **drawing).stream()

    @checked
    def _writing(
        self,
        prompt: str,
        number: int,
        length: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        context: int | None = None,
        stop: str | None = None,
    ) -> Writing:
        from attnlab.evaluation.writing import Drawing, writing

        ready = writing(self._gpt(), prompt, number, Drawing(length, temperature, top_k, top_p, seed), context, stop)
        for note in ready.notes:
            console.warn(note)
        if ready.window:
            console.say(ready.window)
        return ready

    @overload
    def ask(self, question: str) -> ModelAnswer: ...

    @overload
    def ask(self, question: list[str]) -> list[ModelAnswer]: ...

    def ask(self, question: str | list[str]) -> ModelAnswer | list[ModelAnswer]:
        """The answer (`text`) of a run that was fine-tuned on questions, with its `confidence`; or one per question."""
        from attnlab.models.asking import answer, check_length

        if self.kind not in ("finetune", "knowledge"):
            raise UserError(f"{self.path} is a {self.kind} run: it was not trained to answer questions.")
        gpt = self._gpt()
        questions = [question] if isinstance(question, str) else list(question)
        if not all(isinstance(each, str) for each in questions):
            raise UserError("the question: expected a text or a list of texts.")
        for number, text in enumerate(questions, 1):
            check_length(text, gpt.vocabulary, gpt.model.shape.context, f"question {number}")
        answers = answer(gpt.model, gpt.vocabulary, questions)
        return answers[0] if isinstance(question, str) else answers

    def evaluate(self, file: Examples | None = None, **settings: Any) -> Evaluation:
        """The run measured on questions, a text or labelled texts, by its kind: `lab.evaluate`."""
        return evaluate(self.path, file, **settings)

    def inspect(self, text: str, second: str | None = None, **options: Any) -> AttentionMaps:
        """Attention of every layer and head on a text: `lab.inspect`."""
        return interpret.inspect(self.path, text, second, **options)

    def heads(self, text: str | None = None, **options: Any) -> HeadReport:
        """Which heads look at the previous token, copy, and so on: `lab.heads`."""
        return interpret.heads(self.path, text, **options)

    def ablate(self, data: Examples | None = None, **options: Any) -> Ablation:
        """What changes when a head, a mixer or an MLP is removed: `lab.ablate`."""
        return interpret.ablate(self.path, data, **options)

    def trace(self, questions: Examples | None = None, **options: Any) -> Trace:
        """Where in the model a name becomes the answer: `lab.trace`."""
        return interpret.trace(self.path, questions, **options)

    def lens(self, text: str | None = None, **options: Any) -> TextLens | QuestionLens:
        """What the model would say if it stopped after each layer: `lab.lens`."""
        return interpret.lens(self.path, text, **options)

    def _gpt(self) -> TrainedGPT:
        from attnlab.models.loading import TrainedGPT, load_gpt

        if not isinstance(self.__dict__.get("trained"), TrainedGPT):
            self.__dict__["trained"] = load_gpt(self.path)  # raises for another kind of model: says which
        return self.__dict__["trained"]

    def resume(self) -> Run:
        """Continue an interrupted or failed run, exactly from its last checkpoint."""
        from attnlab.jobs.job import RunOptions

        kind = kind_of_run(self.path)
        must_be_resumable(self.path)
        config = saved_config(self.path)
        if machine_of(config).processes > 1:
            run_command(["resume", str(self.path)], machine_of(config), self.path)
        else:
            kind.job()(config).run(RunOptions(self.path, resume=True))
        self.__dict__.pop("trained", None)
        return self

    def __fspath__(self) -> str:
        """A run is taken wherever its folder is."""
        return str(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.kind}, {self.state})"

    def _repr_html_(self) -> str:
        record, status = read_record(self.path), read_status(self.path)
        training = record.get("training", {})
        facts = {
            "state": f"{status['state']}{': ' + status['reason'] if status.get('reason') else ''}",
            "steps": f"{training.get('step', 0):,} of {record.get('steps', 0):,}",
            "time": clock(training.get("seconds", 0.0)),
            "parameters": f"{record.get('parameters', 0):,}",
            **{name.replace("_", " "): shown(value) for name, value in record.get("results", {}).items()},
        }
        rows = html.table([self.kind, str(self.path)], list(facts.items()))
        notes = "".join(html.paragraph(change) for change in record.get("changes", []))
        return rows + notes + self._curve()

    def _curve(self) -> str:
        """The loss by step; nothing before the first was logged."""
        from attnlab.report.figures import curves

        file = self.path / "metrics.jsonl"
        lines = {split: line for split in ("train", "dev") if (line := series(file, split, "loss"))[0]}
        if not lines:
            return ""
        return html.picture(curves(lines, "loss", "step", "loss"), "loss by step")


@checked
def load(run: Source, attention: Attention | None = None) -> Any:
    """The run, the comparison or the sweep in a folder.

    `attention` is the class or the file that the run was trained with, where the folder has no copy that may be
    executed: naming it here allows it. It must be the same as then.
    """
    path = Path(run)
    kind = read_record(path)["kind"]
    if attention is not None:
        hand_in_again(path, attention)
    if kind in ("compare", "sweep"):
        from attnlab.api.experiments import Comparison, Sweep

        return Comparison(path) if kind == "compare" else Sweep(path)
    return Run(path)
