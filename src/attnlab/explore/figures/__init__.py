"""Figures of the explorations; imported, and matplotlib with them, only to draw."""
