import json

from typer.testing import CliRunner

from attnlab.attention import VARIANTS
from attnlab.base.errors import UserError
from attnlab.cli import app

QUICK = ["--no-cost", "--no-half", "--context", "20", "--width", "8", "--heads", "2"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_every_variant_is_listed_with_equation_paper_and_cost():
    rows = json.loads(run("attention", "--json").stdout)
    assert {row["name"] for row in rows} == set(VARIANTS)
    assert all(row["equation"] and row["paper"] and row["time"] and row["memory"] for row in rows)
    text = run("attention").stdout
    assert "aft-simple" in text
    assert "O(T²)" in text


def test_audit_exits_with_1_when_something_fails():
    sound, leaky = run("audit", "vanilla", *QUICK), run("audit", "naive-mask", *QUICK)
    assert sound.exit_code == 0
    assert "FAIL" not in sound.stdout
    assert leaky.exit_code == 1
    assert "FAIL" in leaky.stdout


def test_audit_as_json():
    report = json.loads(run("audit", "argmax", "--json", *QUICK).stdout)
    assert report["passed"] is False
    assert {f["check"] for f in report["findings"] if f["passed"] is False} == {"gradients"}


def test_audit_both_ways():
    assert run("audit", "naive-mask", "--bidirectional", *QUICK).exit_code == 0


def test_unknown_attention_is_a_users_error():
    error = run("audit", "vanila", *QUICK).exception
    assert isinstance(error, UserError)
    assert "did you mean 'vanilla'" in str(error)


def test_new_attention_writes_a_file_that_passes_the_audit(tmp_path):
    made = run("new", "attention", "my-idea", "--folder", str(tmp_path))
    assert made.exit_code == 0
    assert run("audit", str(tmp_path / "my_idea.py"), *QUICK).exit_code == 0


def test_new_attention_needs_a_folder(tmp_path):
    error = run("new", "attention", "mine", "--folder", str(tmp_path / "nowhere")).exception
    assert isinstance(error, UserError)
