"""How this Python starts a module of the lab in a child process."""

from __future__ import annotations

import sys

MODULE = [sys.executable, "-P", "-m"]
"""With -P the present folder is not searched for modules: a `json.py` that lies in it is not what the lab imports."""
