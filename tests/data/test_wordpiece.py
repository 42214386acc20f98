"""WordPiece in plain Python: the same ids as the `tokenizers` library, its files, and vocabularies of one's own."""

from __future__ import annotations

import csv
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.wordpiece import SPECIAL, WordPiece, truncate
from attnlab.data.tokenizers.wordpiece_text import Words

DATA = Path(os.environ.get("ATTNLAB_DATA", "no data"))
MODEL = Path(os.environ.get("ATTNLAB_MODELS", "no models"), "bert-tiny")
needs_model = pytest.mark.skipif(not MODEL.is_dir(), reason="ATTNLAB_MODELS has no bert-tiny")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="ATTNLAB_DATA is not set")

ADVERSARIAL = [
    "",
    " ",
    "\t\n\r",
    "plain words, and punctuation!",
    "don't can't U.S.A. 3.14 $5 50% a_b a-b",
    "Crème brûlée à la carte, naïve Ångström, İstanbul, ŒUVRE",
    "e\u0301 versus \u00e9, n\u0303, a\u0323\u0302",
    "ΟΔΥΣΣΕΥΣ Σ ΣΑΣ",
    "中文字符 mixed 漢字and日本語 ひらがな 한국어",
    "\uf900 \ufa0e \U0002f800",
    "zero\u200bwidth\u200djoiner\ufeff\u2060",
    "con\x00trol\x01s\x7f \x0b vertical\x0ctab \x85 next\x1cline",
    "non\u00a0breaking\u2009thin\u3000wide\u2028line",
    "\ufffd replaced",
    "a" * 100,
    "a" * 101,
    "x" * 5000,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "😀👍🏽👩‍👩‍👧 ☕ ™ © ½ ² ①",
    "—–‘’“”…«»¿¡",
    "[CLS] is [MASK]ed by[SEP][PAD][UNK]",
    "[cls] [ MASK ] [[MASK]] [MASK",
    "##ing ## # ##",
    "\ue000private\U000f0000",
    "`~!@#$%^&*()-_=+[]{}\\|;:'\",.<>/?",
    "ﬁne ﬂow ǅ ß ẞ ŉ",
    "𝐁𝐨𝐥𝐝 𝕏",
    "العربية עברית हिन्दी ไทย",
    "\u037e \u1fef \u2126 \u212b",
]


def library(pieces: list[str], **normal: bool | None) -> Tokenizer:
    """The library's own BERT tokenizer with this vocabulary."""
    built = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(**normal)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.add_special_tokens(list(SPECIAL))
    return built


@pytest.fixture(scope="module")
def pair() -> tuple[WordPiece, Tokenizer]:
    """BERT's vocabulary where it is at hand, else one learned here; ours and the library's."""
    if MODEL.is_dir():
        return WordPiece.from_pretrained(MODEL), Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    ours = WordPiece.learn(ADVERSARIAL * 3, 700)
    return ours, library(list(ours.vocabulary))


@pytest.mark.parametrize("text", ADVERSARIAL, ids=range(len(ADVERSARIAL)))
def test_odd_text_gives_the_pieces_of_the_library(pair: tuple[WordPiece, Tokenizer], text: str) -> None:
    ours, theirs = pair
    assert ours.pieces(text) == theirs.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False, None])
@pytest.mark.parametrize("ideographs", [True, False])
def test_cased_and_accented_forms_agree_with_the_library(
    pair: tuple[WordPiece, Tokenizer], lowercase: bool, strip_accents: bool | None, ideographs: bool
) -> None:
    pieces = list(pair[0].vocabulary)
    ours = WordPiece(pieces, Words(lowercase, strip_accents, ideographs))
    theirs = library(pieces, lowercase=lowercase, strip_accents=strip_accents, handle_chinese_chars=ideographs)
    for text in ADVERSARIAL:
        assert ours.piece_ids(text) == theirs.encode(text, add_special_tokens=False).ids, text


