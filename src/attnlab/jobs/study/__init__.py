"""Experiments on classifiers as scripts of a course: options, runs that belong together, their figures and results."""
