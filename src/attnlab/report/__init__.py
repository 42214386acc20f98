"""Figures, tables and one self-contained HTML page per run."""
