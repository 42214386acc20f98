"""Text as the assignment reads it: the pieces of transformers' BertTokenizer, batches by number, masked words."""

from __future__ import annotations

import csv
import os
import random
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
import transformers

Load = Callable[[str], ModuleType]
DATA = Path(os.environ.get("ATTNLAB_DATA", "no data"), "yelp")
MODELS = Path(os.environ.get("ATTNLAB_MODELS", "no models"))
no_model = pytest.mark.skipif(not (MODELS / "bert-tiny").is_dir(), reason="ATTNLAB_MODELS has no bert-tiny")

HOSTILE = [
    "",
    " \t\n\r",
    "don't can't U.S.A. 3.14 $5 50% a_b a-b",
    "Crème brûlée à la carte, naïve Ångström, İstanbul, ŒUVRE",
    "e\u0301 versus \u00e9, n\u0303, a\u0323\u0302",
    "ΟΔΥΣΣΕΥΣ Σ ΣΑΣ",
    "中文字符 mixed 漢字and日本語 ひらがな 한국어 \uf900 \ufa0e \U0002f800",
    "zero\u200bwidth\u200djoiner\ufeff\u2060",
    "con\x00trol\x01s\x7f \x0b vertical\x0ctab \x85 next\x1cline",
    "non\u00a0breaking\u2009thin\u3000wide\u2028line",
    "\ufffd replaced \ue000private\U000f0000",
    "a" * 100 + " " + "a" * 101 + " " + "x" * 5000,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "😀👍🏽👩‍👩‍👧 ☕ ™ © ½ ² ①",
    "—–‘’“”…«»¿¡ `~!@#$%^&*()-_=+[]{}\\|;:'\",.<>/?",
    "[CLS] is [MASK]ed by[SEP][PAD][UNK] [cls] [ MASK ] [[MASK]] [MASK",
    "##ing ## # ##",
    "ﬁne ﬂow ǅ ß ẞ ŉ 𝐁𝐨𝐥𝐝 𝕏",
    "العربية עברית हिन्दी ไทย \u037e \u1fef \u2126 \u212b",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module", params=["own", pytest.param("bert-tiny", marks=no_model)])
def vocabulary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vocab.txt: of all characters above and some pieces, or the real one."""
    if request.param != "own":
        return MODELS / request.param
    folder = tmp_path_factory.mktemp("vocabulary")
    letters = sorted({c for text in HOSTILE for c in text.lower() if not c.isspace() and c.isprintable()})
    pieces = [*SPECIAL, *letters, *(f"##{c}" for c in letters), "can", "##ing", "super", "##cali", "naive", "mixed"]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder


def test_odd_text_gives_the_pieces_of_bert_tokenizer(bert: Load, vocabulary: Path) -> None:
    ours = bert("wordpiece").WordPiece.from_folder(vocabulary)
    theirs = transformers.BertTokenizer(vocab=str(vocabulary / "vocab.txt"))
    draw, alphabet = random.Random(0), sorted(set("".join(HOSTILE)))
    mixtures = ["".join(draw.choices(alphabet, k=draw.randrange(1, 30))) for _ in range(1000)]
    for text in (*HOSTILE, *mixtures):
        assert ours.encode(text, longest=10**6).input_ids == theirs(text)["input_ids"], repr(text)
    for first, second, longest in ((HOSTILE[2], HOSTILE[3], 20), (HOSTILE[3], "x y", 12), ("a", HOSTILE[2], 12)):
        found = theirs(first, second, truncation="longest_first", max_length=longest, return_token_type_ids=True)
        encoded = ours.encode(first, second, longest)
        assert (encoded.input_ids, encoded.token_type_ids) == (found["input_ids"], found["token_type_ids"])
        assert encoded.cut


def test_cased_vocabularies_keep_case_and_accents(bert: Load, vocabulary: Path, tmp_path: Path) -> None:
    wordpiece = bert("wordpiece")
    pieces = wordpiece.WordPiece.from_folder(vocabulary).pieces
    ours = wordpiece.WordPiece(pieces, {"do_lower_case": False})
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    again = wordpiece.WordPiece.from_folder(tmp_path)
    for text in HOSTILE:
        assert again.encode(text, longest=10**6).input_ids == theirs(text)["input_ids"], repr(text)
    assert ours.piece_ids("Can") != ours.piece_ids("can")


@no_model
@pytest.mark.skipif(not DATA.is_dir(), reason="ATTNLAB_DATA has no yelp")
def test_real_reviews_give_the_pieces_of_bert_tokenizer(bert: Load) -> None:
    ours = bert("wordpiece").WordPiece.from_folder(MODELS / "bert-tiny")
    theirs = transformers.BertTokenizer(vocab=str(MODELS / "bert-tiny" / "vocab.txt"))
    with (DATA / "test.csv").open(encoding="utf-8", newline="") as file:
        texts = [text.replace("\\n", "\n") for _, text in csv.reader(file)]
    texts += (DATA / "unlabeled.txt").read_text(encoding="utf-8").split("\n")[::10]
    assert [ours.encode(text, longest=10**6).input_ids for text in texts] == theirs(texts)["input_ids"]


def test_batches_by_number(bert: Load) -> None:
    """An epoch has every text once, batches are of similar length, and any number can be asked for again."""
    batches = bert("batches")

    lengths = torch.randint(3, 60, (205,), generator=torch.Generator().manual_seed(0)).tolist()

    class Rows:
        def __init__(self) -> None:
            self.lengths = lengths

        def collate(self, indices: list[int]) -> dict[str, torch.Tensor]:
            return {"indices": torch.tensor(indices)}

    loader = batches.Loader(Rows(), 8, 3, torch.device("cpu"))
    first, second = ([loader[n]["indices"].tolist() for n in range(26 * k, 26 * k + 26)] for k in (0, 1))
    for epoch in (first, second):
        assert sorted(index for rows in epoch for index in rows) == [*range(205)]
        assert sorted(map(len, epoch)) == [5, *[8] * 25]
    assert first != second and loader[4]["indices"].tolist() == first[4]
    padding = sum(len(rows) * max(lengths[i] for i in rows) - sum(lengths[i] for i in rows) for rows in first)
    assert padding < 0.05 * sum(lengths)
    assert batches.Loader(Rows(), 8, 4, torch.device("cpu")).plan(0) != first
    seen = [index for indices, _ in batches.once(Rows(), 8, torch.device("cpu")) for index in indices]
    assert sorted(seen) == [*range(205)]


def test_masking_follows_the_document(bert: Load) -> None:
    """15% of the pieces of each text, of these 80% [MASK], 10% random, 10% unchanged; never a special piece."""
    mask_tokens = bert("mlm_utils").mask_tokens
    tokenizer = bert("wordpiece").WordPiece([*SPECIAL, *map(str, range(495))])
    torch.manual_seed(0)
    batch = torch.randint(5, 500, (400, 102))
    batch[:, 0], batch[:, 101] = tokenizer.cls_id, tokenizer.sep_id
    batch[0, 3:] = tokenizer.pad_id  # two pieces
    batch[1, 1:] = tokenizer.pad_id  # none
    shown, targets = mask_tokens(batch, tokenizer, Namespace(mlm_probability=0.15))
    chosen = targets != -100
    assert torch.equal(targets[chosen], batch[chosen]) and torch.equal(shown[~chosen], batch[~chosen])
    assert chosen.sum(1).tolist() == [1, 0, *[15] * 398]
    assert not torch.isin(batch[chosen], torch.tensor([*tokenizer.special_ids])).any()
    counts = chosen[2:].sum(0)[1:101].float()  # per position: 59.7 on average, a deviation of 7.1
    assert counts.min() > 25 and counts.max() < 95
    n = int(chosen.sum())
    masked, kept = int((shown[chosen] == tokenizer.mask_id).sum()), int((shown == batch)[chosen].sum())
    assert abs(masked / n - 0.8) < 0.02 and abs(kept / n - 0.1) < 0.02  # deviations of 0.005 and 0.004
    assert not torch.isin(shown[chosen & (shown != tokenizer.mask_id)], torch.tensor([*tokenizer.special_ids])).any()
    assert not torch.equal(mask_tokens(batch, tokenizer, Namespace(mlm_probability=0.15))[1], targets)
