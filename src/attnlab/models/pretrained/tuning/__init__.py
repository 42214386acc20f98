"""Ways of tuning: which weights learn, and which are added."""

from attnlab.models.pretrained.tuning.apply import learning, tune

__all__ = ["learning", "tune"]
