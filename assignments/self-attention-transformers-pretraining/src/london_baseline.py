"""The accuracy of answering "London" to everything: `python src/london_baseline.py [FILE]` (birth_dev.tsv)."""

from __future__ import annotations

import sys
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.data.questions import read_questions
from utils import evaluate_places, one_sentence, verdict


@one_sentence
def main(words: list[str]) -> None:
    path = Path(words[0] if words else "birth_dev.tsv")
    total, correct = evaluate_places(path, ["London"] * len(read_questions(path).questions))
    if not total:
        raise UserError(f"{path} has no answers to count: give a labelled file, such as birth_dev.tsv.")
    print(verdict(total, correct))


if __name__ == "__main__":
    main(sys.argv[1:])
