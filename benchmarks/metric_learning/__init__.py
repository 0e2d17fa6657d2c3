"""Learnt distances."""
