"""Checks of a mixer: it sees no later token, decodes step by step to the same, and costs what it promises."""

from attnlab.attention.audit.run import Audit, audit, sees_future

__all__ = ["Audit", "audit", "sees_future"]
