"""The numbers, the table and the figure of induction-heads.md.

python docs/notebook/induction_heads.py run FOLDER [--threads N]   train what is missing, score, write all of them
python docs/notebook/induction_heads.py                            data/induction-heads.json -> figure, table, page

`run` can be stopped and started again: finished runs are left as they are, interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from attnlab.interpret.head_history import HeadHistory, score_checkpoints
from attnlab.interpret.passages import repeated_random
from attnlab.interpret.subject import open_subject
from attnlab.runs import is_run, read_record, read_status
from attnlab.stats.intervals import Mean, plus_minus

HERE = Path(__file__).parent
DATA = HERE / "data" / "induction-heads.json"
FIGURE = HERE / "figures" / "induction-heads.png"
PAGE = HERE / "induction-heads.md"
BLOCK = re.compile(r"(<!-- results -->\n).*?(<!-- /results -->)", re.DOTALL)
MODELS: dict[str, tuple[str, ...]] = {
    "two layers": (),
    "one layer": ("--layers", "1"),
    "two layers, rotary positions": ("--positions", "rotary"),
}
SEEDS = (0, 1, 2)
DRAWS = 20
FORMED = 0.5  # a head with more than this is said to be an induction head

Results = dict[str, list[dict[str, Any]]]


def train(folder: Path, threads: int, steps: int | None = None) -> None:
    """All runs, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "repeats.txt"
    if not text.exists():
        _attnlab("data", "repeats", text)
    limit = () if steps is None else ("--steps", steps, "--save-every", 1, "--evaluate-every", 1)
    for seed in SEEDS:
        for name, options in MODELS.items():
            run = run_of(folder, name, seed)
            if not is_run(run):
                settings = (*options, "--seed", seed, "--threads", threads, *limit)
                _attnlab("language", "--config", "induction", "--corpus", text, "--run", run, *settings)
            elif read_status(run)["state"] != "finished":
                _attnlab("resume", run)


def run_of(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name.replace(',', '').replace(' ', '-')}-seed-{seed}"


def _attnlab(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "attnlab", *map(str, words)], check=True)


def gather(folder: Path) -> Results:
    return {name: [measure(run_of(folder, name, seed), seed) for seed in SEEDS] for name in MODELS}


def measure(run: Path, seed: int) -> dict[str, Any]:
    """The curves of a run, and what it makes of a repetition at the end."""
    history = score_checkpoints(run, draws=DRAWS)
    record = read_record(run)
    first, second = copy_losses(run)
    return {
        "seed": seed,
        "parameters": record["parameters"],
        "seconds": round(record["training"]["seconds"], 1),
        "dev_loss": record["results"]["dev_loss"],
        "first_copy_loss": first,
        "second_copy_loss": second,
        "loss": {"steps": history.loss[0], "values": history.loss[1]},
        "steps": history.steps,
        "scores": {kind: history.strongest(kind) for kind in ("previous", "duplicate", "induction")},
        "chance": history.reports[-1].scores("induction").chance,
        "head": list(history.reports[-1].scores("induction").strongest(1)[0][0]),
        "formed": formed_at(history),
    }


def formed_at(history: HeadHistory) -> int | None:
    """The first checkpoint at which a head is an induction head."""
    scores = zip(history.steps, history.strongest("induction"), strict=True)
    return next((step for step, score in scores if score > FORMED), None)


@torch.no_grad()
def copy_losses(run: Path) -> tuple[float, float]:
    """The loss on the tokens of the first copy of random tokens, and of the second from its second token on."""
    subject = open_subject(run)
    ids = repeated_random(subject, draws=200, seed=1).ids  # (B, 2L)
    logits = subject.model(ids[:, :-1])
    losses = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none").mean(0)  # (2L - 1,)
    half = ids.shape[1] // 2
    return float(losses[: half - 1].mean()), float(losses[half:].mean())


def load() -> Results:
    results: Results = json.loads(DATA.read_text(encoding="utf-8"))
    return results


def table(results: Results) -> Iterator[str]:
    yield (
        "| model | parameters | validation loss | loss in the first copy | in the second copy "
        f"| strongest induction head | score above {FORMED} at step | seconds of training |"
    )
    yield "| --- |" + " --- |" * 7
    for name, runs in results.items():
        losses = [_over(runs, key) for key in ("dev_loss", "first_copy_loss", "second_copy_loss")]
        score = plus_minus(Mean(tuple(run["scores"]["induction"][-1] for run in runs)))
        formed = ", ".join("never" if run["formed"] is None else str(run["formed"]) for run in runs)
        seconds = ", ".join(f"{run['seconds']:.0f}" for run in runs)
        yield f"| {name} | {runs[0]['parameters']:,} | {' | '.join(losses)} | {score} | {formed} | {seconds} |"
    chance = next(iter(results.values()))[0]["chance"]
    yield f"| equal weights |  |  |  |  | {chance:.3f} |  |  |"


def _over(runs: list[dict[str, Any]], key: str) -> str:
    return plus_minus(Mean(tuple(run[key] for run in runs)))


def draw(results: Results) -> None:
    from attnlab.report.figures import COLOURS, styled, subplots

    with styled():
        figure, grid = subplots(
            2, len(results), figsize=(4.2 * len(results), 5.4), sharex=True, sharey="row", squeeze=False
        )
        for upper, lower, (name, runs) in zip(*grid, results.items(), strict=True):
            upper.set_title(f"{name}, {len(runs)} seeds")
            for number, run in enumerate(runs):
                upper.plot(run["loss"]["steps"], run["loss"]["values"], color=COLOURS[5], linewidth=1.4)
                for kind, colour in zip(("previous", "induction"), COLOURS, strict=False):
                    label = kind if number == 0 else None
                    lower.plot(run["steps"], run["scores"][kind], color=colour, linewidth=1.4, label=label)
            lower.axhline(runs[0]["chance"], color="#4a5568", linestyle=":", linewidth=1, label="chance")
            lower.set(xlabel="step", ylim=(0, 1.02))
        grid[0][0].set_ylabel("validation loss")
        grid[1][0].set_ylabel("score of the strongest head")
        grid[1][0].legend()
        figure.savefig(FIGURE, dpi=110)


def renewed(page: str, results: Results) -> str:
    """The page with the table and the figure."""
    alt = "Validation loss and the scores of the strongest previous-token and induction heads by step, for each model."
    block = "\n".join([*table(results), "", f"![{alt}](figures/{FIGURE.name})", ""])
    return BLOCK.sub(lambda match: match[1] + block + match[2], page)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Induction heads: train, score, draw.")
    parser.add_argument("action", nargs="?", choices=["run"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(words)
    if given.action == "run":
        if given.folder is None:
            parser.error("the folder of the runs is missing")
        torch.set_num_threads(given.threads)
        train(given.folder, given.threads)
        DATA.write_text(json.dumps(gather(given.folder), indent=1) + "\n", encoding="utf-8")
    draw(load())
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
    print("\n".join(table(load())))


if __name__ == "__main__":
    main()
