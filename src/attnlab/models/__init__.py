"""Transformers put together from the parts in `attnlab.attention`."""
