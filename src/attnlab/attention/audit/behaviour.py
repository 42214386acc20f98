"""What a model asks of a mixer besides hiding the future: rows apart, padding without effect, parameters that learn,
decoding that equals one pass, finite numbers, and tokens that can meet."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention.audit.basics import MODES
from attnlab.attention.audit.future import reach_by_gradient, reach_by_perturbation
from attnlab.attention.audit.mixer import AuditedMixer, Finding, run
from attnlab.attention.parts.cache import Cache
from attnlab.attention.registry import find_variant

FEW = 0.45
"""The share of a table that may stay without use, such as offsets that the first positions do not have."""
DRAWS = 4
"""Inputs whose gradients are added up: an entry that none of them reaches is dead."""


@torch.no_grad()
def check_batch(audited: AuditedMixer) -> Finding:
    """Each row alone and among others; in training only without dropout, which draws other numbers for each row."""
    differences = {}
    for mode, training in MODES.items():
        mixer, x = audited.build(training, dropout=0.0), audited.tokens(batch=3)
        if training and _uses_randomness(mixer, x[:1]):
            continue
        whole = run(mixer, x)
        differences[mode] = max(
            audited.differs(whole[row : row + 1], run(mixer, x[row : row + 1])) for row in range(len(x))
        )
    worst = max(differences, key=lambda mode: differences[mode])
    evidence = f"a sequence alone and among others differ by {differences[worst]:.1g}"
    passed = differences[worst] <= audited.tolerance
    return Finding("batch", passed, evidence if passed else f"{evidence}, in {worst} mode")


def _uses_randomness(mixer: nn.Module, x: Tensor) -> bool:
    return not torch.equal(run(mixer, x), run(mixer, x, seed=8))


@torch.no_grad()
def check_padding(audited: AuditedMixer) -> Finding:
    """With the real tokens first, in both directions the mixer supports."""
    variant = find_variant(audited.name)
    differences, passed = [], True
    directions = {"causal": (True, variant.causal), "bidirectional": (False, variant.bidirectional)}
    for word, (causal, able) in directions.items():
        if not able:
            continue
        mixer, x = audited.build(causal=causal), audited.tokens(batch=2)
        real = x.shape[1] // 2
        padding = torch.arange(x.shape[1]) < torch.tensor([[real], [x.shape[1]]])
        noise = torch.where(padding[..., None], x, 30.0)
        worst = audited.differs(run(mixer, noise, padding)[:1, :real], run(mixer, x[:1, :real]))
        passed = passed and worst <= audited.tolerance
        differences.append(f"{word}: {worst:.1g}")
    return Finding("padding", passed, "padding changes real positions by " + ", ".join(differences))


def check_gradients(audited: AuditedMixer) -> Finding:
    """Every entry of every trained parameter has a gradient for one of several inputs as long as the context."""
    mixer = audited.build()
    sums = _gradient_sizes(audited, mixer)
    if audited.shape.causal and find_variant(audited.name).bidirectional and any(not total.all() for total in sums):
        # What only the mask hides, such as half of a table of pairs, has its use in the other form.
        other = _gradient_sizes(audited, audited.build(causal=False))
        if [total.shape for total in sums] == [total.shape for total in other]:
            sums = [total + more for total, more in zip(sums, other, strict=True)]
    trained = [parameter for parameter in mixer.parameters() if parameter.requires_grad]
    reached = {id(parameter): total for parameter, total in zip(trained, sums, strict=True)}
    largest = max((float(total.max()) for total in sums if total.numel()), default=0.0)
    dead: list[str] = []
    notes: list[str] = []
    for path, module in mixer.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in reached:
                label = f"{path}.{name}".removeprefix("inner.").removeprefix(".")
                few, what = _dead(mixer, module, path, label, reached[id(parameter)], largest)
                (notes if few else dead).extend(what)
    if dead:
        return Finding("gradients", False, "no gradient for " + ", ".join([*dead, *notes]))
    count = sum(parameter.numel() for parameter in trained)
    rest = f", but for {', '.join(notes)}" if notes else ""
    return Finding("gradients", True, f"all {count:,} numbers of its parameters have one{rest}")


def _gradient_sizes(audited: AuditedMixer, mixer: nn.Module) -> list[Tensor]:
    """For each trained parameter, the sum of the sizes of its gradients over a few inputs."""
    trained = [parameter for parameter in mixer.parameters() if parameter.requires_grad]
    sums = [torch.zeros_like(parameter) for parameter in trained]
    for seed in range(DRAWS):
        mixer.zero_grad(set_to_none=True)
        y = run(mixer, audited.tokens(batch=2, seed=20 + seed))
        if y.requires_grad:
            (y * torch.randn_like(y)).sum().backward()
        for parameter, total in zip(trained, sums, strict=True):
            if parameter.grad is not None:
                total += parameter.grad.abs()
    return sums


def _dead(
    mixer: nn.Module, module: nn.Module, path: str, label: str, total: Tensor, largest: float
) -> tuple[bool, list[str]]:
    """What of a parameter no gradient reaches, and whether that is little; `total` is the sum of its gradients' sizes.

    The corner of a table, such as offsets that the first positions do not have, is no fault.
    """
    if not total.any():
        return False, [f"all of {label}"]
    if isinstance(module, nn.Linear) and total.dim() == 2:
        # A row computes one number of the output; several projections may share a matrix.
        silent = total.amax(1) <= 1e-12 * largest
        what = f"{int(silent.sum())} of {len(silent)} rows of {label}{_parts(mixer, path, silent)}"
        return False, [what] if silent.any() else []
    entries = int((total == 0).sum())
    return entries < FEW * total.numel(), [f"{entries:,} of {total.numel():,} entries of {label}"] if entries else []


def _parts(mixer: nn.Module, path: str, silent: Tensor) -> str:
    """Which outputs of a shared matrix have no gradient, if its module has their `sizes`."""
    owner = mixer.get_submodule(path.rpartition(".")[0])
    sizes = getattr(owner, "sizes", None)
    if not isinstance(sizes, list) or sum(sizes) != len(silent):
        return ""
    pieces = zip(("queries", "keys", "values"), silent.split(sizes), strict=True)
    names = [name for name, piece in pieces if piece.all()]
    return f" ({' and '.join(names)})" if names else ""


@torch.no_grad()
def check_cache(audited: AuditedMixer) -> Finding:
    """Two texts of two rows each, decoded in turns to the end of the context, by one and by three tokens; on the way
    the rows of the first are exchanged and one is repeated."""
    mixer = audited.build()
    texts = [_Decoding(audited, mixer, seed) for seed in (1, 6)]
    for number, size in enumerate([1, 1, 3] * audited.shape.context):
        if number == 4:
            texts[0].select([1, 0, 1])
        going = [text.step(size) for text in texts]  # both, in turns
        if not any(going):
            break
    worst = max(text.worst for text in texts)
    decoded = texts[0].decoded
    passed = worst <= audited.tolerance
    late = next((text.first_wrong for text in texts if text.first_wrong is not None), None)
    where = "" if passed or late is None else f", first at position {late}"
    return Finding("cache", passed, f"{decoded} tokens decoded, {worst:.1g} off the full pass{where}")


class _Decoding:
    """A batch of two rows of different length that is decoded with a cache, compared with one pass over all of it."""

    def __init__(self, audited: AuditedMixer, mixer: nn.Module, seed: int) -> None:
        self.audited, self.mixer, self.cache = audited, mixer, Cache()
        self.x = audited.tokens(batch=2, seed=seed)
        self.full = run(mixer, self.x)
        self.worst, self.decoded = 0.0, 0
        self.first_wrong: int | None = None
        self.at = [self.x.shape[1] // 4, self.x.shape[1] // 3]
        piece = self.x.shape[1] // 3
        y = run(mixer, self.x[:, :piece], torch.arange(piece) < torch.tensor(self.at)[:, None], self.cache)
        for row, length in enumerate(self.at):
            self._compare(y[row, :length], self.full[row, :length], 0)

    def select(self, rows: list[int]) -> None:
        self.cache.select(torch.tensor(rows))
        self.x, self.full, self.at = self.x[rows], self.full[rows], [self.at[row] for row in rows]

    def step(self, size: int) -> bool:
        """Read `size` more tokens of every row; False at the end of the context."""
        if max(self.at) + size > self.x.shape[1]:
            return False
        new = torch.stack([self.x[row, at : at + size] for row, at in enumerate(self.at)])
        y = run(self.mixer, new, None, self.cache)
        for row, at in enumerate(self.at):
            self._compare(y[row], self.full[row, at : at + size], at)
        self.at = [at + size for at in self.at]
        self.decoded += size
        return True

    def _compare(self, y: Tensor, expected: Tensor, at: int) -> None:
        difference = self.audited.differs(y, expected)
        self.worst = max(self.worst, difference)
        if difference > self.audited.tolerance and self.first_wrong is None:
            self.first_wrong = at


def check_large_inputs(audited: AuditedMixer) -> Finding:
    mixer = audited.build().float()
    bad = []
    for label, size in (("inputs of 10⁴", 1e4), ("a single token of 10⁴", None), ("all zeros", 0.0)):
        x = audited.tokens().float()
        if size is None:
            x[:, x.shape[1] // 2] *= 1e4
        else:
            x = x * size
        x.requires_grad_()
        y = run(mixer, x)
        gradient = torch.autograd.grad(y.sum(), x, allow_unused=True)[0] if y.requires_grad else None
        if not y.isfinite().all():
            bad.append(f"outputs are not finite for {label}")
        elif gradient is not None and not gradient.isfinite().all():
            bad.append(f"gradients are not finite for {label}")
    return Finding("large inputs", not bad, "; ".join(bad) or "finite for inputs of 10⁴, one such token, and zeros")


def check_meeting(audited: AuditedMixer) -> Finding:
    """Which visible tokens reach which outputs. A bidirectional mixer that stays causal fails; a mixer that looks at
    some tokens only, by design, is described."""
    length = next(length for length in reversed(audited.lengths) if length <= 65 or length == audited.lengths[0])
    mixer, x = audited.build(), audited.tokens(length=length)
    reach = torch.maximum(reach_by_perturbation(mixer, audited, x), reach_by_gradient(mixer, audited, x))
    meets = reach > 1e-12
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    if not audited.shape.causal and not meets[later].any():
        return Finding("tokens meet", False, "it stays causal: no output depends on a later token")
    visible = ~later if audited.shape.causal else torch.ones_like(later)
    apart = int((visible & ~meets).sum())
    if not apart:
        return Finding("tokens meet", True, f"every output depends on every visible token ({length} tokens)")
    total = int(visible.sum())
    t, j = (visible & ~meets).nonzero()[-1].tolist()
    evidence = f"{apart} of {total} visible pairs never meet, such as output {t} and token {j} of {length}"
    return Finding("tokens meet", None, evidence)
