"""Pretrained models of others, made into classifiers and tuned in several ways."""
