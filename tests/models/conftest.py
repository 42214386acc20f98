import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tensors this small are computed faster than a second thread is woken."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
