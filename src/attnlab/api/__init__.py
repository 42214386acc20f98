"""The Python API: one file per thing a person comes for; `attnlab/__init__.py` hands out the names."""

import warnings

warnings.filterwarnings("ignore", message="IProgress not found")  # by tqdm in a notebook; the lab's bars are its own
