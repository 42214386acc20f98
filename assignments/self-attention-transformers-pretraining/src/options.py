"""Options copied from a PDF, where `_` became a space.

-- reading params path vanilla.pretrain.params    for   --reading_params_path vanilla.pretrain.params
-- eval corpus path birth test inputs.tsv         for   --eval_corpus_path birth_test_inputs.tsv
"""

from __future__ import annotations

from collections.abc import Collection

from attnlab.base.errors import UserError, unknown

LINE_BREAK = "setminus"  # what a backslash at the end of a line became in the PDF


def mend_options(words: list[str], known: Collection[str]) -> list[str]:
    """The words with every option joined to its `--`; other words are unchanged."""
    if words and words[-1] == LINE_BREAK:
        raise UserError(f"the command ends in {LINE_BREAK!r}, where the document has a line break: write \\ there.")
    mended: list[str] = []
    words = [word for word in words if word != LINE_BREAK]
    while words:
        word = words.pop(0)
        if word != "--":
            mended.append(word)
            continue
        end = next((n for n, later in enumerate(words) if later.startswith("--")), len(words))
        mended += _option(words[:end], known)
        words = words[end:]
    return mended


def _option(words: list[str], known: Collection[str]) -> list[str]:
    """The name is as many words as make a known one; the words after it are its value."""
    for count in range(1, len(words) + 1):
        name = "_".join(words[:count])
        if name in known:
            value = "_".join(words[count:])
            return [f"--{name}", value] if value else [f"--{name}"]
    raise UserError(unknown("option", "_".join(words), known))
