"""Fine-tune a GPT on questions and answers, pretrained or not, and score it on people it was not tuned on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.config import Section, check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.world import WorldSection
from attnlab.data.questions import Pair, QuestionExamples, read_pairs
from attnlab.data.sequences import NextTokenExamples
from attnlab.data.text.reading import read_corpus
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import world_of
from attnlab.jobs.engine import TrainingJob
from attnlab.jobs.job import Parts, TrainedModel
from attnlab.models.asking import accuracy_measure, answer, most_common, score
from attnlab.models.gpt import GPT, make_gpt, model_files
from attnlab.models.loading import load_gpt
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.runs.checkpoints import load_best, weights_checksum
from attnlab.runs.own_attention import same_code
from attnlab.runs.predictions import PredictedExample, write_predictions
from attnlab.training.callbacks import TrainState
from attnlab.training.loop import Metric
from attnlab.training.objectives import NextToken


class FinetuneJob(TrainingJob[FinetuneConfig]):
    kind = "finetune"

    def build(self, device: str) -> Parts:
        pairs, facts = self._read()
        model, vocabulary = self._model(pairs)
        if self.config.start.run is not None and not self.config.start.fresh:
            facts["start_sha256"] = weights_checksum(model)
        context = model.shape.context
        examples = {
            split: QuestionExamples(part, vocabulary, context, getattr(self.config.data, split))
            for split, part in pairs.items()
        }
        baseline = most_common(pairs["train"])
        facts |= {"questions": {split: len(part) for split, part in pairs.items()}, "most_common": baseline}
        note = self._unknown_tokens(pairs, vocabulary)

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            if "dev" in pairs:
                load_best(model, run.path)
            return _report(run, model, vocabulary, pairs, baseline)

        has_dev = "dev" in pairs
        return Parts(
            model,
            NextToken(),
            NextTokenExamples([examples["train"]], vocabulary.pad),
            accuracy_measure(vocabulary, pairs["dev"]) if has_dev else None,
            Metric("accuracy", "higher") if has_dev else None,
            files=model_files(self.config.model, vocabulary),
            facts=facts,
            changes=[note] if note else [],
            finish=finish,
        )

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        return load_gpt(run)

    def _read(self) -> tuple[dict[str, list[Pair]], dict[str, Any]]:
        data = self.config.data
        if data.train is None:
            if data.dev or data.test:
                raise UserError("--dev and --test need --train: questions to fine-tune on.")
            self._same_world()
            world = world_of(self.config.world)
            pairs = {split: world.questions(split) for split in ("train", "dev", "test")}
            return pairs, {"source": "synthetic world", "people": len(world.people)}
        files = {split: Path(path) for split in ("train", "dev", "test") if (path := getattr(data, split))}
        facts = {f"{split}_sha256": sha256(path) for split, path in files.items() if path.is_file()}
        return {split: read_pairs(path) for split, path in files.items()}, facts

    def _same_world(self) -> None:
        """Take the world of the pretrained run: the questions must be about the people it has read about."""
        config = self.config
        if config.start.run is None:
            return
        read_record(Path(config.start.run))  # raises for a folder that is not a run
        pretrained = read_config(Path(config.start.run))
        if pretrained.get("data", {}).get("corpus"):
            raise UserError(f"{config.start.run} was pretrained on a file: give questions with --train.")
        world = check(WorldSection, pretrained.get("world") or {})
        _must_agree("world", config.world, world, config.start.run)
        config.world = world

    def _unknown_tokens(self, pairs: dict[str, list[Pair]], vocabulary: Vocabulary) -> str:
        """One sentence on the tokens of questions and answers that the vocabulary lacks; empty if there are none."""
        missing = vocabulary.missing(text for part in pairs.values() for pair in part for text in pair)
        if not missing:
            return ""
        start = self.config.start.run
        shown = ", ".join(repr(token) for token in missing[:5]) + (", ..." if len(missing) > 5 else "")
        return (
            f"{len(missing)} {vocabulary.level} of the questions and answers are not in the vocabulary"
            f"{f' of {start}' if start else ''} ({shown}): the model reads them as unknown; "
            f"{'pretrain with --vocabulary-from' if start else 'give --corpus'} to include them."
        )

    def _model(self, pairs: dict[str, list[Pair]]) -> tuple[GPT, Vocabulary]:
        config = self.config
        if config.start.run is not None:
            start = load_gpt(Path(config.start.run), weights=not config.start.fresh)
            model, vocabulary, shape = start.model, start.vocabulary, start.section
            _must_agree("model", config.model, shape, config.start.run)
            config.model = shape
            if "tokens" in config.data.model_fields_set and config.data.tokens != vocabulary.level:
                raise UserError(
                    f"{config.start.run} reads {vocabulary.level}: leave out --tokens, it comes from --from."
                )
            config.data = config.data.model_copy(update={"tokens": vocabulary.level})
            return model, vocabulary
        if config.start.fresh:
            raise UserError("--fresh needs --from: the run whose vocabulary and shape to use.")
        texts = [text for pair in pairs["train"] for text in pair]
        if config.data.corpus is not None:
            texts += read_corpus(Path(config.data.corpus))
        vocabulary = Vocabulary.build(texts, config.data.tokens)
        return make_gpt(config.model, vocabulary), vocabulary


def _must_agree(section: str, given: Section, pretrained: Section, run: str) -> None:
    """Raise for a given setting that differs from the pretrained run's: it would be ignored silently."""
    for name in given.model_fields_set:
        values = getattr(given, name), getattr(pretrained, name)
        if values[0] != values[1] and not (name == "attention" and same_code(*values)):
            raise UserError(
                f"{section}.{name} is {getattr(pretrained, name)} in {run}, not {getattr(given, name)}: "
                "it comes from --from; leave it out."
            )


def _report(
    run: RunFolder, model: GPT, vocabulary: Vocabulary, pairs: dict[str, list[Pair]], baseline: str
) -> dict[str, Any]:
    """Accuracy of the chosen weights on every split beside the baseline's, and the predictions on disk."""
    results: dict[str, Any] = {"baseline_answer": baseline}
    for split, part in pairs.items():
        answers = answer(model, vocabulary, [question for question, _ in part])
        results[f"{split}_accuracy"] = score([predicted.text for predicted in answers], part)
        results[f"{split}_baseline"] = score([baseline] * len(part), part)
        results[f"{split}_questions"] = len(part)
        examples = [
            PredictedExample(question, expected, predicted.text, round(predicted.confidence, 6))
            for (question, expected), predicted in zip(part, answers, strict=True)
        ]
        write_predictions(run.path, split, examples)
    return results
