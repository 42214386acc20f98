"""What to do about an error raised inside a person's function, from its type and message, `RuntimeError: ...`."""

from __future__ import annotations

import re

HINTS = (
    (r"^NotImplementedError", "this function is not written yet."),
    (r"expected condition to be a boolean", "the mask is not boolean: convert it with mask.bool() or mask == 1."),
    (r"operator\.invert|bitwise_not", "~ needs a boolean mask: convert it with mask.bool(), or write mask == 0."),
    (r"with a bool tensor is not supported", "a boolean mask cannot be subtracted: write ~mask."),
    (r"masked_fill.* bool|only supports boolean masks", "masked_fill needs a boolean mask: write mask == 0."),
    (r"view size is not compatible", "view does not work after a transpose: use reshape, or contiguous() first."),
    (r"shape '.*' is invalid for input", "the sizes in the reshape do not multiply to the number of entries."),
    (r"CUDA|NVIDIA|cuda", "checks run without a GPU: choose the device with torch.cuda.is_available()."),
    (r"truth value|Boolean value of Tensor", "a tensor of several entries is used as a condition: use torch.where."),
    (r"same dtype|but got Double|float != double", "a tensor of fixed precision is mixed in: use the input's dtype."),
    (r"not implemented for '(Long|Int|Bool)'", "this needs floating-point numbers, not integers or booleans."),
    (r"must match the size|mat1 and mat2|Expected size for", "the shapes do not fit: print them before this line."),
    (r"^SystemExit", "a function must return its answer, not exit the program."),
    (r"^NameError", "this name is not defined in the file, or the line that defines it did not run."),
    (r"^MemoryError|can't allocate memory|not enough memory", "it needs far more memory than these sizes explain."),
    (r"attnlab is out of reach", "write it yourself: nothing of attnlab can be used while a file is checked."),
    (r"^RecursionError", "the function calls itself without end."),
)


def error_hint(summary: str) -> str:
    return next((advice for pattern, advice in HINTS if re.search(pattern, summary)), "")
