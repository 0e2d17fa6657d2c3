"""Choosing hyperparameters and learners: searches, path estimators, comparisons."""
