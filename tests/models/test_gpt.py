import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.models.gpt import GPT, GPTShape, preset

TINY = {"layers": 2, "heads": 2, "width": 16, "context": 12, "dropout": 0.0}


def test_course_model_has_the_course_parameter_count():
    assert GPT(GPTShape(vocabulary=256, layers=4, heads=8, width=256, context=128)).parameter_count() == 3_323_392


@pytest.mark.parametrize("name", ["vanilla", "modern"])
def test_logits_do_not_depend_on_later_tokens(name):
    torch.manual_seed(0)
    model = GPT(preset(name, 11, **TINY | {"zero_init": False})).eval()
    tokens = torch.randint(11, (1, 8))
    changed = tokens.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 11
    before, after = model(tokens), model(changed)
    assert before.shape == (1, 8, 11)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_zero_initialised_blocks_begin_as_the_identity():
    model = GPT(preset("modern", 11, **TINY)).eval()
    tokens = torch.randint(11, (2, 6))
    torch.testing.assert_close(model(tokens), model.head(model.norm(model.tokens(tokens))))


def test_tied_head_is_the_embedding():
    tied, free = (GPT(GPTShape(11, tied=tied, **TINY)) for tied in (True, False))
    assert tied.head.weight is tied.tokens.weight
    assert free.parameter_count() - tied.parameter_count() == 11 * 16


@pytest.mark.parametrize("activation", ["gelu", "relu", "relu2", "silu", "swiglu"])
def test_it_memorizes_a_sequence(activation):
    torch.manual_seed(0)
    model = GPT(GPTShape(7, activation=activation, **TINY))
    tokens = torch.tensor([[1, 5, 5, 2, 6, 0, 3, 3, 4, 1]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1])[0], tokens[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


def test_mistakes_are_one_sentence():
    with pytest.raises(UserError, match="13 tokens is longer than the 12"):
        GPT(GPTShape(5, **TINY))(torch.zeros(1, 13, dtype=torch.long))
    with pytest.raises(UserError, match="did you mean 'rmsnorm'"):
        GPT(GPTShape(5, norm="rms-norm", **TINY))
    with pytest.raises(UserError, match="unknown activation 'tanh'"):
        GPT(GPTShape(5, activation="tanh", **TINY))
    with pytest.raises(UserError, match="did you mean 'modern'"):
        preset("moderne", 5)
    with pytest.raises(UserError, match="put it at the end"):
        GPT(GPTShape(5, **TINY))(torch.zeros(1, 2, dtype=torch.long), torch.tensor([[False, True]]))
    with pytest.raises(UserError, match="layers is 0"):
        GPTShape(5, layers=0)
    with pytest.raises(UserError, match="width 10 cannot be split"):
        GPTShape(5, width=10)


def test_positions_without_a_table_have_no_longest_sequence():
    longer = GPT(GPTShape(5, positions="rotary", **TINY))
    assert longer.longest is None
    assert longer(torch.zeros(1, 13, dtype=torch.long)).shape == (1, 13, 5)
