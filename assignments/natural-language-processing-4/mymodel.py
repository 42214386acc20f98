"""The three models of the assignment, complete: the lab's, on its BERT in plain PyTorch.

    BertForSequenceClassification   [CLS]'s last vector, dropout, one linear layer to the classes
    BertForMaskedLanguageModel      every masked place's vector, dense, GELU, norm, scores of all pieces
    BertForCLSMLM                   both heads on one body

They are in src/attnlab/models/bert/heads.py, one screen each. To write your own, replace a name below by a class; the
README shows its outline. The scripts import the classes from this file.
"""

from __future__ import annotations

from attnlab.models.bert.heads import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification

__all__ = ["BertForCLSMLM", "BertForMaskedLanguageModel", "BertForSequenceClassification"]
