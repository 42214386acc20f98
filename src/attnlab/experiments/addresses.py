"""Addresses of stores, never with a password: an address is written to the sweep's folder and printed in messages.

libpq has its own means for a password: ~/.pgpass (or PGPASSFILE), a service of ~/.pg_service.conf (`?service=name`, or
PGSERVICE), PGPASSWORD. What is refused is not repeated, since any part of it may be the password.
"""

from __future__ import annotations

import os
import re

JOURNAL = "journal"
SQLITE = "sqlite:///"
POSTGRES = "postgresql://"
OPTIONS = (
    *("host", "hostaddr", "port", "user", "dbname", "service", "passfile", "application_name", "connect_timeout"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "gssencmode", "target_session_attrs", "require_auth"),
)
_OPTION = rf"(?:{'|'.join(OPTIONS)})=[\w.,/~+-]*"
_SERVER = re.compile(
    rf"{POSTGRES}(?:[\w.+-]+(?:%40[\w.+-]+)?@)?(?:[\w.-]*|\[[0-9a-fA-F:]+\])(?::\d+)?"
    rf"(?:/[\w.~+-]*)?(?:\?{_OPTION}(?:&{_OPTION})*)?",
    re.ASCII,
)
_HINT = (
    "a password does not belong in it, since the address is stored and printed: "
    "use ~/.pgpass or PGPASSFILE, a service (?service=name), or PGPASSWORD"
)


def store_address(value: str) -> str:
    """The address as it is stored, a file's path in full; raises a ValueError without the address for any other."""
    if value == JOURNAL:
        return value
    if value.startswith(SQLITE) and len(value) > len(SQLITE) and "?" not in value:
        return SQLITE + os.path.abspath(os.path.expanduser(value.removeprefix(SQLITE)))
    if _SERVER.fullmatch(value):
        return value
    if value.startswith(POSTGRES):
        raise ValueError(f"expected postgresql://user@host:port/database; {_HINT}")
    raise ValueError(f"expected journal, sqlite:///file.db or postgresql://user@host/database; {_HINT}")
