"""The rated snippets inside the source archive of vaderSentiment 2.5 (MIT), as labelled texts.

Nothing of the archive is run or unpacked. `pip download` of a source archive would build its metadata, which runs its
setup.py; `pip index` only lists the registry (or the mirror or folder pip is configured for), so the archive is
downloaded from the address it prints, as plain bytes, and compared with a known checksum. Two tar files, one inside
the other, are read in memory, and files are written under names of our own, so a path in the archive has no effect.
"""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attnlab.base.children import MODULE
from attnlab.base.errors import UserError
from attnlab.base.files import check_new_folder, write_text
from attnlab.data.text.reading import numbered_lines

LARGEST_DOWNLOAD = 100_000_000  # bytes
TIMEOUT = 60  # seconds


def fetch_source(package: str, version: str, sha256: str) -> bytes:
    """The bytes of the source archive; raises if they cannot be downloaded or have another checksum."""
    address = find_address(_listing(package), package, version)
    if address is None:
        raise UserError(f"pip finds no source archive of {package} {version}: check the network and pip's registry.")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(LARGEST_DOWNLOAD)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise UserError(f"{package} {version} cannot be downloaded ({reason}): check the network.") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"the download of {package} {version} has an unexpected checksum and was discarded: try again.")
    return content


def find_address(listing: str, package: str, version: str) -> str | None:
    """The archive's address in the output of `pip index versions -vv`."""
    name = re.escape(f"{package}-{version}.tar.gz")
    link = re.search(rf"Found link (\S*/{name})(?=[#, ])", listing, re.IGNORECASE)
    return link[1] if link else None


def _listing(package: str) -> str:
    command = [
        *MODULE,
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
        raise UserError(f"pip gave no answer about {package}: check the network and try again.") from None
    if "No module named pip" in done.stderr:
        raise UserError(
            f"this Python has no pip, which is needed to find {package}: install it with python -m ensurepip."
        )
    return done.stdout


PACKAGE, VERSION = "vaderSentiment", "2.5"
SHA256 = "b960c954831f5ca58afee61780cc04ed48e551b91e783bfcbfb2c18bb8081a84"
INNER = "hutto_ICWSM_2014.tar.gz"
SETS = {
    "movie": "movieReviewSnippets_GroundTruth.txt",
    "amazon": "amazonReviewSnippets_GroundTruth.txt",
    "nyt": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}
LARGEST_MEMBER = 50_000_000  # bytes of a file in the archive
NOTE = """Rated snippets from the source archive of vaderSentiment 2.5 (MIT; Hutto and Gilbert 2014).

Every file has rows of text, tab, label: positive if the mean rating of some twenty people is above 0, negative if it
is below; a mean of exactly 0 is left out.

movie.tsv has the sentences that SST-2 was made from: never train on one and report on the other.

"""


class Snippets(NamedTuple):
    rows: list[tuple[str, str]]
    """Text and label."""
    neutral: int
    """Number of texts with a mean rating of 0, which were dropped."""

    def __str__(self) -> str:
        positive = sum(label == "positive" for _, label in self.rows)
        return f"{positive:,} positive, {len(self.rows) - positive:,} negative, {self.neutral:,} rated 0 and dropped"


def read_archive(archive: bytes) -> dict[str, Snippets]:
    """The four sets in the archive's bytes."""
    inner = _member(archive, INNER, f"{PACKAGE} {VERSION}")
    return {name: _snippets(_member(inner, file, INNER), file) for name, file in SETS.items()}


def write_sets(sets: Mapping[str, Snippets], folder: Path) -> None:
    """Write one TSV per set and a README."""
    check_new_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, snippets in sets.items():
            rows = "".join(f"{text}\t{label}\n" for text, label in snippets.rows)
            write_text(folder / f"{name}.tsv", f"text\tlabel\n{rows}")
        write_text(
            folder / "README.txt", NOTE + "".join(f"{name}.tsv: {snippets}\n" for name, snippets in sets.items())
        )
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}.") from None


def _member(archive: bytes, name: str, where: str) -> bytes:
    """The content of the file called `name`, in any folder of a tar file."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                if member.isfile() and member.name.rsplit("/", 1)[-1] == name and member.size <= LARGEST_MEMBER:
                    content = tar.extractfile(member)
                    if content is not None:
                        return content.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UserError(f"the archive of {where} cannot be read: {error}.") from None
    raise UserError(f"the archive of {where} has no {name}: expected the archive of {PACKAGE} {VERSION}.")


def _snippets(content: bytes, file: str) -> Snippets:
    rows, neutral = [], 0
    for number, line in numbered_lines(content.decode("utf-8")):
        try:
            _, rating, text = line.split("\t")
            mean = float(rating)
        except ValueError:
            raise UserError(f"{file}, line {number} is not an id, a rating and a text separated by tabs.") from None
        if mean == 0:
            neutral += 1
        else:
            rows.append((text, "positive" if mean > 0 else "negative"))
    return Snippets(rows, neutral)
