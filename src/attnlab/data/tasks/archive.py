"""The source archive of a package, fetched without running it.

`pip download` of a source archive builds its metadata, which installs what its build needs and runs its setup.py.
`pip index` only lists what the registry has: it names the archive's address, whichever registry, mirror or folder
pip is set up for, and the archive is fetched from there as plain bytes and held against a known checksum.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

from attnlab.base.errors import UserError

LARGEST = 100_000_000
TIMEOUT = 60


def fetch_source(package: str, version: str, sha256: str) -> bytes:
    """The bytes of the source archive, or one sentence on why it cannot be had."""
    address = find_address(_listing(package), package, version)
    if address is None:
        raise UserError(
            f"pip finds no source archive of {package} {version}: check the network and the registry pip is set up for."
        )
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(LARGEST)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise UserError(f"{package} {version} cannot be downloaded ({reason}): check the network.") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"what was downloaded as {package} {version} has another checksum: it was not used.")
    return content


def find_address(listing: str, package: str, version: str) -> str | None:
    """The archive's address in what `pip index versions -vv` says."""
    name = re.escape(f"{package}-{version}.tar.gz")
    found = re.search(rf"Found link (\S*/{name})(?=[#, ])", listing, re.IGNORECASE)
    return found[1] if found else None


def _listing(package: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pip",
        "index",
        "versions",
        "-vv",
        "--no-color",
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "1",
        "--timeout",
        "15",
        "--no-binary",
        ":all:",
        package,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=4 * TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        raise UserError(f"pip did not answer when asked for {package}: check the network and try again.") from None
    if "No module named pip" in done.stderr:
        raise UserError(f"this Python has no pip to ask for {package}: python -m ensurepip installs it.")
    return done.stdout
