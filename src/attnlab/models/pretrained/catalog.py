"""Pretrained models by short names: where each is on the hub, its size, and what it is good for.

Any other `owner/name` of the hub and any folder work as well: the catalogue is a help to choose, not a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

PACKAGED = "minilm"
"""The one model that comes as a Python package."""


@dataclass(frozen=True)
class CatalogEntry:
    name: str
    hub: str
    family: str
    """`model_type` in config.json."""
    layers: int
    """Of the encoder; a T5 has as many again in its decoder."""
    width: int
    millions: float
    """Parameters of the body, a head of masked words not counted; of a T5, of the whole model."""
    megabytes: int
    """Approximate size of a download."""
    good_for: str

    @property
    def ids(self) -> tuple[str, ...]:
        """Its names in the hub's cache: today's, and for the first models the one without an owner."""
        last = self.hub.rsplit("/", 1)[-1]
        return (self.hub, last) if self.name == last else (self.hub,)


_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MODELS = (
    CatalogEntry(
        PACKAGED, _MINILM, "bert", 6, 384, 22.7, 91, "the default here: small, quick, good vectors of sentences"
    ),
    CatalogEntry("all-MiniLM-L6-v2", _MINILM, "bert", 6, 384, 22.7, 91, "the same from the hub"),
    CatalogEntry(
        "MiniLM-L12-H384-uncased",
        "microsoft/MiniLM-L12-H384-uncased",
        "bert",
        12,
        384,
        33.4,
        133,
        "fine-tuning on a laptop: deep and narrow",
    ),
    CatalogEntry("bert-tiny", "prajjwal1/bert-tiny", "bert", 2, 128, 4.4, 18, "trying things out in seconds"),
    CatalogEntry("bert-mini", "prajjwal1/bert-mini", "bert", 4, 256, 11.2, 45, "trying things out in a minute"),
    CatalogEntry(
        "TinyBERT_General_4L_312D",
        "huawei-noah/TinyBERT_General_4L_312D",
        "bert",
        4,
        312,
        14.4,
        63,
        "fine-tuning without a GPU: distilled from BERT-base",
    ),
    CatalogEntry("bert-small", "prajjwal1/bert-small", "bert", 4, 512, 28.8, 116, "fine-tuning without a GPU"),
    CatalogEntry(
        "bert-medium", "prajjwal1/bert-medium", "bert", 8, 512, 41.4, 167, "fine-tuning without a GPU, with patience"
    ),
    CatalogEntry(
        "distilbert-base-uncased",
        "distilbert/distilbert-base-uncased",
        "distilbert",
        6,
        768,
        66.4,
        268,
        "most of BERT-base in half the time",
    ),
    CatalogEntry(
        "distilbert-base-cased",
        "distilbert/distilbert-base-cased",
        "distilbert",
        6,
        768,
        65.2,
        263,
        "the same where capital letters matter",
    ),
    CatalogEntry(
        "bert-base-uncased", "google-bert/bert-base-uncased", "bert", 12, 768, 109.5, 440, "the field's yardstick"
    ),
    CatalogEntry(
        "bert-base-cased",
        "google-bert/bert-base-cased",
        "bert",
        12,
        768,
        108.3,
        436,
        "the same where capital letters matter",
    ),
    CatalogEntry(
        "bert-large-uncased", "google-bert/bert-large-uncased", "bert", 24, 1024, 335.1, 1345, "fine-tuning with a GPU"
    ),
    CatalogEntry(
        "bert-large-cased", "google-bert/bert-large-cased", "bert", 24, 1024, 333.6, 1338, "fine-tuning with a GPU"
    ),
    CatalogEntry(
        "roberta-base",
        "FacebookAI/roberta-base",
        "roberta",
        12,
        768,
        124.6,
        499,
        "better than BERT-base at the same cost",
    ),
    CatalogEntry(
        "roberta-large",
        "FacebookAI/roberta-large",
        "roberta",
        24,
        1024,
        355.4,
        1422,
        "fine-tuning with a GPU; strong on pairs",
    ),
    CatalogEntry(
        "mpnet-base", "microsoft/mpnet-base", "mpnet", 12, 768, 109.5, 532, "fine-tuning, on a par with RoBERTa"
    ),
    CatalogEntry(
        "all-mpnet-base-v2",
        "sentence-transformers/all-mpnet-base-v2",
        "mpnet",
        12,
        768,
        109.5,
        438,
        "vectors of sentences for a head alone",
    ),
    CatalogEntry(
        "deberta-v3-xsmall",
        "microsoft/deberta-v3-xsmall",
        "deberta-v2",
        12,
        384,
        70.7,
        142,
        "high accuracy for its size, slow for its size",
    ),
    CatalogEntry(
        "deberta-v3-small",
        "microsoft/deberta-v3-small",
        "deberta-v2",
        6,
        768,
        141.3,
        286,
        "high accuracy, slow without a GPU",
    ),
    CatalogEntry(
        "deberta-v3-base", "microsoft/deberta-v3-base", "deberta-v2", 12, 768, 183.8, 371, "high accuracy, with a GPU"
    ),
    CatalogEntry(
        "deberta-v3-large",
        "microsoft/deberta-v3-large",
        "deberta-v2",
        24,
        1024,
        434.0,
        874,
        "the highest accuracy here, with a GPU",
    ),
    CatalogEntry("t5-small", "google-t5/t5-small", "t5", 6, 512, 60.5, 242, "text to text; soft prompts on a laptop"),
    CatalogEntry("t5-base", "google-t5/t5-base", "t5", 12, 768, 222.9, 892, "text to text; soft prompts"),
    CatalogEntry("t5-large", "google-t5/t5-large", "t5", 24, 1024, 737.7, 2951, "text to text, with a GPU"),
    CatalogEntry("t5-3b", "google-t5/t5-3b", "t5", 24, 1024, 2851.6, 11407, "text to text, with a large GPU"),
    CatalogEntry("flan-t5-small", "google/flan-t5-small", "t5", 8, 512, 77.0, 308, "follows instructions, on a laptop"),
    CatalogEntry("flan-t5-base", "google/flan-t5-base", "t5", 12, 768, 247.6, 990, "follows instructions"),
    CatalogEntry(
        "flan-t5-large", "google/flan-t5-large", "t5", 24, 1024, 783.2, 3133, "follows instructions, with a GPU"
    ),
    CatalogEntry(
        "flan-t5-xl", "google/flan-t5-xl", "t5", 24, 2048, 2849.8, 11398, "follows instructions, with a large GPU"
    ),
    CatalogEntry(
        "flan-t5-xxl", "google/flan-t5-xxl", "t5", 24, 4096, 11135.3, 44541, "follows instructions, several GPUs"
    ),
)
CATALOG = {entry.name: entry for entry in MODELS}


def find_entry(name: str) -> CatalogEntry | None:
    """A model of the catalogue by its short name, or by its id on the hub."""
    return CATALOG.get(name) or next((entry for entry in MODELS if entry.hub == name and entry.name != PACKAGED), None)
