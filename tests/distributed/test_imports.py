"""What one process does not need is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
import attnlab.jobs.engine, attnlab.jobs.classify.job, attnlab.jobs.pretrain, attnlab.training.optimizers
import torch
from attnlab.distributed.team import current

whole = current().full_tensor(current().shard_like(torch.ones(2), torch.ones(2)))
current().spread(torch.nn.Linear(2, 2))
print(sorted(name for name in sys.modules if name.startswith(("torch.distributed.fsdp", "torch.distributed.tensor"))))
"""


def test_one_process_imports_no_sharding(cli_environment: dict[str, str], tmp_path: Path) -> None:
    """The lab's own modules do not; torch's compiler imports some of it when an optimizer is built."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=cli_environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
