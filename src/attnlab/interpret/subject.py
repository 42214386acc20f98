"""What is looked into: the model of a run or a pretrained one, and texts as it reads them.

subject = open_subject("runs/my-run")          # or "minilm", or the folder of a T5
reading = subject.read("Where was Ada Lovelace born?")
recording = record(subject.model, **reading.inputs)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import SPECIAL, Vocabulary
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.trained import load_bert
from attnlab.models.gpt import GPT
from attnlab.models.loading import load_gpt, trains_bert
from attnlab.models.pretrained.load import (
    AS_DATA,
    import_transformers,
    load_config,
    load_encoder,
    load_tokenizer,
    longest_input,
    reading,
)
from attnlab.models.pretrained.source import model_folder
from attnlab.models.pretrained.tuned import is_export, load_encoder_classifier
from attnlab.runs.folder import is_run, read_record


@dataclass(frozen=True)
class Reading:
    """One text as a model reads it: a batch of one."""

    text: str
    inputs: dict[str, Tensor]
    """The arguments of the model's forward."""
    tokens: list[str]
    special: list[bool]
    """Which tokens are marks of the tokenizer, such as [CLS], and not of the text."""
    target: list[str] = field(default_factory=list)
    """The tokens of the decoder of an encoder-decoder."""
    target_special: list[bool] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was changed or added, one sentence each."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a model, for sequences that are built from ids and not read from a text."""

    names: list[str]
    """By id."""
    special: frozenset[int]
    """Marks of the tokenizer, and places in its vocabulary that no text uses."""
    longest: int
    """Tokens in one sequence, the marks around it included."""
    before: list[int]
    after: list[int]
    """The marks around a sequence, such as [CLS] and [SEP]."""
    encode: Callable[[str], list[int]]
    """The ids of a text of any length, without marks."""
    inputs: Callable[[Tensor], dict[str, Tensor]]
    """Ids (B, T), marks included, as the arguments of the model's forward."""


class Reader(Protocol):
    """How one family of models reads."""

    def __call__(self, text: str, second: str | None) -> Reading: ...

    def tokens(self) -> Tokens: ...


@dataclass
class Subject:
    """A model with what reads texts for it."""

    name: str
    model: nn.Module
    reader: Reader
    causal: bool

    def read(self, text: str, second: str | None = None) -> Reading:
        """`second` is the other text of a pair, or the answer that the decoder of a T5 has written."""
        if not text.strip():
            raise UserError("the text is empty: give at least one word.")
        return self.reader(text, second)


def open_subject(source: str | Path) -> Subject:
    """The model of a run folder, of an exported classifier, or a pretrained one by name, folder or hub id."""
    if not str(source).strip():
        raise UserError("the name of the model is empty: give the folder of a run, or a pretrained model.")
    path = Path(source)
    if is_run(path):
        return _run_subject(path)
    if is_export(path):
        return _classifier_subject(path)
    return _pretrained_subject(str(source))


def _run_subject(run: Path) -> Subject:
    kind = read_record(run)["kind"]
    if kind in ("compare", "sweep"):
        raise UserError(f"{run} contains many runs: give the folder of one of them.")
    if kind == "classify":
        return _classifier_subject(run)
    if trains_bert(run):
        trained = load_bert(run)
        return Subject(str(run), trained.model.eval(), _WordPieceReader(trained.model, trained.tokenizer), False)
    gpt = load_gpt(run)
    return gpt_subject(gpt.model, gpt.vocabulary, str(run), questions=kind in ("finetune", "knowledge"))


def gpt_subject(model: GPT, vocabulary: Vocabulary, name: str = "GPT", questions: bool = False) -> Subject:
    """`questions`: it was fine-tuned on questions, so that a text that ends in "?" is followed by MASK, as there."""
    return Subject(name, model.eval(), _GPTReader(model, vocabulary, questions), causal=True)


def _classifier_subject(path: Path) -> Subject:
    tuned = load_encoder_classifier(path, "cpu")
    return Subject(str(path), tuned.model.eval(), _TransformersReader(tuned.tokenizer, tuned.longest), False)


def _pretrained_subject(name: str) -> Subject:
    folder = model_folder(name)
    with reading(folder, "the model"):
        return _subject_in(name, folder)


def _subject_in(name: str, folder: Path) -> Subject:
    transformers = import_transformers()
    config = load_config(transformers, folder)
    tokenizer = load_tokenizer(transformers, folder, config)
    longest = longest_input(config, tokenizer)
    if config.is_encoder_decoder:
        with reading(folder, "its weights"):
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, config=config, **AS_DATA)
        start = int(config.decoder_start_token_id)
        return Subject(name, model.eval(), _EncoderDecoderReader(tokenizer, longest, start), False)
    body, _ = load_encoder(transformers, folder, config)
    causal = config.model_type == "gpt2"
    return Subject(name, body.eval(), _TransformersReader(tokenizer, longest), causal)


