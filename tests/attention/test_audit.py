"""The audit passes sound mixers, and finds each fault of an unsound one."""

import pytest
import torch

from attnlab.attention import VARIANTS, MixerShape, build_mixer
from attnlab.attention.audit import run as module
from attnlab.attention.audit.cost import Growth, exponent, growth, peak_bytes
from attnlab.attention.audit.future import AuditedMixer, sees_future
from attnlab.attention.audit.run import audit, check_cost, check_half
from attnlab.base.errors import UserError
from attnlab.base.trust import allow

SMALL = MixerShape(width=8, heads=2, context=20)

TEMPLATE = """
import os, signal, torch
from torch import nn

class Mine(nn.Module):
    {attributes}

    def __init__(self, shape):
        super().__init__()
        self.value = nn.Linear(shape.width, shape.width)
        self.unused = nn.Linear(2, 2) if {unused} else None

    def forward(self, x{arguments}):
        T = x.shape[1]
        past = torch.ones(T, T, dtype=x.dtype).tril()
        v = self.value(x)
        {body}
"""


@pytest.fixture
def own(tmp_path):
    def write(body, arguments="", attributes="memory = 2", unused=False):
        file = tmp_path / "mine.py"
        file.write_text(TEMPLATE.format(body=body, arguments=arguments, attributes=attributes, unused=unused))
        allow(file)
        return str(file)

    return write


def failed(name, shape=SMALL):
    return {f.check: f.evidence for f in audit(name, shape, cost=False, half=False).findings if f.passed is False}


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - {"naive-mask", "argmax"}))
def test_sound_variants_pass(name):
    assert failed(name, MixerShape(width=8, heads=2, context=70)) == {}


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - {"argmax"}))
def test_all_pass_when_bidirectional(name):
    assert failed(name, MixerShape(width=8, heads=2, context=20, causal=False)) == {}


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_vanilla_passes_with_positions_inside(positions):
    assert failed("vanilla", MixerShape(width=8, heads=2, context=20, positions=positions)) == {}


def test_the_naive_mask_is_caught_through_its_normaliser():
    found = failed("naive-mask")
    assert set(found) == {"future, by gradient", "future, by perturbation", "cache"}
    assert "in the sum that normalises the weights" in found["future, by gradient"]
    assert "in the sum that normalises the weights" in sees_future("naive-mask")
    assert sees_future("vanilla") is None


def test_argmax_is_caught_without_gradients_for_queries_and_keys():
    found = failed("argmax")
    assert set(found) == {"gradients"}
    assert "(queries and keys)" in found["gradients"]


def test_reading_the_future_is_distinguished_from_normalising_by_it(own):
    found = failed(own("return past.T @ v.relu() / T"))
    assert "reads the content of later tokens" in found["future, by gradient"]
    assert {"future, by perturbation", "cache", "padding"} <= set(found)
    found = failed(own("return past.T @ v / T"))
    assert "their mean or variance reaches it" in found["future, by gradient"]


def test_a_future_hidden_from_gradients_is_found_by_perturbation(own):
    found = failed(own("return past @ v * (1 + x.detach().amax(1, keepdim=True))"))
    assert "future, by gradient" not in found
    assert "future, by perturbation" in found


def test_knowing_the_length_is_knowing_the_future(own):
    found = failed(own("return past @ v / T"))
    assert "future, by gradient" not in found
    assert "future, by perturbation" in found


def test_mixing_sequences_of_a_batch_is_found(own):
    assert set(failed(own("return past @ v - x.mean(0, keepdim=True)", ", padding=None"))) >= {"batch"}


def test_padding_that_is_ignored_is_found(own):
    body = "return v + (0 if {causal} else x.mean(1, keepdim=True))".format(causal="getattr(self, 'causal', False)")
    assert "padding" in failed(own(body, attributes="causal = False"), MixerShape(8, 2, 20, causal=False))


def test_parameters_without_gradient_are_named(own):
    assert "all of unused.weight, all of unused.bias" in failed(own("return past @ v", unused=True))["gradients"]


