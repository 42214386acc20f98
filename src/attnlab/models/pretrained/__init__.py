"""Pretrained models of others: found by name, made into classifiers and tuned in several ways."""
