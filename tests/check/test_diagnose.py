"""Each known mistake, written as a student would write it, is named for what it is; no other is ever named."""

from __future__ import annotations

import random
import textwrap

import pytest
import torch
from tests.check.conftest import RIGHT, Checked
from tests.check.planted import HEADS, IN_THE_WHOLE, PIECE_CASES, STYLES, TWO_AT_ONCE, TWO_PIECES, UNKNOWN, UNSTEADY

from attnlab.check.catalogue import CATALOGUE
from attnlab.check.checks import CHECKS, CheckInputs
from attnlab.check.compare_answers import as_tensors
from attnlab.check.diagnose import Pieces, Probe, copies, find_mistake, find_mistake_in_whole
from attnlab.check.judge.candidate import Failure, Outcome
from attnlab.check.judge.inside.errors import error_summary
from attnlab.check.results import CheckReport, Status
from attnlab.check.sizes import draw_sizes

WHOLE = textwrap.dedent(RIGHT["self_attention"])


def failures(report: CheckReport, function: str) -> list[tuple[str | None, str]]:
    return [(r.mistake, r.advice) for r in report.results if r.function == function and r.status is Status.FAIL]


def mistakes(report: CheckReport, function: str) -> set[str | None]:
    return {mistake for mistake, _ in failures(report, function)}


def test_there_are_enough_of_them() -> None:
    planted = len(PIECE_CASES) + len(IN_THE_WHOLE) + len(TWO_AT_ONCE) + len(TWO_PIECES) + len(UNSTEADY) + len(UNKNOWN)
    assert planted >= 80 and len(STYLES) >= 15


@pytest.mark.parametrize("style", STYLES)
def test_a_right_file_of_another_style_passes_without_a_remark(style: str, checked: Checked) -> None:
    report = checked(**STYLES[style])
    assert report.passed, [(r.name, r.problem) for r in report.results if r.status is not Status.PASS]
    assert not report.remarks and not any(result.remarks for result in report.results)


def test_a_right_file_passes_everything(checked: Checked) -> None:
    report = checked()
    assert report.passed
    assert len(report.results) == len(CHECKS)
    assert not report.remarks and not any(result.remarks for result in report.results)


@pytest.mark.parametrize(("head", "body", "key"), PIECE_CASES, ids=[f"{c[0]}:{c[2]}" for c in PIECE_CASES])
def test_a_mistake_in_a_piece_is_named(head: str, body: str, key: str, checked: Checked) -> None:
    function = head.split("(")[0]
    report = checked(**{function: f"def {head}:\n    {body}\n"})
    found = failures(report, function)
    assert found and all(mistake == key for mistake, _ in found)
    others = {r.function for r in report.results if r.status is Status.FAIL} - {function, "self_attention"}
    assert others <= ({"split_heads_qkv"} if function == "split_heads" else set()), "another piece is blamed"


@pytest.mark.parametrize(("old", "new", "key"), IN_THE_WHOLE, ids=[f"{c[2]}:{c[1][:24]}" for c in IN_THE_WHOLE])
def test_a_mistake_in_self_attention_is_named(old: str, new: str, key: str | None, checked: Checked) -> None:
    assert old in WHOLE
    report = checked(self_attention=WHOLE.replace(old, new))
    assert mistakes(report, "self_attention") == {key}
    assert {r.function for r in report.results if r.status is Status.FAIL} == {"self_attention"}


@pytest.mark.parametrize(("one", "other", "keys"), TWO_AT_ONCE, ids=["+".join(sorted(c[2])) for c in TWO_AT_ONCE])
def test_two_mistakes_at_once_are_both_named(
    one: tuple[str, str], other: tuple[str, str], keys: set[str], checked: Checked
) -> None:
    report = checked(self_attention=WHOLE.replace(*one).replace(*other))
    found = mistakes(report, "self_attention")
    assert None not in found
    assert {part for key in found if key for part in key.split("+")} == keys


@pytest.mark.parametrize("pieces", TWO_PIECES, ids=["+".join(case) for case in TWO_PIECES])
def test_mistakes_in_two_pieces_are_named_in_both(pieces: dict[str, tuple[str, str]], checked: Checked) -> None:
    report = checked(**{name: f"def {HEADS[name]}:\n    return {body}\n" for name, (body, _) in pieces.items()})
    for name, (_, key) in pieces.items():
        assert mistakes(report, name) == {key}
    named = [advice for _, advice in failures(report, "self_attention")]
    assert any("this follows from" in advice and all(name in advice for name in pieces) for advice in named)


