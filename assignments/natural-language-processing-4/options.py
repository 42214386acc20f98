"""The options of the scripts, with the names of their family, and commands copied from a PDF.

—model_type, -model_type          for   --model_type
huawei—noah/TinyBERT              for   huawei-noah/TinyBERT
-log ging_steps 50 setminus       for   --logging_steps 50 \\      (what a shell makes of -\\log ging\\_steps)
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NoReturn

from errors import UserError, note

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
OPTION = re.compile(f"[{DASHES}]+([A-Za-z].*)")
LINE_BREAK = "setminus"  # what a backslash at the end of a line became in the PDF
NO_MEANING = {  # accepted, because commands of this family have them; why they have no effect here
    "do_lower_case": "the model's tokenizer decides",
    "cache_dir": "downloads go to the hub's cache, in HF_HOME",
    "overwrite_cache": "texts are tokenized each time, which takes seconds",
    "mlm": "classifier_mlm.py always trains on masked words",
    "eval_data_file": "the model is chosen by the labelled dev set",
    "should_continue": "the same command resumes by itself",
    "save_total_limit": "the last checkpoint and the best model are kept",
    "fp16_opt_level": "--fp16 alone decides",
    "server_ip": "there is no debugger to wait for",
    "server_port": "there is no debugger to wait for",
}
FLAGS = ("do_lower_case", "overwrite_cache", "mlm", "should_continue")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ('{self.prog} --help' lists the options).")


def parse(words: Sequence[str], script: str, joint: bool) -> argparse.Namespace:
    """The options of a command; those without an effect are named once."""
    parser = _parser(script, joint)
    known = {name.removeprefix("--") for action in parser._actions for name in action.option_strings}
    args = parser.parse_args(mend(words, known))
    args.model_name_or_path = _plain_dashes(args.model_name_or_path)
    _refuse(args)
    for name, why in NO_MEANING.items():
        if getattr(args, name, None):
            note(f"--{name} has no effect here: {why}.")
    return args


def mend(words: Sequence[str], known: set[str]) -> list[str]:
    """The words with every option's dashes and gaps corrected; variables the shell did not expand are expanded."""
    if words and words[-1] == LINE_BREAK:
        raise UserError(f"the command ends in {LINE_BREAK!r}, where the document has a line break: write \\ there.")
    rest = [os.path.expandvars(word) for word in words if word != LINE_BREAK]
    mended: list[str] = []
    while rest:
        word = rest.pop(0)
        match = OPTION.fullmatch(word)
        if match is None or word == "-h":
            mended.append(word)
            continue
        name, equals, value = match[1].partition("=")
        if name not in known and rest and name + rest[0] in known:
            name += rest.pop(0)
        mended.append(f"--{name}{equals}{value}")
    return mended


def _parser(script: str, joint: bool) -> Parser:
    parser = Parser(prog=f"python {script}", allow_abbrev=False)
    add = parser.add_argument
    for name, help in (
        ("model_name_or_path", "a BERT's folder, or its name: searched for in ATTNLAB_MODELS, then on the hub"),
        ("data_dir", "the folder with train.csv, valid.csv and test.csv"),
        ("output_dir", "folder for the best model and its results"),
    ):
        add(f"--{name}", required=True, help=help)
    add("--model_type", default="bert", help="bert")
    add("--task_name", default="yelp", help="yelp")
    add("--tokenizer_name", help="the folder of another tokenizer than the model's")
    add("--config_name", help="the folder of the model, if given")
    for name, help in (
        ("do_train", "train"),
        ("do_eval", "report on dev and test, after training or alone"),
        ("evaluate_during_training", "evaluate on dev every logging_steps and keep the best model"),
        ("eval_all_checkpoints", "list every evaluation on dev in eval_results.txt"),
        ("overwrite_output_dir", "replace another training in the output folder"),
        ("no_cuda", "use the CPU"),
        ("fp16", "half precision (CUDA)"),
    ):
        add(f"--{name}", action="store_true", help=help)
    numbers: tuple[tuple[str, Callable[[str], Any], Any, str], ...] = (
        ("max_seq_length", whole(3), 128, "longest text in pieces, [CLS] and [SEP] included"),
        ("per_gpu_train_batch_size", whole(1), 32, "texts per step"),
        ("per_gpu_eval_batch_size", whole(1), 32, "texts per step in evaluation"),
        ("gradient_accumulation_steps", whole(1), 1, "batches per step"),
        ("learning_rate", number(above=0), 5e-5, "peak rate; it falls linearly to 0"),
        ("weight_decay", number(least=0), 0.0, "of matrices; embeddings, biases and norms have none"),
        ("adam_epsilon", number(above=0), 1e-8, "of AdamW"),
        ("max_grad_norm", number(above=0), 1.0, "largest norm of the gradient"),
        ("num_train_epochs", number(above=0), 3.0, "number of passes over the training set"),
        ("max_steps", int, -1, "steps instead of epochs, if above 0"),
        ("warmup_steps", whole(0), 0, "steps in which the rate rises"),
        ("logging_steps", whole(1), 50, "steps between evaluations"),
        ("save_steps", int, 50, "steps between checkpoints, besides those at evaluations; 0 or less: none besides"),
        ("seed", whole(0), 42, "of everything random"),
        ("local_rank", int, -1, "-1: one process"),
        ("train_examples", whole(1), None, "train on this many texts, of each class as many, drawn with the seed"),
    )
    for name, kind, default, help in numbers:
        add(f"--{name}", type=kind, default=default, help=help)
    if joint:
        add("--train_data_file", required=True, help="unlabelled text")
        add(
            "--block_size", type=int, default=-1, help="longest unlabelled text in pieces; -1: the context of the model"
        )
        add("--mlm_alpha", type=number(least=0), default=1.0, help="weight of the loss of masked words")
        add("--mlm_probability", type=number(above=0, most=1), default=0.15, help="share masked")
        add("--line_by_line", action="store_true", help="each line is a text; else the file is cut into blocks")
    for name in NO_MEANING:
        if name in FLAGS:
            add(f"--{name}", action="store_true", help=argparse.SUPPRESS)
        else:
            add(f"--{name}", help=argparse.SUPPRESS)
    return parser


def _refuse(args: argparse.Namespace) -> None:
    if args.model_type != "bert":
        raise UserError(f"--model_type {args.model_type}: these scripts support bert only.")
    if not (args.do_train or args.do_eval):
        raise UserError("there is nothing to do: give --do_train, --do_eval or both.")
    if args.local_rank != -1:
        raise UserError(f"--local_rank {args.local_rank}: these scripts run in one process, leave the option out.")
    if args.config_name and _plain_dashes(args.config_name) != args.model_name_or_path:
        raise UserError("--config_name: the weights need the config.json of their folder, leave the option out.")


def _plain_dashes(name: str) -> str:
    """Long dashes in a name become hyphens, unless a folder has that name."""
    return name if os.path.isdir(name) else re.sub(f"[{DASHES}]", "-", name)


def whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least}, got {text!r}")
        return int(text)

    return parse


def number(least: float = -inf, above: float = -inf, most: float = inf) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None
        if not (value >= least and value > above and value <= most) or value == inf:
            bound = f"above {above:g}" if above > -inf else f"from {least:g}"
            bound += f" to {most:g}" if most < inf else ""
            raise argparse.ArgumentTypeError(f"expected a number {bound}, got {text!r}")
        return value

    return parse
