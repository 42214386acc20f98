"""Attention Lab: take attention apart, put Transformers together, train and compare them honestly.

Importing the package is cheap: torch and the rest are loaded by the modules that need them.
"""

from attnlab.version import __version__

__all__ = ["__version__"]
