"""Each known mistake, written as a student would write it, is named for what it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attnlab.check.catalogue import CATALOGUE
from attnlab.check.checks import CHECKS, CheckInputs
from attnlab.check.compare_answers import same
from attnlab.check.diagnose import attempt, copies, find_mistake
from attnlab.check.results import CheckReport, Status

# (the body of the student's function, the expected mistake)
IN_PIECES = {
    "pairwise_similarities(Q, K)": [
        ("return torch.einsum('...qd,...kd->...kq', Q, K)", "query-key-order"),
        ("return torch.matmul(Q, K)", "no-transpose"),
        ("return torch.matmul(Q, K.transpose(1, 2))", "transpose-middle-axes"),
        ("return torch.matmul(Q, K.transpose(0, 1))", "transpose-first-axes"),
        ("return torch.matmul(Q.transpose(-1, -2), K)", "feature-products"),
        ("return torch.mul(Q, K)", "elementwise"),
        ("return (Q / K.shape[-1] ** 0.5) @ K.mT", "scaled-twice"),
    ],
    "attn_scaled(A, n_embd, n_heads)": [
        ("return A * n_embd ** -0.5", "scale-full-width"),
        ("return A", "scale-missing"),
        ("return A * n_heads / n_embd", "scale-no-root"),
        ("return A * torch.sqrt(torch.tensor(n_embd / n_heads))", "scale-multiplied"),
        ("return A / n_embd", "scale-full-width-no-root"),
        ("return A / n_embd ** 0.5 * n_heads", "scale-heads-twice"),
        ("return A * (n_embd * n_heads) ** -0.5", "scale-heads-multiplied"),
        ("return A / int((n_embd / n_heads) ** 0.5)", "scale-integer-division"),
        ("return A / A.shape[-1] ** 0.5", "scale-by-tokens"),
    ],
    "attn_softmax(A)": [
        ("return F.softmax(A, dim=-2)", "softmax-over-queries"),
        ("return F.softmax(A, dim=0)", "softmax-over-batch"),
        ("return F.softmax(A, dim=1)", "softmax-dim-1"),
        ("return F.softmax(A, dim=2)", "softmax-dim-2"),
        ("return torch.exp(A) / torch.exp(A).sum((-1, -2), keepdim=True)", "softmax-over-everything"),
        ("return torch.exp(A)", "softmax-not-normalised"),
        ("return F.log_softmax(A, dim=-1)", "softmax-log"),
        ("return 1 / (1 + torch.exp(-A))", "softmax-sigmoid"),
    ],
    "compute_outputs(A, V)": [
        ("return torch.einsum('...ji,...jd->...id', A, V)", "weights-transposed"),
        ("return torch.matmul(V, A)", "values-first"),
        ("return torch.matmul(V.mT, A)", "values-transposed"),
    ],
    "make_causal_mask(n_tok)": [
        ("return torch.triu(torch.ones(n_tok, n_tok))", "mask-transposed"),
        ("return torch.triu(torch.ones(n_tok, n_tok), diagonal=1)", "mask-inverted"),
        ("return torch.arange(n_tok)[:, None] > torch.arange(n_tok)", "mask-no-diagonal"),
        ("return torch.tril(torch.ones(n_tok, n_tok), 1)", "mask-one-too-far"),
        ("return torch.ones(n_tok, n_tok)", "mask-all-ones"),
        ("return nn.Transformer.generate_square_subsequent_mask(n_tok)", "mask-additive"),
        ("return torch.tril(torch.ones(1, 1, n_tok, n_tok))", "mask-extra-axes"),
    ],
    "apply_causal_mask(mask, A)": [
        ("return A * mask", "masked-with-zero"),
        ("return A.masked_fill(mask == 1, float('-inf'))", "mask-read-inverted"),
        ("A.masked_fill(mask == 0, float('-inf')); return A", "mask-ignored"),
        ("return A.masked_fill(mask.transpose(0, 1) == 0, float('-inf'))", "mask-read-transposed"),
        ("return A + torch.where(mask == 1, 1.0, 0.0)", "mask-added"),
        ("return A + (mask == 0) * float('-inf')", "mask-nan"),
        ("return A.masked_fill(mask == 0, 1e-9)", "masked-with-zero"),
        ("return A.masked_fill(mask == 0, float('inf'))", "masked-with-plus-infinity"),
    ],
    "split_heads(Q, n_heads)": [
        ("B, T, C = Q.shape; return Q.view(B, n_heads, T, C // n_heads)", "split-without-transpose"),
        ("B, T, C = Q.shape; return Q.view(B, T, n_heads, C // n_heads)", "split-not-transposed"),
        ("B, T, C = Q.shape; return Q.view(B, T, -1, n_heads).permute(0, 3, 1, 2)", "split-interleaved"),
        ("B, T, C = Q.shape; return Q.view(B, T, n_heads, -1).permute(0, 2, 3, 1)", "split-features-before-tokens"),
        ("return torch.stack(Q.split(Q.shape[-1] // n_heads, dim=-1))", "split-heads-first"),
        ("return Q", "split-ignored"),
    ],
    "split_heads_qkv(Q, K, V, n_heads)": [
        ("return split_heads(Q, n_heads), split_heads(V, n_heads), split_heads(K, n_heads)", "qkv-order"),
        ("return tuple(split_heads(Q, n_heads) for _ in range(3))", "qkv-repeated"),
        ("return split_heads(Q, n_heads), split_heads(K, n_heads), V", "qkv-one-unsplit"),
    ],
    "merge_heads(y)": [
        ("B, H, T, D = y.shape; return y.reshape(B, T, H * D)", "merge-without-transpose"),
        ("return y.permute(0, 2, 1, 3)", "merge-not-reshaped"),
        ("B, H, T, D = y.shape; return y.permute(0, 2, 3, 1).reshape(B, T, H * D)", "merge-interleaved"),
        ("return torch.mean(y, dim=1)", "merge-averaged"),
        ("return y", "merge-ignored"),
    ],
}
PIECE_CASES = [(head, body, key) for head, mutants in IN_PIECES.items() for body, key in mutants]


def failures(report: CheckReport, function: str) -> list[tuple[str | None, str]]:
    return [(r.mistake, r.advice) for r in report.results if r.function == function and r.status is Status.FAIL]


def test_a_right_file_passes_everything(checked: Callable[..., CheckReport]) -> None:
    report = checked()
    assert report.passed
    assert len(report.results) == len(CHECKS)
    assert not report.remarks and not any(result.remarks for result in report.results)


@pytest.mark.parametrize(("head", "body", "key"), PIECE_CASES, ids=[f"{c[0]}:{c[2]}" for c in PIECE_CASES])
def test_a_mistake_in_a_piece_is_named(head: str, body: str, key: str, checked: Callable[..., CheckReport]) -> None:
    function = head.split("(")[0]
    report = checked(**{function: f"def {head}:\n    {body}\n"})
    found = failures(report, function)
    assert found and all(mistake == key for mistake, _ in found)
    others = {r.function for r in report.results if r.status is Status.FAIL} - {function, "self_attention"}
    assert others <= ({"split_heads_qkv"} if function == "split_heads" else set()), "another piece is blamed"


# (the replaced code in the right self_attention, its replacement, the expected mistake)
IN_THE_WHOLE = [
    (
        "A = apply_causal_mask(mask, A)\n    A = attn_softmax(A)",
        "A = attn_softmax(A).masked_fill(mask == 0, 0)\n    else:\n        A = attn_softmax(A)",
        "mask-after-softmax",
    ),
    (
        "A = apply_causal_mask(mask, A)\n    A = attn_softmax(A)",
        "A = apply_causal_mask(mask, attn_softmax(A))\n    else:\n        A = attn_softmax(A)",
        "mask-after-softmax",
    ),
    ("if causal:", "if False:", "mask-missing"),
    ("if causal:", "if True:", "mask-always"),
    ("if causal:", "if not causal:", "mask-flag-inverted"),
    ("mask = make_causal_mask(n_tok)", "mask = make_causal_mask(n_tok).T", "mask-transposed"),
    ("A = apply_causal_mask(mask, A)", "A = A * mask", "masked-with-zero"),
    ("attn_scaled(A, n_embd, n_heads)", "attn_scaled(A, n_embd, 1)", "scale-full-width"),
    ("attn_scaled(A, n_embd, n_heads)", "A", "scale-missing"),
    ("attn_scaled(A, n_embd, n_heads)", "attn_scaled(A, Q.size(-1), n_heads)", "scale-heads-twice"),
    ("attn_scaled(A, n_embd, n_heads)", "A / Q.size(-1)", "scale-no-root"),
    ("if n_heads > 1:", "if False:", "heads-only-in-scale"),
    ("n_embd = Q.size()", "n_embd = Q.size()\n    n_heads = 1", "heads-ignored"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(K, Q)", "query-key-order"),
    ("pairwise_similarities(Q, K)", "pairwise_similarities(Q, Q)", "key-is-query"),
    ("compute_outputs(A, V)", "compute_outputs(A, K)", "value-is-key"),
    ("compute_outputs(A, V)", "compute_outputs(A.mT, V)", "weights-transposed"),
    ("attn_softmax(A)", "F.softmax(A, dim=-2)", "softmax-over-queries"),
    ("y = merge_heads(y)", "y = y.reshape(B, n_tok, n_embd)", "merge-without-transpose"),
    (
        "Q, K, V = split_heads_qkv(Q, K, V, n_heads)",
        "Q, K, V = (x.reshape(B, n_heads, n_tok, -1) for x in (Q, K, V))",
        "split-without-transpose",
    ),
]


@pytest.mark.parametrize(("old", "new", "key"), IN_THE_WHOLE, ids=[f"{c[2]}:{c[1][:24]}" for c in IN_THE_WHOLE])
def test_a_mistake_in_self_attention_is_named(
    old: str, new: str, key: str, checked: Callable[..., CheckReport], right_functions: dict[str, str]
) -> None:
    right = right_functions["self_attention"]
    assert old in right
    wrong = right.replace(old, new)
    report = checked(self_attention=wrong)
    found = failures(report, "self_attention")
    assert found and {mistake for mistake, _ in found} == {key}
    assert {r.function for r in report.results if r.status is Status.FAIL} == {"self_attention"}


def test_two_mistakes_at_once_are_both_named(
    checked: Callable[..., CheckReport], right_functions: dict[str, str]
) -> None:
    wrong = right_functions["self_attention"].replace("attn_scaled(A, n_embd, n_heads)", "A")
    wrong = wrong.replace("attn_softmax(A)", "F.softmax(A, dim=-2)")
    mistakes = {mistake for mistake, _ in failures(checked(self_attention=wrong), "self_attention")}
    assert mistakes == {"scale-missing+softmax-over-queries"}


def test_heads_that_are_neither_split_nor_merged_rightly(
    checked: Callable[..., CheckReport], right_functions: dict[str, str]
) -> None:
    wrong = right_functions["self_attention"].replace("y = merge_heads(y)", "y = y.reshape(B, n_tok, n_embd)")
    wrong = wrong.replace(
        "Q, K, V = split_heads_qkv(Q, K, V, n_heads)", "Q, K, V = (x.reshape(B, n_heads, n_tok, -1) for x in (Q, K, V))"
    )
    mistakes = {mistake for mistake, _ in failures(checked(self_attention=wrong), "self_attention")}
    assert mistakes == {"split-and-merge-without-transpose"}


def test_a_wrong_whole_is_traced_to_its_wrong_piece(checked: Callable[..., CheckReport]) -> None:
    report = checked(attn_softmax="def attn_softmax(A):\n    return A.softmax(-2)\n")
    advice = {text for _, text in failures(report, "self_attention")}
    assert advice == {"this follows from attn_softmax: correct that first."}


# In self_attention these compute the same, and the first of each is named.
SAME_IN_THE_WHOLE = {
    "scaled-twice": "scale-no-root",
    "mask-all-ones": "mask-missing",
    "mask-ignored": "mask-missing",
    "mask-additive": "mask-inverted",
    "mask-read-inverted": "mask-inverted",
    "mask-read-transposed": "mask-transposed",
}
# These end there in an error that other mistakes raise as well, so none is named.
UNCLEAR_IN_THE_WHOLE = {"elementwise", "feature-products", "values-first", "no-transpose"}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_distinguishes_its_mistakes(name: str) -> None:
    for mistake in CATALOGUE[name]:
        named = set()
        for check in (check for check in CHECKS if check.function == name):
            arguments = check.arguments(CheckInputs())
            expected = check.expected(*copies(arguments))
            outcome = attempt(mistake.wrong, copies(arguments))
            if outcome.error is not None or not same(expected, outcome.answer):
                found = find_mistake(name, mistake.wrong, arguments, outcome)
                named.add(found.key if found else None)
        if name != "self_attention":
            assert named == {mistake.key}
        elif mistake.key in UNCLEAR_IN_THE_WHOLE:
            assert named == {None}
        elif mistake.key != "mask-extra-axes":  # which is broadcast and harmless there
            assert named == {SAME_IN_THE_WHOLE.get(mistake.key, mistake.key)}