@dataclass(frozen=True)
class _GPTReader:
    model: GPT
    vocabulary: Vocabulary
    questions: bool

    def __call__(self, text: str, second: str | None) -> Reading:
        if second is not None:
            raise UserError("a GPT reads one text: leave the second out.")
        ids = self.vocabulary.encode(text)
        notes = []
        if self.questions and text.rstrip().endswith("?"):
            ids = [*ids, self.vocabulary.mask]
            notes.append("the mark that begins an answer was added, as in fine-tuning.")
        unknown = ids.count(self.vocabulary.unknown)
        if unknown:
            notes.append(f"{unknown} of {len(ids)} tokens are not in the model's vocabulary.")
        _must_fit(len(ids), self.model.longest or self.model.shape.context)
        tokens = [self.vocabulary.tokens[id_] for id_ in ids]
        special = [token in SPECIAL for token in tokens]
        return Reading(text, {"tokens": torch.tensor([ids])}, tokens, special, notes=notes)

    def tokens(self) -> Tokens:
        longest = self.model.longest or self.model.shape.context
        special = frozenset(range(len(SPECIAL)))
        names = list(self.vocabulary.tokens)
        return Tokens(names, special, longest, [], [], self.vocabulary.encode, lambda ids: {"tokens": ids})


@dataclass(frozen=True)
class _WordPieceReader:
    model: nn.Module
    tokenizer: WordPiece

    def __call__(self, text: str, second: str | None) -> Reading:
        encoded = self.tokenizer.encode(text, second)
        config: Any = self.model.config
        _must_fit(len(encoded.input_ids), config.context)
        tokens = [self.tokenizer.vocabulary[id_] for id_ in encoded.input_ids]
        special = [id_ in self.tokenizer.special_ids for id_ in encoded.input_ids]
        inputs = {
            "input_ids": torch.tensor([encoded.input_ids]),
            "token_type_ids": torch.tensor([encoded.token_type_ids]),
        }
        return Reading(text, inputs, tokens, special)

    def tokens(self) -> Tokens:
        pieces, config = self.tokenizer, self.model.config
        assert isinstance(config, BertConfig)
        names = list(pieces.vocabulary)
        special = pieces.special_ids | _unused(names)
        around = [pieces.cls_id], [pieces.sep_id]
        return Tokens(names, special, config.context, *around, pieces.piece_ids, lambda ids: {"input_ids": ids})


@dataclass(frozen=True)
class _TransformersReader:
    tokenizer: Any
    longest: int

    def __call__(self, text: str, second: str | None) -> Reading:
        encoded = self.tokenizer(*((text,) if second is None else (text, second)), verbose=False)
        ids = encoded["input_ids"]
        _must_fit(len(ids), self.longest)
        inputs = {name: torch.tensor([encoded[name]]) for name in self.tokenizer.model_input_names if name in encoded}
        return Reading(text, inputs, *_shown(self.tokenizer, ids))

    def tokens(self) -> Tokens:
        tokenizer, fill = self.tokenizer, {"attention_mask": torch.ones_like, "token_type_ids": torch.zeros_like}
        names = [str(name) for name in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]

        def encode(text: str, marks: bool = False) -> list[int]:
            return list(tokenizer(text, add_special_tokens=marks, verbose=False)["input_ids"])

        def inputs(rows: Tensor) -> dict[str, Tensor]:
            taken = [name for name in tokenizer.model_input_names if name in fill]
            return {"input_ids": rows} | {name: fill[name](rows) for name in taken}

        word, framed = encode("a"), encode("a", marks=True)
        start = next(n for n in range(len(framed)) if framed[n : n + len(word)] == word)
        around = framed[:start], framed[start + len(word) :]
        special = frozenset(tokenizer.all_special_ids) | _unused(names)
        return Tokens(names, special, self.longest, *around, encode, inputs)


@dataclass(frozen=True)
class _EncoderDecoderReader:
    tokenizer: Any
    longest: int
    start: int

    def __call__(self, text: str, second: str | None) -> Reading:
        read = _TransformersReader(self.tokenizer, self.longest)(text, None)
        written = self.tokenizer(second or "", verbose=False)["input_ids"]
        decoder = [self.start, *(written[:-1] if written and written[-1] == self.tokenizer.eos_token_id else written)]
        inputs = {name: tensor for name, tensor in read.inputs.items() if name != "token_type_ids"}
        inputs["decoder_input_ids"] = torch.tensor([decoder])
        return Reading(text, inputs, read.tokens, read.special, *_shown(self.tokenizer, decoder))

    def tokens(self) -> Tokens:
        """Those of the encoder; the decoder has written nothing yet."""
        encoder = _TransformersReader(self.tokenizer, self.longest).tokens()

        def inputs(rows: Tensor) -> dict[str, Tensor]:
            read = {name: tensor for name, tensor in encoder.inputs(rows).items() if name != "token_type_ids"}
            return read | {"decoder_input_ids": torch.full((len(rows), 1), self.start)}

        return replace(encoder, inputs=inputs)


def _unused(names: Sequence[str]) -> frozenset[int]:
    """Names in brackets, such as [unused7] and <extra_id_3>: their vectors were never trained."""
    return frozenset(id_ for id_, name in enumerate(names) if re.fullmatch(r"\[.+\]|<.+>", name))


def _shown(tokenizer: Any, ids: Sequence[int]) -> tuple[list[str], list[bool]]:
    special = set(tokenizer.all_special_ids)
    return [str(token) for token in tokenizer.convert_ids_to_tokens(list(ids))], [id_ in special for id_ in ids]


def _must_fit(length: int, longest: int) -> None:
    if length > longest:
        raise UserError(f"the text has {length} tokens, more than the model's context of {longest}: shorten it.")
