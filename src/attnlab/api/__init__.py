"""The Python API: one file per thing a person comes for; `attnlab/__init__.py` hands out the names."""
