"""Transformers assembled from the parts in `attnlab.attention`."""
