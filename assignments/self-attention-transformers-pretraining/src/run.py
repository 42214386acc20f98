"""The command of the assignment: `python src/run.py pretrain|finetune|evaluate vanilla|synthesizer wiki.txt ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from attention import VARIANTS
from attnlab.base import console
from attnlab.base.errors import UserError, unknown
from attnlab.base.files import read_text, sha256, write_text
from attnlab.base.machine.facts import resolve_device
from attnlab.base.randomness import seed_everything
from attnlab.data.questions import read_questions
from attnlab.data.text.reading import read_lines
from attnlab.models.asking import answer
from dataset import CONTEXT, MARKS, CharCorruptionDataset, NameDataset, must_fit
from model import GPT, GPTConfig
from options import mend_options
from params import load_params
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
FASTER = (
    "A faster way to the same knowledge is the lab's modern preset: "
    "attnlab pretrain --config birthplaces-pretrain --corpus wiki.txt "
    "--questions birth_places_train.tsv --dev birth_dev.tsv"
)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ('{self.prog} --help' lists the options).")


def make_parser(function: str) -> Parser:
    training = function != "evaluate"
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
    if training:
        parser.add_argument("--epochs", type=_whole(1), help="number of epochs (default: the assignment's)")
        parser.add_argument("--seed", type=_whole(0), default=0, help="of everything random (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps (auto)")
    for name, default in (("layers", 4), ("heads", 8), ("width", 256)):
        parser.add_argument(f"--{name}", type=_whole(1), default=default, help=f"of the model ({default})")
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
    corpus = read_characters(args)
    Trainer(
        make_model(args, corpus),
        corpus,
        None,
        TrainerConfig(
            max_epochs=args.epochs or 650,
            batch_size=128,
            learning_rate=6e-3,
            lr_decay=True,
            warmup_tokens=512 * 20,
            final_tokens=200 * len(corpus) * CONTEXT,
            ckpt_path=args.writing_params_path,
            seed=args.seed,
            device=args.device,
        ),
        label=f"pretrain {args.variant}",
        hint=f"{FASTER}.",
        facts={"documents": len(corpus), "corpus_sha256": sha256(args.pretrain_corpus_path)},
    ).train()


def finetune(args: argparse.Namespace) -> None:
    corpus = read_characters(args)
    path, start = args.finetune_corpus_path, args.reading_params_path
    names = NameDataset(corpus, read_text(path), str(path))
    model = make_model(args, corpus)
    if start is not None:
        load_params(start, model, corpus.itos, str(args.pretrain_corpus_path))
    Trainer(
        model,
        names,
        None,
        TrainerConfig(
            max_epochs=args.epochs or (75 if start is None else 10),
            batch_size=256,
            learning_rate=6e-4,
            lr_decay=True,
            warmup_tokens=512 * 20,
            final_tokens=200 * len(corpus) * CONTEXT,
            ckpt_path=args.writing_params_path,
            seed=args.seed,
            device=args.device,
        ),
        label=f"finetune {args.variant}",
        hint=f"{FASTER}.",
        facts={
            "questions": len(names),
            "corpus_sha256": sha256(args.pretrain_corpus_path),
            "questions_sha256": sha256(path),
            "start": "nothing" if start is None else sha256(start),
        },
        changes=unknown_characters(corpus, path, [text for pair in names.pairs for text in pair]),
    ).train()


def evaluate(args: argparse.Namespace) -> None:
    corpus = read_characters(args)
    path = args.eval_corpus_path
    questions = read_questions(path).questions
    for (number, _), question in zip(read_lines(path), questions, strict=True):
        must_fit(str(path), number, len(question) + MARKS, CONTEXT, "the question and an answer")
    for note in unknown_characters(corpus, path, questions):
        console.warn(note)
    model = make_model(args, corpus)
    load_params(args.reading_params_path, model, corpus.itos, str(args.pretrain_corpus_path))
    model.lab.to(resolve_device(args.device))
    places = [" ".join(each.text.splitlines()) for each in answer(model.lab, corpus.vocabulary, questions)]
    write_text(args.outputs_path, "".join(f"{text}\n" for text in places))
    total, correct = evaluate_places(path, places)
    print(verdict(total, correct) if total else f"Predictions written to {args.outputs_path}; no targets provided")


def read_characters(args: argparse.Namespace) -> CharCorruptionDataset:
    return CharCorruptionDataset(read_text(args.pretrain_corpus_path), CONTEXT)


def make_model(args: argparse.Namespace, corpus: CharCorruptionDataset) -> GPT:
    seed_everything(getattr(args, "seed", 0))
    return GPT(
        GPTConfig(
            corpus.vocab_size,
            CONTEXT,
            n_layer=args.layers,
            n_head=args.heads,
            n_embd=args.width,
            synthesizer=args.variant == "synthesizer",
        )
    )


def unknown_characters(corpus: CharCorruptionDataset, path: Path, texts: list[str]) -> list[str]:
    """A note on unknown characters, if there are any."""
    characters = "".join(corpus.unknown_characters(texts))
    note = f"{path} has characters that are not in the pretraining text, read as unknown: {characters}"
    return [note] if characters else []


if __name__ == "__main__":
    main(sys.argv[1:])
