"""The command of the assignment: `python src/run.py pretrain|finetune|evaluate vanilla|synthesizer wiki.txt ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from attention import VARIANTS
from attnlab.base import console
from attnlab.base.errors import UserError, unknown
from attnlab.base.files import read_text, sha256, write_text
from attnlab.base.machine.facts import resolve_device
from attnlab.base.randomness import seed_everything
from attnlab.data.questions import read_questions
from dataset import CONTEXT, MARKS, CharCorruptionDataset, NameDataset, PhraseDataset, must_fit
from model import GPT, GPTConfig, complete
from options import mend_options
from params import Params, read_params
from presets import PRESETS, Preset, changed
from tracing import trace_answers
from trainer import Trainer, TrainerConfig
from utils import evaluate_places, one_sentence, verdict

FUNCTIONS = ("pretrain", "finetune", "evaluate")
PATHS = {
    "pretrain": {"writing_params_path": "file for the pretrained parameters"},
    "finetune": {
        "finetune_corpus_path": "questions and answers, tab-separated",
        "writing_params_path": "file for the fine-tuned parameters",
    },
    "evaluate": {
        "reading_params_path": "the fine-tuned parameters",
        "eval_corpus_path": "questions, with or without answers",
        "outputs_path": "file for the predictions, one per line",
    },
}
SIZES = {"layers": 4, "heads": 8, "width": 256}
QUESTION = "Where was "  # the characters before a name in a question
LONGEST_ANSWER = 40  # characters
AT_ONCE = 128  # questions answered together
FASTER = {
    "pretrain": "With --preset fast pretraining takes half an hour on two cores: it hides one name or place behind the "
    "title of its document instead of a span anywhere.",
    "finetune": "With --epochs 15 it takes a fifth of that: the schedule is rescaled.",
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ('{self.prog} --help' lists the options).")


def make_parser(function: str) -> Parser:
    parser = Parser(prog=f"python src/run.py {function}", allow_abbrev=False)
    parser.add_argument("variant", help=" or ".join(VARIANTS))
    parser.add_argument(
        "pretrain_corpus_path", type=Path, help="one document per line; its characters are the vocabulary"
    )
    for name, meaning in PATHS[function].items():
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE", help=meaning)
    if function == "finetune":
        parser.add_argument(
            "--reading_params_path",
            type=Path,
            metavar="FILE",
            help="pretrained parameters to start from; without them, no pretraining",
        )
    if function == "evaluate":
        parser.add_argument(
            "--trace",
            action="store_true",
            help="say which answers stand in a line of the pretraining text that names the person",
        )
    else:
        parser.add_argument(
            "--preset",
            choices=PRESETS,
            help="course: the document's settings (default); fast: half an hour on two cores; finetune follows",
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="change one setting of the preset"
        )
        parser.add_argument("--epochs", type=_whole(1), help="number of epochs; the schedule is rescaled to them")
        parser.add_argument("--seed", type=_whole(0), default=0, help="of everything random (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps (auto)")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=_whole(1), help=f"of the model ({default}, or the parameters file's)")
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least}, got {text!r}")
        return int(text)

    return parse


def option_names() -> set[str]:
    return {
        option.removeprefix("--")
        for function in FUNCTIONS
        for action in make_parser(function)._actions
        for option in action.option_strings
    }


@one_sentence
def main(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(f"python src/run.py {'|'.join(FUNCTIONS)} {'|'.join(VARIANTS)} wiki.txt ...   (--help after the first)")
        return
    function, *rest = mend_options(words, option_names())
    if function not in FUNCTIONS:
        raise UserError(unknown("function", function, FUNCTIONS))
    args = make_parser(function).parse_args(rest)
    if args.variant not in VARIANTS:
        raise UserError(unknown("variant", args.variant, VARIANTS))
    for path in (getattr(args, "writing_params_path", None), getattr(args, "outputs_path", None)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise UserError(f"{path} cannot be written: its folder does not exist, or it is a folder.")
    {"pretrain": pretrain, "finetune": finetune, "evaluate": evaluate}[function](args)


def pretrain(args: argparse.Namespace) -> None:
    """[part f] Train a new model on the documents, with spans of them hidden."""
    name = args.preset or "course"
    preset = changed(PRESETS[name], args.set)
    text, reading = read_text(args.pretrain_corpus_path), preset.reading
    if reading is not None and args.variant == "synthesizer" and not _is_set("lead", args):
        reading = replace(reading, lead=len(QUESTION))
    corpus = (
        CharCorruptionDataset(text, CONTEXT)  # [part e]
        if reading is None
        else PhraseDataset(text, CONTEXT, reading)
    )
    Trainer(
        make_model(args, corpus, preset),
        corpus,
        None,
        scheduled(preset.pretrain, args, len(corpus)),
        label=f"pretrain {args.variant}",
        preset=name,
        hint=FASTER["pretrain"] if name == "course" else "",
        facts={
            "documents": len(corpus),
            "corpus_sha256": sha256(args.pretrain_corpus_path),
            "hidden": "a span anywhere" if reading is None else str(reading),
        },
    ).train()


def finetune(args: argparse.Namespace) -> None:
    """Train on questions: [part c] a new model, or [part f] a pretrained one."""
    corpus = read_characters(args)
    path, start = args.finetune_corpus_path, args.reading_params_path
    names = NameDataset(corpus, read_text(path), str(path))
    params = None if start is None else read_pretrained(args, corpus)
    name = args.preset or ("course" if params is None else params.preset)
    preset = changed(PRESETS[name], args.set)
    model = make_model(args, corpus, preset, params)
    changes = unknown_characters(corpus, path, [text for pair in names.pairs for text in pair])
    Trainer(
        model,
        names,
        None,
        scheduled(preset.scratch if params is None else preset.finetune, args, len(corpus)),
        label=f"finetune {args.variant}",
        preset=name,
        hint=FASTER["finetune"] if name == "course" and params is None and args.epochs is None else "",
        facts={
            "questions": len(names),
            "corpus_sha256": sha256(args.pretrain_corpus_path),
            "questions_sha256": sha256(path),
            "start": "nothing" if start is None else sha256(start),
        },
        changes=changes,
    ).train()


def evaluate(args: argparse.Namespace) -> None:
    """[part d] Answer the questions of a file, write the answers, and count the correct ones."""
    corpus = read_characters(args)
    path = args.eval_corpus_path
    questions = read_questions(path)
    for number, question in zip(questions.lines, questions.questions, strict=True):
        must_fit(str(path), number, len(question) + MARKS, CONTEXT, "the question and an answer")
    for note in unknown_characters(corpus, path, questions.questions):
        console.warn(note)
    params = read_pretrained(args, corpus)
    model = GPT(params.config(dropout=0.0)).to(resolve_device(args.device))
    params.load(model)
    places = answer(model, corpus, questions.questions)
    write_text(args.outputs_path, "".join(f"{place}\n" for place in places))
    total, correct = evaluate_places(path, places)
    print(verdict(total, correct) if total else f"Predictions written to {args.outputs_path}; no targets provided")
    if args.trace:
        table, summary = trace_answers(args.pretrain_corpus_path, questions.questions, places, questions.answers)
        traced = args.outputs_path.with_name(f"{args.outputs_path.name}.trace.tsv")
        write_text(traced, table)
        print(f"{summary} ({traced})")


def answer(model: GPT, corpus: CharCorruptionDataset, questions: list[str]) -> list[str]:
    """The model's answers; questions of similar length are answered together."""
    prompts = [[*corpus.encode(question), corpus.mask] for question in questions]
    order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))
    places = [""] * len(prompts)
    for first in range(0, len(order), AT_ONCE):
        part = order[first : first + AT_ONCE]
        completed = complete(model, [prompts[n] for n in part], LONGEST_ANSWER, stop=corpus.mask)
        for n, characters in zip(part, completed, strict=True):
            places[n] = " ".join(corpus.decode(characters).splitlines())
    return places


