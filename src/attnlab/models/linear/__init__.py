"""Classifiers without a network to train: the most common class, and logistic regression on TF-IDF or on vectors."""
