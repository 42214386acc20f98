"""Passwords in addresses (scheme://user:password@host) are neither printed nor written."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?P<user>\b[a-zA-Z][\w+.-]*://[^\s:/@'\"]*):[^\s'\"]*@")
_OPTION = re.compile(r"(?P<name>\b(?:password|sslpassword)=)[^\s&'\"]+", re.IGNORECASE)
MASK = "***"


def without_passwords(text: str) -> str:
    """The text with a mask for each password. It may contain any character, so it ends at the last @ of the word."""
    return _OPTION.sub(rf"\g<name>{MASK}", _ADDRESS.sub(rf"\g<user>:{MASK}@", text))
