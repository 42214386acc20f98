"""Options as the document's text has them, taken out of a PDF, mean what the printed page meant."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from types import ModuleType

import pytest

from attnlab.base.errors import UserError

Load = Callable[[str], ModuleType]

EXTRACTED = r"""
finetune vanilla wiki.txt \
        -- reading params path vanilla.pretrain.params \
        -- writing params path vanilla.finetune.params \
        -- finetune_corpus_path birth_places_train.tsv
evaluate vanilla wiki.txt \
        -- reading params path vanilla.finetune.params \
        --eval_corpus_path birth_dev.tsv \
        -- outputs path vanilla.pretrain.dev.predictions
evaluate vanilla wiki.txt \
        -- reading_params_path vanilla.finetune.params \setminus \
        -- eval corpus path birth test inputs.tsv \
        -- outputs path vanilla.pretrain.test.predictions
"""
PRINTED = r"""
finetune vanilla wiki.txt --reading_params_path vanilla.pretrain.params \
--writing_params_path vanilla.finetune.params --finetune_corpus_path birth_places_train.tsv
evaluate vanilla wiki.txt --reading_params_path vanilla.finetune.params \
--eval_corpus_path birth_dev.tsv --outputs_path vanilla.pretrain.dev.predictions
evaluate vanilla wiki.txt --reading_params_path vanilla.finetune.params \
--eval_corpus_path birth_test_inputs.tsv --outputs_path vanilla.pretrain.test.predictions
"""


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.replace("\\\n", " ").strip().splitlines()]


def test_the_extracted_commands_are_the_printed_ones(knowledge: Load) -> None:
    known = knowledge("run").option_names()
    mended = [knowledge("options").mend_options(words, known) for words in commands(EXTRACTED)]
    assert mended == commands(PRINTED)
    assert [knowledge("options").mend_options(words, known) for words in commands(PRINTED)] == commands(PRINTED)


def test_a_value_in_quotes_is_left_alone(knowledge: Load) -> None:
    words = ["--outputs_path", "my file", "--", "outputs", "path", "my file"]
    wanted = ["--outputs_path", "my file", "--outputs_path", "my file"]
    assert knowledge("options").mend_options(words, {"outputs_path"}) == wanted


def test_what_cannot_be_mended_is_told(knowledge: Load) -> None:
    mend = knowledge("options").mend_options
    with pytest.raises(UserError, match="unknown option 'output_path': did you mean 'outputs_path'"):
        mend(["--", "output", "path"], {"outputs_path"})
    with pytest.raises(UserError, match="line break"):
        mend(["evaluate", "--", "outputs", "path", "x", "setminus"], {"outputs_path"})
