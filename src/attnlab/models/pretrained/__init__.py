"""Pretrained models of others: found by name, turned into classifiers and tuned in several ways."""
