"""The figure of SST-2 in classification.md: `python docs/notebook/classification.py` draws figures/sst2.png."""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from attnlab.report.figures import COLOURS, STYLE
from attnlab.stats.intervals import Mean

HERE = Path(__file__).parent


def main() -> None:
    measured = json.loads((HERE / "data" / "sst2.json").read_text(encoding="utf-8"))
    beside = measured["beside_trainer"]
    rows = {
        "transformers' Trainer\n2 epochs, 14 min": [row["trainer"] for row in beside],
        "attnlab, plain\n2 epochs, 7 min": [row["lab"] for row in beside],
        "attnlab, recipe sst2\n3 epochs, 22 min": [max(row["dev"]) for row in measured["recipe"]],
    }
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 2.4))
        for place, values in enumerate(rows.values()):
            mean = Mean(tuple(values))
            axes.errorbar(mean.mean, place, xerr=mean.half_width, fmt="o", color=COLOURS[place], capsize=4)
            axes.plot(values, [place] * len(values), "|", color=COLOURS[place], markersize=12)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set(xlabel="accuracy on SST-2's dev set, CPU minutes per seed", title="MiniLM-L6, three seeds each")
        axes.grid(axis="y", visible=False)
        figure.savefig(HERE / "figures" / "sst2.png", dpi=110)


if __name__ == "__main__":
    main()
