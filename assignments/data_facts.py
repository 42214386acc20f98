"""Facts about the real data sets, read from the folder named by the environment variable ATTNLAB_DATA."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

FACTS: dict[str, Callable[[], object]] = {}


def folder(name: str) -> Path:
    """The folder of one data set; FileNotFoundError with its name if it does not exist."""
    root = os.environ.get("ATTNLAB_DATA")
    if not root or not (Path(root) / name).is_dir():
        raise FileNotFoundError(f"{name} (set ATTNLAB_DATA to the folder that contains it)")
    return Path(root) / name


def fact(name: str, compute: Callable[[], object]) -> None:
    FACTS[name] = compute


def majority(labels: Iterable[object]) -> float:
    """The accuracy of always giving the most common label."""
    counts = Counter(labels)
    return counts.most_common(1)[0][1] / counts.total()


@cache
def boolq(split: str) -> list[bool]:
    lines = (folder("boolq") / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


@cache
def sst2(split: str) -> list[str]:
    lines = (folder("sst2") / f"{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.rsplit("\t", 1)[1] for line in lines]


@cache
def yelp(split: str) -> list[str]:
    with (folder("yelp") / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file)]


@cache
def births(split: str) -> list[tuple[str, str]]:
    """Name and place of "Where was NAME born?" pairs."""
    lines = (folder("birthplaces") / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    return [(question.removeprefix("Where was ").removesuffix(" born?"), place) for question, place in pairs]


@cache
def sentences() -> list[str]:
    return (folder("birthplaces") / "wiki.txt").read_text(encoding="utf-8").splitlines()


fact("data.boolq_dev_size", lambda: len(boolq("dev")))
fact("data.boolq_dev_yes", lambda: sum(boolq("dev")))
fact("data.boolq_dev_majority", lambda: majority(boolq("dev")))
fact("data.sst2_train_size", lambda: len(sst2("train")))
fact("data.sst2_dev_size", lambda: len(sst2("dev")))
fact("data.sst2_dev_majority", lambda: majority(sst2("dev")))
fact("data.yelp_train_majority", lambda: majority(yelp("train")))
fact("data.yelp_valid_majority", lambda: majority(yelp("valid")))
fact("data.yelp_test_majority", lambda: majority(yelp("test")))
fact("data.births_dev_size", lambda: len(births("birth_dev")))
fact("data.london", lambda: sum(place == "London" for _, place in births("birth_dev")))
fact("data.london_share", lambda: sum(place == "London" for _, place in births("birth_dev")) / len(births("birth_dev")))
fact(
    "data.names_in_train",
    lambda: len({n for n, _ in births("birth_dev")} & {n for n, _ in births("birth_places_train")}),
)
fact("data.names_in_wiki", lambda: sum(any(name in line for line in sentences()) for name, _ in births("birth_dev")))
fact(
    "data.answers_in_wiki",
    lambda: sum(any(name in line and place in line for line in sentences()) for name, place in births("birth_dev")),
)
fact(
    "data.places_in_train",
    lambda: sum(place in {p for _, p in births("birth_places_train")} for _, place in births("birth_dev")),
)
