"""The rated snippets inside the source archive of vaderSentiment 2.5 (MIT), as labelled texts.

Nothing of the archive is run or unpacked: two tar files, one inside the other, are read in memory, and what is
written has names of our own, so a path inside the archive leads nowhere.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.data.text.lines import numbered_lines
from attnlab.data.world.files import check_folder

PACKAGE, VERSION = "vaderSentiment", "2.5"
SHA256 = "b960c954831f5ca58afee61780cc04ed48e551b91e783bfcbfb2c18bb8081a84"
INNER = "hutto_ICWSM_2014.tar.gz"
SETS = {
    "movie": "movieReviewSnippets_GroundTruth.txt",
    "amazon": "amazonReviewSnippets_GroundTruth.txt",
    "nyt": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}
LARGEST = 50_000_000  # bytes of a file in the archive: more is not what we look for
NOTE = """Rated snippets from the source archive of vaderSentiment 2.5 (MIT; Hutto and Gilbert 2014).

Every file has rows of text, tab, label: positive if the mean rating of some twenty people is above 0, negative if it
is below; a mean of exactly 0 is left out.

movie.tsv has the sentences that SST-2 was made from: never train on one and report on the other.

"""


class Snippets(NamedTuple):
    rows: list[tuple[str, str]]
    """Text and label."""
    neutral: int
    """How many had a mean rating of 0 and were dropped."""

    def __str__(self) -> str:
        positive = sum(label == "positive" for _, label in self.rows)
        return f"{positive:,} positive, {len(self.rows) - positive:,} negative, {self.neutral:,} rated 0 and dropped"


def read_archive(archive: bytes) -> dict[str, Snippets]:
    """The four sets out of the archive's bytes."""
    inner = _member(archive, INNER, f"{PACKAGE} {VERSION}")
    return {name: _snippets(_member(inner, file, INNER), file) for name, file in SETS.items()}


def write_sets(sets: Mapping[str, Snippets], folder: Path) -> None:
    """A TSV each, and what they are."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, snippets in sets.items():
            rows = "".join(f"{text}\t{label}\n" for text, label in snippets.rows)
            write_text(folder / f"{name}.tsv", f"text\tlabel\n{rows}")
        write_text(folder / "README.txt", NOTE + "".join(f"{name}.tsv: {found}\n" for name, found in sets.items()))
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}.") from None


def _member(archive: bytes, name: str, where: str) -> bytes:
    """The content of the file called `name`, in whatever folder of a tar file."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                if member.isfile() and member.name.rsplit("/", 1)[-1] == name and member.size <= LARGEST:
                    content = tar.extractfile(member)
                    if content is not None:
                        return content.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UserError(f"the archive of {where} cannot be read: {error}.") from None
    raise UserError(f"the archive of {where} has no {name}: it is not the one that was expected.")


def _snippets(content: bytes, file: str) -> Snippets:
    rows, neutral = [], 0
    for number, line in numbered_lines(content.decode("utf-8")):
        try:
            _, rating, text = line.split("\t")
            mean = float(rating)
        except ValueError:
            raise UserError(f"{file}, line {number} is not an id, a rating and a text, separated by tabs.") from None
        if mean == 0:
            neutral += 1
        else:
            rows.append((text, "positive" if mean > 0 else "negative"))
    return Snippets(rows, neutral)
