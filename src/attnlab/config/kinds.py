"""The configuration of every kind of run that is trained."""

from __future__ import annotations

from attnlab.config.classify import ClassifyConfig
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.config.language import LanguageConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.sections import Section

CONFIGS: dict[str, type[Section]] = {
    "knowledge": KnowledgeConfig,
    "pretrain": PretrainConfig,
    "finetune": FinetuneConfig,
    "language": LanguageConfig,
    "classify": ClassifyConfig,
}
