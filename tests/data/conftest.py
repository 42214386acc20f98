"""Property tests here have no deadline: a busy machine is slow, not wrong."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
