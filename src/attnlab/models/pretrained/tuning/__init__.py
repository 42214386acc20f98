"""Ways of tuning: which weights are trained, and which are added."""

from attnlab.models.pretrained.tuning.apply import learning, tune

__all__ = ["learning", "tune"]