def read_characters(args: argparse.Namespace) -> CharCorruptionDataset:
    return CharCorruptionDataset(read_text(args.pretrain_corpus_path), CONTEXT)


def make_model(
    args: argparse.Namespace, corpus: CharCorruptionDataset, preset: Preset, params: Params | None = None
) -> GPT:
    """[part c] A vanilla model or [part g] a synthesizer: a new one, or the one of a parameters file."""
    seed_everything(args.seed)
    if params is not None:
        model = GPT(params.config(preset.dropout))
        params.load(model)
        return model
    sizes = {name: getattr(args, name) or default for name, default in SIZES.items()}
    synthesizer = args.variant == "synthesizer"
    return GPT(
        GPTConfig(
            corpus.vocab_size,
            CONTEXT,
            n_layer=sizes["layers"],
            n_head=sizes["heads"],
            n_embd=sizes["width"],
            embd_pdrop=preset.dropout,
            resid_pdrop=preset.dropout,
            attn_pdrop=preset.dropout,
            synthesizer=synthesizer,
            rotary=preset.rotary and (not synthesizer or _is_set("rotary", args)),  # refused with a synthesizer
        )
    )


def read_pretrained(args: argparse.Namespace, corpus: CharCorruptionDataset) -> Params:
    """The parameters file, which must be of the variant, the sizes and the text that are given."""
    params = read_params(args.reading_params_path)
    expected = {"attention": args.variant, **{name: getattr(args, name) for name in SIZES}}
    params.must_have(expected, corpus.itos, str(args.pretrain_corpus_path))
    return params


def scheduled(config: TrainerConfig, args: argparse.Namespace, documents: int) -> TrainerConfig:
    """The training with this command's file, seed and device; the course's schedule ends at 200 passes of 650.

    With --epochs it is rescaled: it ends at the same share of the training.
    """
    epochs = args.epochs or config.max_epochs
    return replace(
        config,
        max_epochs=epochs,
        final_tokens=200 * documents * CONTEXT * epochs / config.max_epochs,
        ckpt_path=args.writing_params_path,
        seed=args.seed,
        device=args.device,
    )


def _is_set(name: str, args: argparse.Namespace) -> bool:
    """Whether --set names this setting."""
    return any(setting.startswith(f"{name}=") for setting in args.set)


def unknown_characters(corpus: CharCorruptionDataset, path: Path, texts: list[str]) -> list[str]:
    """A note on unknown characters, if there are any."""
    characters = "".join(corpus.unknown_characters(texts))
    note = f"{path} has characters that are not in the pretraining text and are left out: {characters}"
    return [note] if characters else []


if __name__ == "__main__":
    main(sys.argv[1:])
