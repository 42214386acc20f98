"""A user's file as a variant, and the messages when it is wrong."""

import pytest
import torch

from attnlab.attention import Cache, MixerShape, build_mixer
from attnlab.attention.starter import write_starter
from attnlab.base.errors import UserError
from attnlab.base.trust import allow
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT, GPTShape

SHAPE = MixerShape(width=8, heads=2, context=12)

AVERAGE = """
import torch

class Average(torch.nn.Module):
    equation = "mean of the past"
    time = 1

    def __init__(self, shape):
        super().__init__()
        self.output = torch.nn.Linear(shape.width, shape.width)

    def forward(self, x):
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
        return self.output(x.cumsum(1) / counts[:, None])
"""


@pytest.fixture
def own(tmp_path):
    def write(text):
        file = tmp_path / "mine.py"
        file.write_text(text)
        allow(file)
        return str(file)

    return write


@torch.no_grad()
def test_a_file_with_one_class_is_a_variant_and_decodes_without_knowing_how(own):
    mixer = build_mixer(own(AVERAGE), SHAPE).double()
    x = torch.randn(2, 10, 8).double()
    full, cache = mixer(x), Cache()
    torch.testing.assert_close(full[:, 3], mixer.inner.output(x[:, :4].mean(1)))
    mixer(x[:, :5], torch.arange(5) < torch.tensor([[3], [5]]), cache)
    for step in range(4):
        y = mixer(torch.stack((x[0, 3 + step], x[1, 5 + step]))[:, None], None, cache)
        torch.testing.assert_close(y[:, 0], torch.stack((full[0, 3 + step], full[1, 5 + step])))


def test_a_model_takes_the_path_as_a_name(own):
    shape = GPTShape(5, layers=2, heads=2, width=8, context=8, attention=own(AVERAGE), zero_init=True)
    model = GPT(shape)
    assert not model.blocks[0].mixer.inner.output.weight.any()
    assert len(generate(model, [[1], [2, 3]], 3)[1].tokens) == 3


def test_helpers_are_allowed_beside_a_class_named_mixer(own):
    text = AVERAGE.replace("class Average", "class Helper(torch.nn.Module): pass\n\nclass Mixer")
    assert type(build_mixer(own(text), SHAPE).inner).__name__ == "Mixer"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "contains no torch.nn.Module class"),
        (AVERAGE + AVERAGE.replace("Average", "Other"), r"contains 2 module classes \(Average, Other\)"),
        (AVERAGE.replace("def forward(self, x):", "def forward(self x):"), r"mine.py, line 12: invalid syntax"),
        ("import sys\nsys.exit(0)", r"mine.py, line 2: cannot be loaded: it calls sys.exit"),
        (AVERAGE.replace("x.cumsum(1)", "exit(0)"), "line 14: forward fails: it calls sys.exit"),
        ("import torch\nimport nowhere", r"mine.py, line 2: cannot be loaded: ModuleNotFoundError"),
        (AVERAGE.replace("shape.width, shape", "shape.breadth, shape"), r"line 10: Average\(shape\) cannot be built"),
        (AVERAGE.replace("x.cumsum(1)", "x.cumsom(1)"), "line 14: forward fails: AttributeError"),
        (
            AVERAGE.replace("counts[:, None])", "counts[:, None])[:, 1:]"),
            r"Average.forward expected to return \(B, T, C\) = \(1, 4, 8\), the shape of its input, got \(1, 3, 8\)",
        ),
        (AVERAGE.replace("time = 1", "causal = False"), "cannot be causal"),
    ],
)
def test_what_is_wrong_is_one_sentence(own, text, sentence):
    with pytest.raises(UserError, match=sentence):
        build_mixer(own(text), SHAPE)(torch.randn(1, 4, 8))


def test_a_causal_only_mixer_is_not_built_bidirectional(own):
    path = own(AVERAGE.replace("time = 1", "bidirectional = False"))
    with pytest.raises(UserError, match="causal only"):
        build_mixer(path, MixerShape(8, 2, 12, causal=False))


def test_a_missing_file_is_reported():
    with pytest.raises(UserError, match=r"there is no file nowhere/mine\.py"):
        build_mixer("nowhere/mine.py", SHAPE)


def test_the_template_works_and_so_does_its_test(tmp_path):
    mixer, test = write_starter("my-idea", tmp_path)
    allow(mixer)
    assert build_mixer(str(mixer), SHAPE)(torch.randn(2, 5, 8)).shape == (2, 5, 8)
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(test)]) == 0


@pytest.mark.parametrize("name", ["1st", "class", "a b", "../up", ""])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="cannot be the name of a Python file"):
        write_starter(name, tmp_path)


def test_nothing_is_overwritten(tmp_path):
    mixer, _ = write_starter("mine", tmp_path)
    mixer.write_text("precious")
    with pytest.raises(UserError, match="exists already"):
        write_starter("mine", tmp_path)
    assert mixer.read_text() == "precious"