@pytest.mark.parametrize(("function", "source", "key"), UNSTEADY, ids=[f"{c[0]}:{c[2]}" for c in UNSTEADY])
def test_state_and_chance_are_named(function: str, source: str, key: str, checked: Checked) -> None:
    assert mistakes(checked(**{function: source}), function) == {key}


@pytest.mark.parametrize(("function", "source"), UNKNOWN, ids=[f"{c[0]}-{i}" for i, c in enumerate(UNKNOWN)])
def test_no_cause_is_invented(function: str, source: str, checked: Checked) -> None:
    report = checked(**{function: source})
    assert mistakes(report, function) == {None}
    assert mistakes(report, "self_attention") <= {None}


def test_heads_that_are_neither_split_nor_merged_rightly(checked: Checked) -> None:
    wrong = WHOLE.replace("y = merge_heads(y)", "y = y.reshape(B, n_tok, n_embd)")
    wrong = wrong.replace(
        "Q, K, V = split_heads_qkv(Q, K, V, n_heads)", "Q, K, V = (x.reshape(B, n_heads, n_tok, -1) for x in (Q, K, V))"
    )
    assert mistakes(checked(self_attention=wrong), "self_attention") == {"split-and-merge-without-transpose"}


def test_a_wrong_whole_is_traced_to_its_wrong_piece(checked: Checked) -> None:
    report = checked(attn_softmax="def attn_softmax(A):\n    return A.softmax(-2)\n")
    advice = {text for _, text in failures(report, "self_attention")}
    assert advice == {"this follows from attn_softmax: correct that first."}


def test_the_fused_attention_of_torch_gets_a_remark(checked: Checked) -> None:
    fused = (
        "def self_attention(Q, K, V, n_heads=1, causal=True):\n"
        "    Q, K, V = split_heads_qkv(Q, K, V, n_heads)\n"
        "    return merge_heads(F.scaled_dot_product_attention(Q, K, V, is_causal=causal))\n"
    )
    report = checked(self_attention=fused)
    assert report.passed
    assert ["self_attention leaves the work to torch's own attention" in r.text for r in report.remarks] == [True]


# In self_attention these compute the same, and the first of each is named.
SAME_IN_THE_WHOLE = {
    "scaled-twice": "scale-no-root",
    "mask-all-ones": "mask-missing",
    "mask-ignored": "mask-missing",
    "mask-additive": "mask-inverted",
    "mask-read-inverted": "mask-inverted",
    "mask-read-transposed": "mask-transposed",
}


def probes(name: str, wrong: object, seed: int) -> list[list[Probe]]:
    """What a catalogued mistake would answer to each check of its function, twice."""
    found = []
    for check in (check for check in CHECKS if check.function == name):
        pair = []
        for draw in range(2):
            sizes = draw_sizes(random.Random(f"{seed} {draw}"))
            arguments = check.arguments(CheckInputs(sizes, torch.Generator().manual_seed(draw)))
            try:
                outcome = Outcome(wrong(*copies(arguments)))  # type: ignore[operator]
            except Exception as error:
                outcome = Outcome(failure=Failure("call", error_summary(error)))
            pair.append(Probe(arguments, check.expected(*copies(arguments)), outcome))
        found.append(pair)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_distinguishes_its_mistakes(name: str, seed: int) -> None:
    """Whatever sizes are drawn. What ends in an error or in NaN may remain unexplained."""
    for mistake in CATALOGUE[name]:
        every = probes(name, mistake.wrong, seed)
        for pair in every:
            if not all(probe.right for probe in pair):
                others = [probe for other in every if other is not pair for probe in other]
                whole = name == "self_attention"
                found = find_mistake_in_whole(pair, others, Pieces()) if whole else find_mistake(name, pair, others)
                keys = {mistake.key, SAME_IN_THE_WHOLE.get(mistake.key) if whole else mistake.key}
                assert found.key in keys if found else any(map(is_open, pair)), mistake.key


def is_open(probe: Probe) -> bool:
    if probe.outcome.failure:
        return True
    return any(tensor.isnan().any() for tensor in as_tensors(probe.outcome.answer) or ())
