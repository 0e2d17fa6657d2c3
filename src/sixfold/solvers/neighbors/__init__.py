"""Exact nearest rows, and what they vote for."""
