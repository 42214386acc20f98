"""The hand-in: report, code and scripts in one .zip, with a list of what is in it.

python make_submission.py [submission.zip]
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

from errors import UserError, one_sentence

FOLDER = Path(__file__).resolve().parent
REQUIRED = {  # what, and where it comes from
    "report.md": "write it",
    "README.md": "write it",
    **dict.fromkeys(
        ("classifier.py", "classifier_mlm.py", "mymodel.py", "data_utils.py", "mlm_utils.py"), "restore it"
    ),
    "experiments.sh": "restore it",
    **dict.fromkeys(("results/problem2.json", "results/problem3.json"), "run ./experiments.sh, then python collect.py"),
}
PARTS = ("report.md", "README.md", "*.py", "*.sh", "results/*.json", "figures/*")


def contents() -> list[Path]:
    """All files of the hand-in; raises if one is missing, or the report lacks its numbers."""
    for name, what in REQUIRED.items():
        if not (FOLDER / name).is_file():
            raise UserError(f"{name} is missing: {what}.")
    report = (FOLDER / "report.md").read_text(encoding="utf-8")
    if empty := re.findall(r"<!-- block: ([\w ]+) -->\s*<!-- end -->", report):
        raise UserError(f"report.md has nothing in its block {empty[0]!r}: run python collect.py.")
    for figure in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", report):
        if not (FOLDER / figure).is_file():
            raise UserError(f"report.md shows {figure}, which is missing: run python collect.py.")
    return sorted(path for part in PARTS for path in FOLDER.glob(part))


def main(words: list[str]) -> None:
    with one_sentence():
        if len(words) > 1 or (words and not words[0].endswith(".zip")):
            raise UserError(f"expected the name of a .zip file, got {' '.join(words)}.")
        target, files = Path(words[0] if words else "submission.zip"), contents()
        partial = target.with_name(f".{target.name}.partial")
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(FOLDER).as_posix())
        partial.replace(target)
        for entry in zipfile.ZipFile(target).infolist():
            print(f"{entry.file_size:>9,}  {entry.filename}")
        print(f"{target}: {len(files)} files, {target.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main(sys.argv[1:])
