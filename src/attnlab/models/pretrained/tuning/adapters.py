"""What the `peft` library adds to a frozen body: LoRA and its relatives, by name."""

from __future__ import annotations

from typing import Any

from torch import nn

from attnlab.base.errors import UserError, first_line

# Name here: (class of the configuration in peft, further settings).
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", {}),
    "dora": ("LoraConfig", {"use_dora": True}),
    "rslora": ("LoraConfig", {"use_rslora": True}),
    "ia3": ("IA3Config", {}),
    "loha": ("LoHaConfig", {}),
    "lokr": ("LoKrConfig", {}),
    "oft": ("OFTConfig", {}),
    "hra": ("HRAConfig", {}),
}


def add_adapter(body: Any, method: str, rank: int, alpha: float, dropout: float) -> None:
    """Freeze `body` and put adapters of `method` into it, at peft's default places for its family."""
    try:
        import peft
    except ImportError:
        raise UserError(f"--tune {method} needs peft: pip install 'attnlab[hub]'.") from None
    name, extra = ADAPTERS[method]
    kind = getattr(peft, name)
    values = {"r": rank, "lora_alpha": alpha, "alpha": alpha, "lora_dropout": dropout, **extra}
    settings = {key: value for key, value in values.items() if key in kind.__dataclass_fields__}
    if method == "oft":
        settings = {"oft_block_size": rank}  # peft takes a rank or a block size, and the block must divide the width
    for targets in ({}, {"target_modules": "all-linear"}):
        try:
            peft.inject_adapter_in_model(kind(**settings, **targets), body)
            return
        except ValueError as error:
            reason = first_line(error)
            if "target_modules" not in reason:
                break
    raise UserError(f"--tune {method}: peft does not support a {body.config.model_type} model ({reason}).")


def merge_adapters(model: nn.Module) -> None:
    """Add the adapters to the weights they modify, and remove them."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge(safe_merge=True)
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, module.get_base_layer())