def test_a_cache_that_forgets_is_found(own):
    assert set(failed(own("return past @ v", ", padding=None, cache=None"))) == {"cache"}


def test_overflow_is_found(own):
    found = failed(own("e = x.exp(); return past @ (e * v) / (past @ e)"))
    assert "outputs are not finite" in found["large inputs"]


def test_another_shape_is_one_sentence(own):
    with pytest.raises(UserError, match="expected to return"):
        audit(own("return v[..., :3]"), SMALL)


def test_too_short_a_sequence_is_one_sentence():
    with pytest.raises(UserError, match="a context of 5 is too short for an audit"):
        audit("vanilla", MixerShape(8, 2, 5))
    assert failed("vanilla", MixerShape(8, 2, 12)) == {}


def test_a_mixer_that_needs_32_bits_is_audited_in_them(own):
    assert failed(own("return (past.float() @ v.float())")) == {}


def test_half_precision_is_tried_in_a_process_that_may_die(own):
    body = "print('{'); x.dtype == torch.float16 and os.kill(os.getpid(), signal.SIGILL); return past @ v"
    findings = check_half(AuditedMixer(own(body), SMALL, torch.float32))
    assert findings[0].passed is False
    assert findings[0].evidence == "the process died"
    assert findings[1].passed is None  # never reached


@pytest.mark.slow
def test_half_precision_of_a_sound_variant():
    assert all(finding.passed is not False for finding in check_half(AuditedMixer("aft-full", SMALL, torch.float64)))


def test_exponents_are_slopes():
    lengths = [64, 128, 256, 512]
    assert exponent(lengths, [3e-6 * t**2 for t in lengths]) == pytest.approx(2)
    assert exponent(lengths, [5.0 * t for t in lengths]) == pytest.approx(1)
    assert Growth(lengths, [t**1.5 for t in lengths], [t**0.5 for t in lengths]).time == pytest.approx(1.5)


def test_peak_memory_counts_what_is_alive_at_once():
    def work():
        a = torch.zeros(1000)
        b = a + 1  # 2 alive
        del a
        c = b * 2  # 2 alive
        c.view(10, 100).add_(1)  # no new memory
        return torch.cat((b, c))  # 4 alive

    assert peak_bytes(work) == 4 * 4000


def test_memory_of_explicit_weights_grows_faster_than_of_the_fused_kernel():
    shape = MixerShape(8, 1, 8)
    lengths = (128, 256, 512)
    powers = {
        name: growth(lambda s, name=name: build_mixer(name, s), shape, lengths, repeats=1).memory
        for name in ("vanilla", "pieces", "linear", "fastformer", "aft-simple", "aft-local", "aft-conv", "performer")
    }
    assert powers.pop("pieces") > 1.8
    assert all(power < 1.15 for power in powers.values()), powers


def test_a_broken_promise_is_found(own, monkeypatch):
    measured = Growth([100, 200, 400], [1.0, 4.0, 16.0], [1.0, 2.0, 4.0])
    monkeypatch.setattr(module, "growth", lambda build, shape: measured)
    path = own("return past @ v", attributes="time = 1; memory = 1")
    time, memory = check_cost(AuditedMixer(path, SMALL, torch.float64))
    assert time.passed is False
    assert "T^2.00 measured over T = 100 to 400, T^1 promised" in time.evidence
    assert memory.passed is True
    free, _ = check_cost(AuditedMixer(own("return past @ v", attributes="pass"), SMALL, torch.float64))
    assert free.passed is None


def test_the_audit_leaves_the_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    audit("vanilla", SMALL, cost=False, half=False)
    assert torch.rand(1) == expected


@pytest.mark.parametrize("shape", [MixerShape(16, 4, 10**14), MixerShape(10**14, 4, 16)])
def test_sizes_that_no_machine_audits_are_refused(shape: MixerShape) -> None:
    with pytest.raises(UserError, match="at most 2,048 tokens"):
        audit("vanilla", shape)
