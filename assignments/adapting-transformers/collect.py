"""Keep the results and figures of runs/ in results/ and figures/, and renew the measured parts of report.md."""

from pathlib import Path

from attnlab.base.interrupts import one_sentence
from attnlab.jobs.study.page import collect

if __name__ == "__main__":
    with one_sentence():
        collect(Path(__file__).parent)
