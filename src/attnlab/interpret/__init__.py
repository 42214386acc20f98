"""Inside a model: what flows through it by name, attention weights, heads, ablation, patching."""
