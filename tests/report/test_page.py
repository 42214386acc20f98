"""A run's page is written from its folder alone, escapes its contents, and works for an unfinished run."""

from pathlib import Path

from attnlab.report.page import Passage, Table, write_page
from attnlab.report.run_page import write_run_page
from attnlab.runs import MetricsWriter, RunFolder
from attnlab.stats.intervals import Proportion


def test_a_page_escapes_what_it_is_given(tmp_path: Path) -> None:
    passage = Passage("<b>", ["a < b & c"], [Table(["<script>"], [["</td>"]])], printed="<script>alert(1)</script>")
    write_page(tmp_path / "page.html", "<title>", "<lead>", [passage])
    text = (tmp_path / "page.html").read_text()
    assert "<script>" not in text and "&lt;script&gt;" in text and "a &lt; b &amp; c" in text


def test_an_unfinished_run_has_a_page_too(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", "pretrain", {"optimizer": {"lr": 0.1}}, seed=5)
    writer = MetricsWriter(run.metrics)
    for step in range(1, 5):
        writer.write(step=step, split="train", loss=1.0 / step, lr=0.1)
    writer.close()
    run.set_status("failed", "the loss is nan at step 5")
    run.close()
    text = write_run_page(run.path).read_text()
    assert "the loss is nan at step 5" in text and "seed 5" in text and "lr: 0.1" in text
    assert (run.path / "figures" / "loss.png").stat().st_size > 1000


def test_wilson_intervals_are_the_known_ones() -> None:
    """Against the values of Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    for right, count, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)):
        found = Proportion(right, count).interval
        assert abs(found[0] - low) < 5e-5 and abs(found[1] - high) < 5e-5
