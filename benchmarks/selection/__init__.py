"""Choosing hyperparameters."""
