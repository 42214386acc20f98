import pytest
import torch

from attnlab.attention import MixerShape, build_mixer
from attnlab.attention.variants import grouped, linear


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tensors this small are computed faster than a second thread is woken."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tiny(monkeypatch):
    """Builds mixers of width 8 with 4 heads in 64 bits, with several chunks and groups in a short sequence."""
    monkeypatch.setattr(linear, "CHUNK", 8)
    monkeypatch.setattr(grouped, "groups_for", lambda heads: 2)

    def build(name, **changes):
        torch.manual_seed(0)
        mixer = build_mixer(name, MixerShape(width=8, heads=4, context=24, **changes)).double().eval()
        for key, parameter in mixer.named_parameters():  # so that biases and small tables matter
            if parameter.dim() == 1 or "table" in key or "pooling" in key or key.endswith(".b"):
                torch.nn.init.normal_(parameter, std=0.5)
        return mixer

    return build
