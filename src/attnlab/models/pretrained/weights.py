"""Weight files by what they say of themselves: names, shapes and dtypes, without reading a weight.

A safetensors file begins with the length of a JSON header (8 bytes, little-endian) and the header:
{"name": {"dtype": "F32", "shape": [...], "data_offsets": [from, to]}, ...}; offsets count from the header's end.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.wordpiece_files import read_json

SAFE, SAFE_INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LONGEST_HEADER = 100_000_000
Shapes = dict[str, tuple[int, ...]]


def weight_files(folder: Path) -> list[Path]:
    """The files the weights are in, all there: one safetensors, its parts by their index, or a pytorch_model.bin."""
    if (folder / SAFE).is_file():
        return [folder / SAFE]
    index = folder / SAFE_INDEX
    if index.is_file():
        parts = read_json(index).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise UserError(f"{index} names no files: fetch it again.")
        paths = [folder / Path(str(part)).name for part in dict.fromkeys(parts.values())]
        if absent := [path.name for path in paths if not path.is_file()]:
            raise UserError(f"{folder} lacks {absent[0]}, which {SAFE_INDEX} names: fetch the model again.")
        return paths
    if (folder / PICKLED).is_file():
        return [folder / PICKLED]
    raise UserError(f"{folder} has no weights: there must be a {SAFE} (or its parts) or a {PICKLED} in it.")


def read_shapes(path: Path) -> Shapes:
    """Names and shapes in a safetensors file, which must be as long as they say."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = json.loads(file.read(length)) if 2 <= length <= LONGEST_HEADER else {}
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        shapes = {name: tuple(map(int, entry["shape"])) for name, entry in tensors.items()}
        end = 8 + length + max(int(entry["data_offsets"][1]) for entry in tensors.values())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise UserError(f"{path} is no safetensors file, or only a part of one: fetch it again.") from None
    if path.stat().st_size != end:
        raise UserError(f"{path} has {path.stat().st_size:,} bytes and should have {end:,}: fetch it again.")
    return shapes


def shapes_in(folder: Path) -> Shapes | None:
    """Names and shapes of all weights; None where only a pickle has them, which takes torch to open."""
    files = weight_files(folder)
    if files[0].name == PICKLED:
        return None
    return {name: shape for path in files for name, shape in read_shapes(path).items()}


def pickled_shapes(path: Path) -> Shapes:
    """Names and shapes in a pytorch_model.bin, unpickled as tensors without memory; code in it is refused."""
    import torch

    try:
        found = torch.load(path, map_location="meta", weights_only=True)
        return {str(name): tuple(tensor.shape) for name, tensor in found.items()}
    except Exception as error:  # pickle's own errors share no base class
        reason = str(error).strip().split("\n")[0].rstrip(".")[:120] or type(error).__name__
        raise UserError(f"{path} cannot be read as weights ({reason}): fetch it again.") from None


def count(shapes: Shapes) -> int:
    """Parameters; old files keep the positions 0, 1, 2 … as well, which are none."""
    return sum(math.prod(shape) for name, shape in shapes.items() if not name.endswith("position_ids"))
