"""Checks of a mixer: it sees no later token, decodes step by step to the same, and costs what it promises."""

from attnlab.attention.audit.future import sees_future
from attnlab.attention.audit.run import Audit, audit

__all__ = ["Audit", "audit", "sees_future"]
