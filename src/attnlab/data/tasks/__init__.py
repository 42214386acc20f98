"""Labelled texts: tasks by name, and files of the user."""
