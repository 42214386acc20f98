"""What a function must also satisfy: precision, gradients, unchanged inputs, any size; and what only gets a remark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attnlab.check.results import CheckReport, CheckResult, Status

Checked = Callable[..., CheckReport]


def first_failure(report: CheckReport, function: str) -> CheckResult:
    return next(r for r in report.results if r.function == function and r.status is not Status.PASS)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("pairwise_similarities(q, k)", "torch.einsum('...id,...jd->...ij', q, k)"),
        ("attn_scaled(A, n_embd, n_heads)", "A / torch.sqrt(torch.tensor(n_embd / n_heads))"),
        ("make_causal_mask(n)", "torch.tril(torch.ones(n, n, dtype=torch.int64))"),
        ("apply_causal_mask(mask, A)", "A + torch.log(mask)"),
        ("merge_heads(y)", "torch.cat([y[:, h] for h in range(y.size(1))], dim=-1)"),
        ("compute_outputs(weights, values)", "(values.mT @ weights.mT).mT"),
    ],
)
def test_other_right_ways_pass(head: str, body: str, checked: Checked) -> None:
    assert checked(**{head.split("(")[0]: f"def {head}:\n    return {body}\n"}).passed


def test_the_documents_mask_pair_passes(checked: Checked) -> None:
    """Figure 8 of the exercise: a boolean mask, moved to the device, and torch.where."""
    report = checked(
        make_causal_mask="""
        DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        def make_causal_mask(n_tok:int):
            booleans = torch.ones(n_tok, n_tok, dtype=bool)
            return torch.tril(booleans).to(DEVICE)
        """,
        apply_causal_mask="def apply_causal_mask(mask, A):\n    return torch.where(mask, A, float('-inf'))\n",
    )
    assert report.passed


def test_a_failure_shows_what_was_expected_and_what_it_got(checked: Checked) -> None:
    result = first_failure(
        checked(attn_scaled="def attn_scaled(A, n_embd, n_heads):\n    return 2 * A\n"), "attn_scaled"
    )
    assert result.expected == result.came == "(3, 9, 9) float32"
    difference = result.first_difference
    assert difference is not None and difference["index"] == [0, 0, 0]
    assert difference["came"] == pytest.approx(2 * 7**0.5 * difference["expected"], rel=1e-4)
    assert isinstance(result.largest_difference, float) and result.largest_difference > 1
    assert "5.292 times too large" in result.advice


def test_right_numbers_in_the_wrong_positions_are_recognised(checked: Checked) -> None:
    report = checked(merge_heads="def merge_heads(y):\n    return y.transpose(1, 2).flatten(-2).flip(-1)\n")
    assert "right but in the wrong positions" in first_failure(report, "merge_heads").advice


@pytest.mark.parametrize(
    ("body", "problem", "advice"),
    [
        ("A.softmax(-1)", "not a tensor", "return statement missing"),
        ("return A.softmax(-1).detach().numpy()", "not a tensor", "return torch tensors"),
        ("return A.softmax(-1), A", "shape", "return 1 tensor, not 2"),
        ("return A.softmax(-1).float()", "float64 inputs give float32 outputs", "dtype"),
        ("return A.softmax(-1).detach()", "no gradient reaches A", "detach"),
        ("return A.softmax(-1)[:, :9, :9]", "right at first, but wrong", "written into the code"),
        ("raise NotImplementedError", "NotImplementedError", "not written yet"),
        ("import sys; sys.exit(3)", "SystemExit: 3", "not exit the program"),
        ("return softmax(A)", "NameError: name 'softmax' is not defined", "not defined in the file"),
        ("return attn_softmax(A)", "RecursionError", "calls itself"),
    ],
)
def test_a_wrong_answer_gets_its_problem_and_advice(body: str, problem: str, advice: str, checked: Checked) -> None:
    result = first_failure(checked(attn_softmax=f"def attn_softmax(A):\n    {body}\n"), "attn_softmax")
    assert problem in result.problem
    assert advice in result.advice


def test_an_error_has_the_line_of_the_students_file(checked: Checked, student: Callable[..., str]) -> None:
    wrong = "def compute_outputs(A, V):\n    return half(A @ V)\ndef half(x):\n    return x / 'two'\n"
    result = first_failure(checked(compute_outputs=wrong), "compute_outputs")
    assert result.line is not None
    assert student(compute_outputs=wrong).splitlines()[result.line - 1] == "    return x / 'two'"
    assert result.problem.startswith("TypeError")


def test_another_signature_is_named(checked: Checked) -> None:
    report = checked(attn_scaled="def attn_scaled(A):\n    return A\n")
    assert first_failure(report, "attn_scaled").advice == "define it as attn_scaled(A, n_embd, n_heads)."


def test_a_float_mask_under_torch_where_gets_a_hint(checked: Checked) -> None:
    report = checked(apply_causal_mask="def apply_causal_mask(mask, A):\n    return torch.where(mask, A, -1e9)\n")
    assert "mask is not boolean" in first_failure(report, "apply_causal_mask").advice


def test_self_attention_must_leave_its_inputs_alone(checked: Checked, right_functions: dict[str, str]) -> None:
    wrong = right_functions["self_attention"].replace(
        "if n_heads > 1:", "Q /= 1.5; Q *= 1.5; K += 1; K -= 1\n    if n_heads > 1:", 1
    )
    result = first_failure(checked(self_attention=wrong), "self_attention")
    assert "changed in place" in result.problem


def test_a_piece_that_works_in_place_passes_with_a_remark(checked: Checked) -> None:
    body = "def apply_causal_mask(mask, A):\n    return A.masked_fill_(mask == 0, float('-inf'))\n"
    report = checked(apply_causal_mask=body)
    assert report.passed
    assert any("A is changed in place" in text for r in report.results for text in r.remarks)


def test_a_large_negative_number_passes_with_a_remark(checked: Checked) -> None:
    report = checked(apply_causal_mask="def apply_causal_mask(mask, A):\n    return A.masked_fill(mask == 0, -1e9)\n")
    assert report.passed
    assert any("large negative number" in text for r in report.results for text in r.remarks)


def test_a_softmax_that_overflows_passes_with_a_remark(checked: Checked) -> None:
    report = checked(attn_softmax="def attn_softmax(A):\n    e = A.exp()\n    return e / e.sum(-1, keepdim=True)\n")
    assert report.passed
    assert any("overflow" in text for r in report.results for text in r.remarks)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("return nn.Linear(n_embd, 3 * n_embd)", "not a tuple of three"),
        ("w = nn.Linear(n_embd, n_embd); return w, w, w", "more than once"),
        ("return tuple(nn.Linear(n_embd, n_embd, bias=False) for _ in range(3))", "no bias"),
        ("return tuple(nn.Linear(n_embd, 7) for _ in range(3))", "maps (2, 3, 14) to (2, 3, 7)"),
        ("return torch.eye(n_embd), torch.eye(n_embd), torch.eye(n_embd)", "not torch modules"),
    ],
)
def test_projections(body: str, problem: str, checked: Checked) -> None:
    report = checked(init_qkv_proj=f"def init_qkv_proj(n_embd):\n    {body}\n")
    assert problem in first_failure(report, "init_qkv_proj").problem


def test_missing_functions_are_missing_and_the_others_checked(checked: Checked) -> None:
    report = checked(attn_softmax="def attention_softmax(A):\n    return A.softmax(-1)\n", split_heads_qkv="")
    status = {r.function: r.status for r in report.results if r.function != "self_attention"}
    assert status.pop("attn_softmax") is Status.MISSING
    assert status.pop("split_heads_qkv") is Status.MISSING
    assert set(status.values()) == {Status.PASS}
    assert "did you mean attention_softmax?" in first_failure(report, "attn_softmax").advice
    assert not report.passed


def test_the_functions_handed_out_may_be_missing(checked: Checked, right_functions: dict[str, str]) -> None:
    whole = right_functions["self_attention"].replace(
        "split_heads_qkv(Q, K, V, n_heads)", "(split_heads(x, n_heads) for x in (Q, K, V))"
    )
    assert checked(init_qkv_proj="", split_heads_qkv="", self_attention=whole).passed


def test_a_solution_that_is_imported_is_a_failure(checked: Checked) -> None:
    result = first_failure(checked(merge_heads="from attnlab.attention.pieces import merge_heads\n"), "merge_heads")
    assert (result.status, result.problem) == (Status.FAIL, "it is imported from attnlab")


def test_a_function_from_another_package_gets_a_remark(checked: Checked) -> None:
    report = checked(attn_softmax="from functools import partial\nattn_softmax = partial(F.softmax, dim=-1)\n")
    assert report.passed and not report.remarks
    report = checked(
        compute_outputs="from torch.functional import matmul as compute_outputs\n".replace(".functional", "")
    )
    assert report.passed


def test_what_a_notebook_sets_in_torch_does_not_change_the_checks(checked: Checked) -> None:
    setting = "torch.set_grad_enabled(False)\ntorch.set_default_dtype(torch.float64)\n"
    assert checked(settings=setting).passed


def test_an_unexplained_whole_points_to_its_failing_pieces(checked: Checked) -> None:
    report = checked(attn_softmax="def attn_softmax(A):\n    return A.softmax(-1) ** 2\n")
    assert first_failure(report, "self_attention").advice == "correct attn_softmax first: that may be enough."