def test_random_mixtures_of_odd_characters_agree_with_the_library(pair: tuple[WordPiece, Tokenizer]) -> None:
    ours, theirs = pair
    draw = random.Random(0)
    alphabet = sorted(set("".join(ADVERSARIAL)))
    for _ in range(2000):
        text = "".join(draw.choices(alphabet, k=draw.randrange(1, 30)))
        assert ours.piece_ids(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


def real_lines() -> Iterator[str]:
    for name in ("train", "dev"):
        yield from (DATA / "sst2" / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
        for line in (DATA / "boolq" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            example = json.loads(line)
            yield from (example["question"], example["passage"], example["title"])
    for name in ("train", "valid", "test"):
        with (DATA / "yelp" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            yield from (cell for row in csv.reader(file) for cell in row)
        yield from (DATA / "wikitext2" / f"wiki.{name}.tokens").read_text(encoding="utf-8").split("\n")
    yield from (DATA / "yelp" / "unlabeled.txt").read_text(encoding="utf-8").split("\n")


@needs_data
@pytest.mark.parametrize("every", [101, pytest.param(1, marks=pytest.mark.slow)])
def test_real_text_gives_the_ids_of_the_library(pair: tuple[WordPiece, Tokenizer], every: int) -> None:
    """SST-2, BoolQ, Yelp and WikiText: a sample, and all 80,000 lines where ATTNLAB_THOROUGH is set."""
    if every == 1 and not os.environ.get("ATTNLAB_THOROUGH"):
        pytest.skip("all lines take two minutes: set ATTNLAB_THOROUGH")
    ours, theirs = pair
    for line in list(real_lines())[::every]:
        assert ours.piece_ids(line) == theirs.encode(line, add_special_tokens=False).ids, line


@pytest.mark.parametrize("truncation", ["longest_first", "only_first", "only_second"])
def test_pairs_are_framed_and_cut_as_the_library_does(pair: tuple[WordPiece, Tokenizer], truncation: str) -> None:
    ours, built = pair
    theirs = Tokenizer.from_str(built.to_str())
    if theirs.post_processor is None:
        pytest.skip("the frame is checked with a pretrained vocabulary, in ATTNLAB_MODELS")
    draw = random.Random(1)
    agreed = refused = 0
    for _ in range(300):
        first, second = ("a " * draw.randrange(12) for _ in range(2))
        longest = draw.randrange(4, 26)
        theirs.enable_truncation(longest, strategy=truncation)
        try:
            expected = theirs.encode(first, second)
        except Exception:  # the library: "Sequence to truncate too short"
            with pytest.raises(UserError, match="cannot reduce"):
                ours.encode(first, second, longest, truncation)
            refused += 1
            continue
        found = ours.encode(first, second, longest, truncation)
        assert (found.input_ids, found.token_type_ids) == (expected.ids, expected.type_ids)
        assert found.cut == (len(first.split()) + len(second.split()) + 3 > longest)
        agreed += 1
    assert agreed > 50
    assert (refused > 0) == (truncation != "longest_first")


def test_a_single_text_is_framed_and_cut(pair: tuple[WordPiece, Tokenizer]) -> None:
    ours, _ = pair
    pieces = [ours.vocabulary[id_] for id_ in ours.encode("a a a a", longest=5).input_ids]
    assert pieces == ["[CLS]", "a", "a", "a", "[SEP]"]
    with pytest.raises(UserError, match=r"no room for \[CLS\]"):
        ours.encode("a", longest=1)
    with pytest.raises(UserError, match="did you mean 'only_second'"):
        truncate([1], [2], 1, "only_secnd")


def test_decoding_agrees_with_the_library(pair: tuple[WordPiece, Tokenizer]) -> None:
    ours, built = pair
    from tokenizers import decoders

    theirs = Tokenizer.from_str(built.to_str())
    theirs.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    for text in ADVERSARIAL:
        ids = ours.encode(text, "and, more. don't?").input_ids
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip), text


def test_a_saved_tokenizer_comes_back_and_transformers_reads_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = WordPiece.learn(ADVERSARIAL * 3, 700, Words(lowercase=False, strip_accents=False))
    ours.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    again = WordPiece.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    by_list = WordPiece.from_pretrained(tmp_path)
    for text in ADVERSARIAL:
        expected = ours.encode(text, "Second Crème")
        assert again.encode(text, "Second Crème") == by_list.encode(text, "Second Crème") == expected
        found = theirs(text, "Second Crème")
        assert (found["input_ids"], found["token_type_ids"]) == (expected.input_ids, expected.token_type_ids)


def test_a_learned_vocabulary_cuts_about_as_finely_as_the_librarys(embedded: list[str]) -> None:
    ours = WordPiece.learn(embedded, 1500)
    theirs = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    theirs.normalizer, theirs.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=list(SPECIAL), show_progress=False)
    theirs.train_from_iterator(embedded, trainer)
    assert len(ours) == 1500
    assert len(set(ours.vocabulary) & set(theirs.get_vocab())) > 0.8 * 1500  # the rest are ties
    mine = sum(len(ours.piece_ids(text)) for text in embedded)
    assert mine == pytest.approx(sum(len(theirs.encode(text).ids) for text in embedded), rel=0.01)
    assert not any(ours.unknown_id in ours.piece_ids(text) for text in embedded)


@pytest.fixture(scope="module")
def embedded() -> list[str]:
    from attnlab.data.tasks.catalog import load_sentiment

    return [example.text for split in load_sentiment().values() for example in split]


def test_learning_says_what_it_cannot_do() -> None:
    with pytest.raises(UserError, match="no words"):
        WordPiece.learn(["", " \n"], 100)
    with pytest.raises(UserError, match="the text has 6 different characters"):
        WordPiece.learn(["abc def"], 8)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"vocab.txt": "[PAD]\n[UNK]\na\n"}, "no \\[CLS\\]"),
        ({"vocab.txt": "\n".join([*SPECIAL, "a", "a"])}, "'a' twice"),
        ({"vocab.txt": ""}, "is empty"),
        ({"tokenizer.json": "{"}, "line 1 is not JSON"),
        ({"tokenizer.json": '{"model": {"type": "BPE", "vocab": {}}}'}, "is not a BERT tokenizer \\(BPE"),
        ({}, "has no vocabulary"),
    ],
)
def test_a_bad_vocabulary_is_one_sentence(tmp_path: Path, content: dict[str, str], sentence: str) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=sentence) as error:
        WordPiece.from_pretrained(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
